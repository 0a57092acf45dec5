//! Whatever several workers record, in whatever order, the trace is clean and
//! loses no message.

use crate::support::{Trace, info};
use proptest::prelude::*;
use talpf_traces::paraver::Rule;
use talpf_traces::{Event, LabelId, MessageKind, Recorder, State, SyncMode, ValueKind, WaitNs};

const RANKS: u32 = 3;
const WORKERS: u32 = 3;

fn mode() -> impl Strategy<Value = SyncMode> {
    prop::sample::select(SyncMode::all().collect::<Vec<_>>())
}

/// Numbers that are mostly small, so that halves meet, and sometimes extreme.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 0..4_u64, 1 => any::<u64>()]
}

fn event(names: Vec<LabelId>) -> impl Strategy<Value = Event> {
    let rank = || 0..RANKS;
    let kinds = &[ValueKind::OutstandingRequests, ValueKind::PollCompletions][..];
    prop_oneof![
        (any::<bool>(), rank(), number(), prop::sample::select(names), number()).prop_map(
            |(starts, rank, task, label, began_ns)| {
                Event::TaskSlice { starts, rank, task, label, began_ns }
            }
        ),
        (prop::sample::select(&State::ALL[..]), number())
            .prop_map(|(state, began_ns)| Event::StateSlice { state, began_ns }),
        (rank(), 0..3_u32, number(), mode(), any::<Option<u32>>()).prop_map(
            |(rank, lane, round, mode, expected)| Event::SyncBegin {
                rank,
                lane,
                round,
                mode,
                expected
            }
        ),
        (rank(), 0..3_u32, number())
            .prop_map(|(rank, lane, round)| crate::support::ended(rank, lane, round)),
        (rank(), rank(), number(), any::<u64>(), 0..100_u64).prop_map(
            |(rank, peer, message, bytes, waited)| {
                let waited = WaitNs::between(0, waited);
                Event::Send { kind: MessageKind::Put, rank, peer, message, bytes, waited }
            }
        ),
        (rank(), rank(), number(), 0..3_u32, number()).prop_map(
            |(rank, peer, message, lane, round)| Event::Receive {
                rank,
                peer,
                message,
                lane,
                round
            }
        ),
        (rank(), prop::sample::select(kinds), -9..9_i64)
            .prop_map(|(rank, kind, value)| Event::Value { rank, kind, value }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_run_gives_a_clean_trace(
        limit in prop_oneof![Just(1_000_usize), 0..40_usize],
        end_ns in 0..200_u64,
        steps in prop::collection::vec(
            (0..WORKERS, 0..6_u64, event(names(&Recorder::default())), prop::bool::weighted(0.02)),
            0..200,
        ),
    ) {
        let recorder = Recorder::new(limit);
        names(&recorder);
        let mut streams: Vec<_> = (0..WORKERS).map(|worker| recorder.stream(worker)).collect();
        let mut now = 0;
        let (mut sends, mut receives) = (0, 0);
        for (worker, passed, event, late) in steps {
            now += passed;
            let time_ns = if late { now / 2 } else { now };
            let event = before(time_ns, event);
            streams[worker as usize].record(time_ns, event);
            sends += usize::from(matches!(event, Event::Send { .. }));
            receives += usize::from(matches!(event, Event::Receive { .. }));
        }
        drop(streams);

        let trace = Trace::of(&recorder, &info(RANKS, WORKERS, end_ns));
        let report = trace.check();
        // Streams may be full, and a task may have two names.
        let expected = [Rule::Incomplete, Rule::TaskBeginsTwice];
        let is_clean = report.findings().iter().all(|finding| expected.contains(&finding.rule));
        prop_assert!(is_clean, "{report}\n{}", trace.prv);
        if recorder.dropped_count() == 0 {
            let lines = trace.records("3:").len();
            prop_assert_eq!(lines + noted(&trace, "sends had no receive"), sends);
            prop_assert_eq!(lines + noted(&trace, "receives had no send"), receives);
        }
    }
}

/// Returns the event with the begin of a slice before `time_ns`, mostly by a little.
fn before(time_ns: u64, mut event: Event) -> Event {
    if let Event::TaskSlice { began_ns, .. } | Event::StateSlice { began_ns, .. } = &mut event {
        *began_ns = time_ns.saturating_sub(began_ns.saturating_mul(4));
    }
    event
}

/// Interns a few names; gives their labels, and one that is not interned.
fn names(recorder: &Recorder) -> Vec<LabelId> {
    ["a", "b", "c"].map(|name| recorder.label(name)).into_iter().chain([LabelId::UNNAMED]).collect()
}

/// The count in the comment that says `what`.
fn noted(trace: &Trace, what: &str) -> usize {
    let comments = trace.comments();
    let count = comments.iter().find_map(|comment| comment.strip_suffix(what));
    count.map_or(0, |count| count.trim().parse().expect("count"))
}
