//! Whatever is still open at the end of the run is closed there; ends that do
//! not fit are counted, and nothing else changes.

use crate::support::{Trace, begin, end, info, recorded};
use talpf_traces::{Event, SyncArrivals, SyncMode};

fn sync(round: u64) -> Event {
    let mode = SyncMode { arrivals: SyncArrivals::Msg, barrier: false, ack: false };
    Event::SyncBegin { rank: 0, lane: 0, round, mode, expected: None }
}

#[test]
fn open_slices_and_syncs_end_at_the_last_time() {
    let trace = Trace::of(&recorded(&[(0, 10, begin(0, 4)), (0, 11, sync(0))]), &info(1, 1, 50));
    trace.assert_clean();
    assert_eq!(trace.records("1:"), ["1:1:1:1:1:0:10:0", "1:1:1:1:1:10:50:1"]);
    assert_eq!(
        trace.records("2:").last(),
        Some(&"2:1:1:1:1:50:10:0:11:0:95000001:0:95000002:0:95000003:0:95000004:0"),
    );
    assert_eq!(trace.comments(), ["1 task slices were open at the end of the trace and end there"],);
}

#[test]
fn slice_that_begins_at_the_last_time_ends_there_too() {
    let trace = Trace::of(&recorded(&[(0, 50, begin(0, 4))]), &info(1, 1, 50));
    trace.assert_clean();
    assert_eq!(trace.records("2:"), ["2:1:1:1:1:50:10:4:11:1:10:0:11:0"]);
}

#[test]
fn begin_ends_the_slice_before_it() {
    let trace = Trace::of(
        &recorded(&[
            (0, 10, begin(0, 4)),
            (0, 20, begin(1, 5)),
            (0, 30, end(0, 4)),
            (0, 40, end(1, 5)),
        ]),
        &info(2, 1, 50),
    );
    trace.assert_clean();
    assert_eq!(
        trace.records("2:"),
        [
            "2:1:1:1:1:10:10:4:11:1",
            "2:0:1:1:1:20:10:0:11:0",
            "2:1:1:2:1:20:10:5:11:1",
            "2:1:1:2:1:40:10:0:11:0",
        ],
    );
    assert_eq!(
        trace.comments(),
        [
            "1 task slices had no end and stop where the next begins",
            "1 ends of task slices had no begin and are left out",
        ],
    );
}
