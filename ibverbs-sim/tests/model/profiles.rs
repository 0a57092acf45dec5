//! Profiles that come with the crate give the figures of their sources.

use ibverbs_sim::{LinkModel, LinkModelError, Network};

use super::run;

/// Returns the cycles at 400 MHz of a message, which a network takes for it.
fn cycles(profile: &str, from: u32, to: u32, bytes: u64) -> f64 {
    let mut network = Network::new(LinkModel::profile(profile).unwrap(), 17);
    network.post(0, from, to, bytes);
    run(&mut network)[0].at_ns as f64 / 2.5
}

#[test]
fn every_profile_is_read() {
    let names: Vec<_> = LinkModel::profiles().collect();
    for name in ["ideal", "mppa-cc", "mppa-io", "kunpeng-4x4", "hdr-infiniband", "ethernet-25g"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for name in names {
        LinkModel::profile(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(LinkModel::profile("ideal").unwrap(), LinkModel::IDEAL);
    let error = LinkModel::profile("mppa").unwrap_err();
    assert!(matches!(error, LinkModelError::UnknownProfile { .. }));
    assert!(error.to_string().starts_with("no such profile: mppa; the profiles are ideal, "));
}

/// Table IV of "MPI on the MPPA network-on-chip": slope and constant of the transmission time in
/// cycles. The I/O subsystem is process 0 of its profile.
#[test]
fn ping_pong_on_the_mppa_gives_table_iv() {
    for (profile, from, to, slope, constant) in [
        ("mppa-cc", 0, 15, 0.98, 31_430.0),
        ("mppa-cc", 15, 0, 0.98, 30_240.0),
        ("mppa-cc-dma", 0, 15, 0.27, 33_690.0),
        ("mppa-cc-dma", 15, 0, 0.27, 32_850.0),
        ("mppa-io", 0, 16, 13.52, 159_544.0),
        ("mppa-io", 16, 0, 0.98, 129_200.0),
    ] {
        for bytes in [0u64, 1, 256, 4_096, 1 << 20] {
            let cycles = cycles(profile, from, to, bytes);
            let given = slope * bytes as f64 + constant;
            // A nanosecond is 0.4 cycles.
            assert!((cycles - given).abs() <= 0.4, "{profile}: {bytes} B: {cycles} for {given}");
        }
    }
}

/// The throughput to which large messages tend, section V.A: about 408 and 1481 MB/s.
#[test]
fn throughput_on_the_mppa_tends_to_the_stated_rates() {
    for (profile, rate) in [("mppa-cc", 408.0), ("mppa-cc-dma", 1_481.0)] {
        let bytes = 1u64 << 30;
        let seconds = cycles(profile, 0, 15, bytes) / 400e6;
        let measured = bytes as f64 / seconds / 1e6;
        assert!((measured - rate).abs() < 1.0, "{profile}: {measured} MB/s");
    }
}

/// Table 4.2 of the rMPI thesis: words of payload in the first and in every other packet.
#[test]
fn headers_of_rmpi_leave_the_payload_of_table_4_2() {
    for (profile, first, other) in
        [("raw-gdn-v1", 26, 29), ("raw-gdn-v2", 24, 28), ("raw-gdn-v3", 27, 30)]
    {
        let model = LinkModel::profile(profile).unwrap();
        let packets = |words: u64| model.packets(4 * words);
        assert_eq!(packets(first), (1, 124), "{profile}");
        assert_eq!(packets(first + 1).0, 2, "{profile}");
        assert_eq!(packets(first + other), (2, 248), "{profile}");
        assert_eq!(packets(first + other + 1).0, 3, "{profile}");
        let (count, wire) = packets(first + 999 * other);
        assert_eq!((count, wire), (1_000, 124_000), "{profile}");
    }
    // The example of section 3.2.1: 70 words in three packets.
    assert_eq!(LinkModel::profile("raw-gdn-v1").unwrap().packets(4 * 70).0, 3);
}

/// Section 2.1 of the rMPI thesis: six hops from corner to corner, a cycle each.
#[test]
fn corners_of_the_raw_processor_are_six_hops_apart() {
    let model = LinkModel::profile("raw-gdn-v3").unwrap();
    assert_eq!(model.hops(0, 15), 6);
    assert_eq!(model.most_processes(), Some(16));
    // Six cycles at 425 MHz, and four header words of a cycle each.
    assert_eq!(model.one_way_ns(0, 15, 0), 15 + 10);
}

#[test]
fn processes_of_the_cluster_of_the_thesis_share_nodes() {
    let model = LinkModel::profile("kunpeng-4x4").unwrap();
    assert_eq!([0, 3, 4, 15].map(|process| model.node_of(process)), [0, 0, 1, 3]);
    assert!(model.one_way_ns(0, 3, 8) < model.one_way_ns(0, 4, 8));
}
