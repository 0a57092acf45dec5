//! What a trace says of the communication of a rank.

use std::collections::BTreeMap;

use crate::common;
use talpf::{Error, Rank, SyncMode};
use talpf_traces::Recorder;
use talpf_traces::paraver::{self, TraceInfo};

const EXPECTED: u64 = 95_000_004;
const OUTSTANDING: u64 = 95_000_011;

/// The values of every kind of event of a run, in order of time. Both ranks put an array to each
/// other in every round.
fn values(len: usize, modes: [SyncMode; 2]) -> BTreeMap<u64, Vec<i64>> {
    let recorder = Recorder::default();
    let mut config = common::unwatched(2, 2);
    config.runtime.recorder = Some(recorder.clone());
    let ends = common::run(config, move |ctx| async move {
        let mine = common::array(&ctx, vec![1u64; len])?;
        ctx.register_local(&mine)?;
        let inbox = common::array(&ctx, vec![0u64; len])?;
        let slot = ctx.register_global(&inbox).await?;
        for mode in modes {
            ctx.put(&mine.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
            ctx.sync(mode).window(&inbox.all()).await?;
        }
        Ok::<_, Error>(())
    });
    ends.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let info = TraceInfo { ranks: 2, workers: 2, ..TraceInfo::default() };
    let files = recorder.write_paraver(folder.path(), "t", &info).unwrap();
    let report = paraver::check(&files.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    let mut values = BTreeMap::<u64, Vec<i64>>::new();
    // Of rank 0: 2:cpu:application:rank:thread:time, and then pairs of kind and value.
    for line in std::fs::read_to_string(&files.prv).unwrap().lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if fields[0] == "2" && fields[3] == "1" {
            for pair in fields[6..].chunks(2) {
                let value = pair[1].parse().unwrap();
                values.entry(pair[0].parse().unwrap()).or_default().push(value);
            }
        }
    }
    values
}

#[test]
fn requests_outstanding_rise_and_fall_back_to_none() {
    let levels = &values(5_000, [SyncMode::msg(1); 2])[&OUTSTANDING];
    assert!(levels.iter().any(|level| *level > 0), "{levels:?}");
    assert_eq!(levels.last(), Some(&0));
}

#[test]
fn arrivals_expected_are_those_of_the_sync() {
    assert!(values(1, [SyncMode::msg(1); 2])[&EXPECTED].contains(&1));
    // The first sync learns it, the second has it when it begins.
    assert!(values(1, [SyncMode::CACHED; 2])[&EXPECTED].contains(&1));
}
