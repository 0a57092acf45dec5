//! Texts that are no link model are refused with the key, the line and what is allowed.

use ibverbs_sim::LinkModel;

fn refusal(text: &str) -> String {
    LinkModel::parse(text).expect_err(text).to_string()
}

fn refusal_of_file(text: &str) -> String {
    LinkModel::from_toml(text).expect_err(text).to_string()
}

#[test]
fn a_value_out_of_range_is_named_with_the_range() {
    for (text, said) in [
        ("latency=-1us", "latency = -1us: give a time from 0ns to 3600s"),
        ("latency=1h", "latency = 1h: give a time from 0ns to 3600s"),
        ("latency=", "latency = : give a time"),
        ("latency=7cycles", "latency = 7cycles: give a time"),
        ("bandwidth=0GB/s", "bandwidth = 0GB/s: give a rate from 1kB/s to 1000TB/s"),
        ("bandwidth=fast", "bandwidth = fast: give a rate"),
        ("bandwidth=4KiB: 1GB/s", "bandwidth = 4KiB: 1GB/s: give a rate"),
        ("bandwidth=1GB/s; 8KiB: 2GB/s; 4KiB: 3GB/s", "bandwidth = 1GB/s; 8KiB"),
        ("packet=0B", "packet = 0B: give a size from 1B to 1TiB"),
        ("packet=64B,header=64B", "packet = 64B: give packets longer than their headers of 64B"),
        ("node=0", "node = 0: give a whole number from 1 to 1048576"),
        ("mesh=4", "mesh = 4: give columns and rows of at most 1024 nodes"),
        ("mesh=4x1025", "mesh = 4x1025: give columns and rows"),
        ("buffer=none", "buffer = none: give a size from 1B to 1TiB"),
        ("noise=1us,seed=-1", "seed = -1: give a whole number from 0 to 18446744073709551615"),
        ("clock=1", "clock = 1: give a frequency from 1kHz to 100GHz"),
    ] {
        let error = refusal(text);
        assert!(error.starts_with(said), "{text}: {error}");
    }
}

#[test]
fn keys_that_are_unknown_missing_or_contradictory_are_named() {
    for (text, said) in [
        ("latencies=1us", "no such key: latencies; the keys are bandwidth, "),
        ("inside.node=1", "no such key: inside.node; "),
        ("hop=1ns", "hop needs mesh"),
        ("seed=1", "seed needs noise"),
        ("header=1B", "header needs packet"),
        ("node=2", "node needs inside.bandwidth"),
        ("inside.latency=1ns", "inside.latency needs node, at least 2"),
        ("latency=1us,latency=1us", "latency contradicts latency: give one of them"),
        ("overhead=1us,send_overhead=2us", "send_overhead contradicts overhead"),
        ("receive_overhead=2us,overhead=1us", "overhead contradicts receive_overhead"),
        ("latency=1us,", "\"\": give key=value"),
        ("latency=1us,ideal", "\"ideal\": give key=value"),
        ("fast,latency=1us", "no such profile: fast; the profiles are ideal, "),
    ] {
        let error = refusal(text);
        assert!(error.starts_with(said), "{text}: {error}");
    }
}

#[test]
fn mistakes_of_a_file_are_named_with_their_line() {
    for (text, said) in [
        ("[link]\n\nlatency = \"2\"\n", "line 3: latency = 2: give a time"),
        ("[link]\nlatency = 2\n", "line 2: latency = 2: give a time"),
        ("[link]\nlatency = true\n", "line 2: latency = true: give a time"),
        ("[link]\nlatency = []\n", "line 2: latency = a value of type array: give a time"),
        ("[link]\n\nlatncy = \"2ns\"\n", "line 3: no such key: latncy"),
        ("[link.inside]\nhop = \"2ns\"\n", "line 2: no such key: inside.hop"),
        ("[link]\n[[link.route]]\nfrom = 1\nnode = 4\n", "line 4: no such key: node"),
        ("[link]\n[[link.route]]\nfrom = -1\n", "line 3: from = -1: give the number of a node"),
        ("[link]\noverhead = '1ns'\nsend_overhead = '1ns'\n", "line 3: send_overhead contradicts"),
        ("[link]\nlatency = \n", "line 2: "),
        ("link = 4\n", "line 1: link = 4: give a table"),
        ("[link]\nroute = [4]\n", "line 2: link.route = 4: give a table"),
    ] {
        let error = refusal_of_file(text);
        assert!(error.starts_with(said), "{text:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_list_may_begin_with_a_profile() {
    let model = LinkModel::parse("mppa-cc,send_overhead=1us").unwrap();
    assert_eq!(model.one_way_ns(0, 1, 0), 1_000);
    assert_eq!(
        LinkModel::parse("ideal").unwrap(),
        LinkModel::parse("").unwrap_or(LinkModel::IDEAL)
    );
}

#[test]
fn other_tables_of_a_file_are_left_to_others() {
    let model = LinkModel::from_toml("[costs]\ncell = '1ns'\n[link]\nlatency = '3ns'\n").unwrap();
    assert_eq!(model.one_way_ns(0, 1, 0), 3);
    assert_eq!(LinkModel::from_toml("").unwrap(), LinkModel::IDEAL);
}
