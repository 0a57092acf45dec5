//! The latest event of a cpu is on the row that runs there, so that views by cpu agree with views
//! by row.

use std::collections::BTreeMap;

use crate::support::{Trace, info, recorded, slice};
use talpf_traces::{Event, ValueKind};

fn value(rank: u32, kind: ValueKind) -> Event {
    Event::Value { rank, kind, value: 3 }
}

fn sample() -> Trace {
    Trace::of(
        &recorded(&[
            (0, 12, value(1, ValueKind::PollCompletions)),
            (0, 14, value(0, ValueKind::PollCompletions)),
            (0, 20, slice(0, 1, 10)),
            (0, 30, slice(1, 3, 20)),
            (1, 16, value(1, ValueKind::OutstandingRequests)),
            (1, 25, value(1, ValueKind::OutstandingRequests)),
            (1, 40, slice(1, 2, 15)),
        ]),
        &info(2, 2, 50),
    )
}

#[test]
fn event_on_a_row_that_does_not_run_has_no_cpu() {
    let trace = sample();
    trace.assert_clean();
    let poll = "95000012:3";
    let lines = |kind| -> Vec<_> {
        trace.records("2:").into_iter().filter(|line| line.contains(kind)).collect()
    };
    assert_eq!(lines(poll), ["2:0:1:2:1:12:95000012:3", "2:1:1:1:1:14:95000012:3"]);
    // Levels are on the rank's first row, whose worker runs another rank at 16, and it at 25.
    assert_eq!(lines("95000011"), ["2:0:1:2:1:16:95000011:3", "2:1:1:2:1:25:95000011:3"]);
    // Worker 0 has left the row whose slice ends at 20.
    assert!(trace.records("2:0:1:1:1:20:10:0:11:0").len() == 1, "{}", trace.prv);
}

#[test]
fn every_line_of_a_cpu_is_on_the_row_of_its_last_state() {
    let trace = sample();
    let mut runs = BTreeMap::new();
    for line in trace.prv.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        match fields[..] {
            ["1", cpu, _, rank, _, _, _, state] if state != "2" => {
                runs.insert(cpu, rank);
            }
            ["2", cpu, _, rank, ..] if cpu != "0" => assert_eq!(runs[cpu], rank, "{line}"),
            _ => {}
        }
    }
}
