//! A sync that is still open at the end of the run is closed there.

use crate::support::{Trace, info, recorded, slice};
use talpf_traces::{Event, SyncArrivals, SyncMode};

fn sync(round: u64) -> Event {
    let mode = SyncMode { arrivals: SyncArrivals::Msg, barrier: false, ack: false };
    Event::SyncBegin { rank: 0, lane: 0, round, mode, expected: None }
}

#[test]
fn open_syncs_end_at_the_last_time() {
    let trace =
        Trace::of(&recorded(&[(0, 11, sync(0)), (0, 40, slice(0, 4, 10))]), &info(1, 1, 50));
    trace.assert_clean();
    assert_eq!(
        trace.records("2:").last(),
        Some(&"2:1:1:1:1:50:95000001:0:95000002:0:95000003:0:95000004:0"),
    );
}

#[test]
fn sync_that_begins_at_the_last_time_ends_there_too() {
    let trace = Trace::of(&recorded(&[(0, 50, sync(0))]), &info(1, 1, 50));
    trace.assert_clean();
    assert_eq!(
        trace.records("2:"),
        ["2:1:1:1:1:50:95000001:9:95000002:1:95000003:1:95000004:0\
             :95000010:1:95000001:0:95000002:0:95000003:0:95000004:0"],
    );
}
