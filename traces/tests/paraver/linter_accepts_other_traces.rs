//! Traces of other tools, and everything on the right side of a limit.

use crate::support::Trace;
use crate::support::sample::{File, changed};
use talpf_traces::paraver::Rule;

fn bare(prv: &str) -> Trace {
    Trace { prv: prv.to_owned(), pcf: None, row: None }
}

#[test]
fn trace_without_nodes_or_states() {
    let report =
        bare("#Paraver (x):20_ns:0:1:1(2:1)\n2:0:1:1:1:0:1:5\n2:0:1:1:2:20:1:0\n").assert_clean();
    assert_eq!((report.counts().nodes, report.counts().cpus), (0, 0));
}

#[test]
fn several_applications_with_either_separator() {
    for separator in [",", ":"] {
        let header = format!("#Paraver (x):9_us:2:2:1(1:1){separator}2(1:2,2:2)");
        let records = "2:1:1:1:1:0:1:5\n2:2:2:1:1:3:1:5\n2:2:2:2:1:4:1:5\n2:2:2:2:2:9:1:5\n";
        let report = bare(&format!("{header}\n{records}")).assert_clean();
        assert_eq!(report.breaches(Rule::UnusedThread), 0);
        assert_eq!((report.counts().ranks, report.counts().threads), (3, 4));
        assert_eq!(report.counts().unit, "us");
    }
}

#[test]
fn messages_to_oneself_and_between_communicators() {
    let header = "#Paraver (x):9_ms:1(1):1:1(1:1),2";
    let records = "c:1:1:1:1\ni:1:2:1:1\n3:1:1:1:1:1:1:1:1:1:1:9:1:0:-1\n";
    bare(&format!("{header}\n{records}")).assert_clean();
}

#[test]
fn numbers_at_their_limits() {
    for (old, new) in [
        (":10:7:", ":2147483647:0:"),
        (":10:7:", ":10:9007199254740992:"),
        (":10:7:", ":10:-9007199254740992:"),
        (":4096:1", ":9223372036854775807:9223372036854775807"),
    ] {
        let mut trace = changed(File::Prv, old, new);
        trace.pcf = None;
        trace.assert_clean();
    }
    bare("#Paraver (x):9_ns:1(65535):1:1(65535:1)\n2:65535:1:1:65535:9:1:1\n").assert_clean();
}

#[test]
fn event_without_a_cpu() {
    changed(File::Prv, "2:1:1:1:1:10:", "2:0:1:1:1:10:").assert_clean();
}

#[test]
fn label_files_with_everything_that_is_allowed() {
    let mut trace = changed(
        File::Pcf,
        "EVENT_TYPE\n0 11 Task type\nVALUES\n",
        "GRADIENT_COLOR\n0 {0,0,0}\nGRADIENT_NAMES\n0 Gradient 0\n\n# shared values\n\
         \t EVENT_TYPE \n9 12 Other \u{e4} type\n0\t11\tTask type\nVALUES\n-3 negative\n\
         PRECISION 2\n",
    );
    trace.prv = trace.prv.replace(":10:7:11:1", ":10:7:11:1:12:-3");
    let report = trace.assert_clean();
    assert!(report.findings().is_empty(), "{report}");
}
