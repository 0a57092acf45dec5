//! A run that is cut anywhere and merged again has the same states, tasks, syncs and messages, but
//! for messages across the edges.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use talpf_traces::paraver::{Communication, Reader, Record, check, cut, merge};
use talpf_traces::{Event, MessageKind, Recorder, WaitNs};

use crate::support::{ended, info};

/// Time of each state of each row, and the events; slices and messages end at random times.
type Contents = (BTreeMap<(usize, u32), u64>, Vec<(usize, u64, u32, i64)>, Vec<(u64, u64)>);

fn contents(prv: &Path) -> Contents {
    let (mut states, mut events, mut messages) = (BTreeMap::new(), Vec::new(), Vec::new());
    let visit = |record: Record<'_>| match record {
        Record::State { row, begin_ns, end_ns, state, .. } => {
            *states.entry((row, state)).or_default() += end_ns - begin_ns;
        }
        Record::Event { row, time_ns, values, .. } => {
            events.extend(values.iter().map(|(kind, value)| (row, time_ns, *kind, *value)));
        }
        Record::Communication(Communication { logical_send_ns, logical_receive_ns, .. }) => {
            messages.push((logical_send_ns, logical_receive_ns));
        }
    };
    Reader::open(prv).unwrap().read(visit).unwrap();
    (states, events, messages)
}

/// Two ranks on two workers: slices of tasks, rounds that end, and messages to the other rank.
fn recorder(steps: &[(u64, u64)]) -> (Recorder, u64) {
    let recorder = Recorder::default();
    let label = recorder.label("stencil");
    let (mut now, mut task) = (0, 0);
    let mut streams = [recorder.stream(0), recorder.stream(1)];
    for (index, &(wait, length)) in steps.iter().enumerate() {
        let began_ns = now + wait;
        now = began_ns + length;
        task += 1;
        let rank = (index % 3 / 2) as u32;
        let slice = Event::TaskSlice { starts: true, rank, task, label, began_ns };
        let waited = WaitNs::between(0, 0);
        let (message, bytes, kind) = (task, 8, MessageKind::Put);
        let [own, other] = [index % 2, (index + 1) % 2];
        streams[own].record(now, slice);
        streams[own]
            .record(now, Event::Send { kind, rank, peer: 1 - rank, message, bytes, waited });
        now += 3;
        let receive = Event::Receive { rank: 1 - rank, peer: rank, message, lane: 0, round: task };
        streams[other].record(now, receive);
        streams[other].record(now, ended(1 - rank, 0, task));
    }
    drop(streams);
    (recorder, now + 5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn at_any_times(
        steps in prop::collection::vec((0..9_u64, 0..9_u64), 1..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (recorder, end_ns) = recorder(&steps);
        let files = recorder.write_paraver(folder.path(), "run", &info(2, 2, end_ns)).unwrap();
        let mut times: Vec<u64> = cuts.iter().map(|cut| 1 + cut.index(end_ns as usize - 1) as u64).collect();
        times.extend([0, end_ns]);
        times.sort_unstable();
        times.dedup();
        let part = |edges: &[u64]| {
            let out = folder.path().join(format!("part-{}.prv", edges[0]));
            let to_ns = Some(edges[1]).filter(|to_ns| *to_ns < end_ns);
            cut(&files.prv, edges[0], to_ns, &out).unwrap();
            let report = check(&out).unwrap();
            assert!(report.is_clean(), "{report}\n{}", fs::read_to_string(&out).unwrap());
            out
        };
        let parts: Vec<_> = times.windows(2).map(part).collect();
        let merged = merge(&parts, folder.path().join("whole.prv")).unwrap();
        let report = check(&merged.prv).unwrap();
        prop_assert!(report.is_clean(), "{report}\n{}", fs::read_to_string(&merged.prv).unwrap());
        let (states, events, mut messages) = contents(&files.prv);
        messages.retain(|(from, to)| {
            !times[1..times.len() - 1].iter().any(|edge| from < edge && to > edge)
        });
        let found = contents(&merged.prv);
        prop_assert_eq!(&found.0, &states);
        prop_assert_eq!(&found.1, &events);
        prop_assert_eq!(&found.2, &messages);
    }
}
