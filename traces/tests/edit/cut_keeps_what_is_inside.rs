//! A part of a trace has what is inside, and is clean.

use std::fs;
use std::path::PathBuf;

use talpf_traces::paraver::{check, cut};
use tempfile::TempDir;

use crate::support::sample::sample;

fn written(prv: &str) -> (TempDir, PathBuf) {
    let (folder, sample) = (TempDir::new().unwrap(), sample());
    let path = folder.path().join("run.prv");
    fs::write(&path, prv).unwrap();
    fs::write(path.with_extension("pcf"), sample.pcf.unwrap()).unwrap();
    fs::write(path.with_extension("row"), sample.row.unwrap()).unwrap();
    (folder, path)
}

fn part(prv: &str, from_ns: u64, to_ns: Option<u64>) -> String {
    let (folder, path) = written(prv);
    let files = cut(&path, from_ns, to_ns, folder.path().join("part.prv")).unwrap();
    let report = check(&files.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    for (from, to) in [("pcf", &files.pcf), ("row", &files.row)] {
        assert_eq!(fs::read(path.with_extension(from)).unwrap(), fs::read(to).unwrap());
    }
    fs::read_to_string(files.prv).unwrap()
}

#[test]
fn open_states_and_tasks_are_shown_from_the_edge() {
    let expected = "\
#Paraver (21/11/2026 at 02:40):00000000000000000050_ns:2(2,2):1:2(1:1,1:2),1
c:1:1:2:1:2
# a comment
1:1:1:1:1:0:10:1
1:3:1:2:1:0:50:0
2:1:1:1:1:0:10:7:11:1
1:2:1:1:1:10:50:0
2:1:1:1:1:10:10:0:11:0
# begins at 30 ns of the run
# 1 messages crossed an edge of this part
";
    assert_eq!(part(&sample().prv, 30, Some(80)), expected);
}

#[test]
fn the_whole_is_a_part() {
    let expected = format!("{}# begins at 0 ns of the run\n", sample().prv);
    assert_eq!(part(&sample().prv, 0, None), expected);
}

#[test]
fn an_event_at_an_edge_is_in_one_part() {
    let event = "2:1:1:1:1:40:10:0:11:0";
    assert!(!part(&sample().prv, 0, Some(40)).contains(event));
    assert!(part(&sample().prv, 40, None).contains("2:1:1:1:1:0:10:0:11:0"));
    // The last moment of the trace is not one of a later part.
    let last = sample().prv + "2:1:1:1:1:100:10:8\n";
    assert!(part(&last, 90, None).contains("2:1:1:1:1:10:10:8"));
}

#[test]
fn a_part_of_a_part_begins_on_the_clock_of_the_run() {
    let inner = part(&part(&sample().prv, 10, None), 15, Some(40));
    assert!(inner.contains("# begins at 25 ns of the run\n"), "{inner}");
    assert_eq!(inner.matches("begins at").count(), 1, "{inner}");
}

#[test]
fn a_part_without_time_is_an_error() {
    let (folder, path) = written(&sample().prv);
    for (from_ns, to_ns) in [(100, None), (40, Some(40)), (50, Some(40))] {
        let out = folder.path().join("part.prv");
        let error = cut(&path, from_ns, to_ns, &out).unwrap_err().to_string();
        assert!(error.contains("the trace ends at 100 ns"), "{error}");
        assert!(!out.exists());
    }
}
