//! A synchronisation is drawn on the thread where it began, whichever worker
//! sees its end; of several at once, the last begun.

use crate::support::{Trace, ended, info, recorded};
use talpf_traces::{Event, SyncArrivals, SyncMode, ValueKind};

fn begin(lane: u32, round: u64, arrivals: SyncArrivals) -> Event {
    let mode = SyncMode { arrivals, barrier: true, ack: false };
    Event::SyncBegin { rank: 0, lane, round, mode, expected: None }
}

fn end(lane: u32, round: u64) -> Event {
    ended(0, lane, round)
}

#[test]
fn ends_on_any_worker_and_in_any_order() {
    let trace = Trace::of(
        &recorded(&[
            (0, 10, begin(0, 0, SyncArrivals::Default)),
            (0, 20, begin(1, 0, SyncArrivals::Cached)),
            (0, 30, begin(1, 1, SyncArrivals::Msg)),
            (1, 40, end(1, 0)),
            (1, 50, end(1, 1)),
            (1, 60, end(0, 0)),
            (1, 70, end(0, 0)),
        ]),
        &info(1, 2, 100),
    );
    trace.assert_clean();
    let shown = |time: u64, mode: i64, lane: u64, round: u64| {
        format!("2:1:1:1:1:{time}:95000001:{mode}:95000002:{lane}:95000003:{round}:95000004:0")
    };
    let open = |count: u64| format!(":95000010:{count}");
    let ended = |time: u64, round: u64, asked: u64, mode: u64| {
        format!(
            "2:2:1:1:2:{time}:95000005:{round}:95000007:3:95000008:2:95000006:{asked}\
             :95000009:{mode}"
        )
    };
    assert_eq!(
        trace.records("2:"),
        [
            shown(10, 2, 1, 1) + &open(1),
            shown(20, 6, 2, 1) + &open(2),
            shown(30, 10, 2, 2) + &open(3),
            // At 40 a hidden one ends: nothing to show but its times.
            format!("2:1:1:1:1:40{}", open(2)),
            ended(40, 1, 20, 6),
            shown(50, 2, 1, 1) + &open(1),
            ended(50, 2, 20, 10),
            shown(60, 0, 0, 0) + &open(0),
            ended(60, 1, 50, 2),
            // Its begin was not recorded.
            "2:2:1:1:2:70:95000005:1:95000007:3:95000008:2".to_owned(),
        ],
    );
}

#[test]
fn levels_of_a_rank_are_on_its_first_thread() {
    let level = |value| Event::Value { rank: 0, kind: ValueKind::OutstandingRequests, value };
    let trace = Trace::of(&recorded(&[(1, 10, level(2)), (0, 20, level(1))]), &info(1, 2, 30));
    trace.assert_clean();
    assert_eq!(trace.records("2:"), ["2:1:1:1:1:10:95000011:2", "2:1:1:1:1:20:95000011:1"],);
}
