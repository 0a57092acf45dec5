//! Edges of the graph in a trace: which task has made each one ready.

use std::collections::HashMap;
use std::sync::Mutex;

use talpf_runtime::{Array, Config, Runtime};
use talpf_traces::paraver::{self, EventKind, Reader, Record};
use talpf_traces::{Extent, Keep, Limits, Recorder, TraceInfo};

use crate::common;

/// Returns the edges of a run on one worker in their order, by the names of their tasks; none without `edges`.
fn edges_of(edges: bool, program: impl FnOnce(&Runtime)) -> Vec<(String, String)> {
    let _watchdog = common::watchdog();
    let (keep, extent, control) = (Keep::First, Extent::Whole, false);
    let limits = Limits { records: 1 << 16, keep, extent, edges, control };
    let recorder = Recorder::with_limits(limits);
    let config = Config { workers: 1, recorder: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    program(&runtime);
    runtime.shut_down().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let info = TraceInfo { ranks: 1, workers: 1, ..TraceInfo::default() };
    let files = recorder.write_paraver(folder.path(), "edges", &info).unwrap();
    let report = paraver::check(&files.prv).unwrap();
    assert!(report.is_clean(), "{report}");
    let mut reader = Reader::open(files.prv).unwrap();
    let (mut types, mut edges) = (HashMap::new(), Vec::new());
    let is = |kind: EventKind, number: u32| kind.number() == number;
    reader
        .read(|record| {
            let Record::Event { values, .. } = record else { return };
            for pair in values.windows(2) {
                let [(kind, value), (next_kind, next)] = [pair[0], pair[1]];
                if is(EventKind::TaskId, kind) && is(EventKind::TaskType, next_kind) {
                    types.insert(value, next);
                } else if is(EventKind::TaskReady, kind) {
                    assert!(is(EventKind::ReadyBy, next_kind), "{values:?}");
                    edges.push((next, value));
                }
            }
        })
        .unwrap();
    let name = |task| match types.get(&task) {
        Some(kind) => reader.value_label(EventKind::TaskType.number(), *kind).into_owned(),
        None => task.to_string(),
    };
    edges.into_iter().map(|(by, task)| (name(by), name(task))).collect()
}

/// Spawns a task that writes and two that read, inside another.
fn spawned(runtime: &Runtime) {
    let group = (**runtime).clone();
    let line = Array::new(runtime, vec![0_u64; 4], 4).unwrap();
    let outer = runtime.task("outer").run(move || {
        let write = group.task("write").inout(&line.all());
        write.spawn(|mut line| line.iter_mut().for_each(|cell| *cell += 1)).unwrap();
        for name in ["first", "second"] {
            group.task(name).input(&line.all()).spawn(|_| ()).unwrap();
        }
    });
    runtime.block_on(outer.unwrap()).unwrap().unwrap();
    runtime.wait_blocking().unwrap();
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(by, task)| ((*by).to_owned(), (*task).to_owned())).collect()
}

#[test]
fn a_spawned_task_has_an_edge_from_the_last_one_that_it_waited_for() {
    let mut edges = edges_of(true, spawned);
    // The array is freed behind its last reader.
    edges.retain(|(_, task)| task != "free");
    edges.sort();
    assert_eq!(edges, pairs(&[("outer", "write"), ("write", "first"), ("write", "second")]));
}

#[test]
fn without_the_limit_there_are_none() {
    assert_eq!(edges_of(false, spawned), []);
}

#[test]
fn a_replayed_task_has_an_edge_in_every_step() {
    let edges = edges_of(true, |runtime| {
        let line = Array::new(runtime, vec![0_u64; 4], 4).unwrap();
        let declared = runtime.iterate(3, |iteration| {
            for name in ["forth", "back"] {
                iteration.task(name).inout(&line.all()).spawn(|_| ())?;
            }
            Ok::<_, talpf_runtime::Error>(())
        });
        declared.unwrap();
        runtime.wait_blocking().unwrap();
    });
    let of_steps: Vec<_> =
        edges.into_iter().filter(|(by, _)| ["forth", "back"].contains(&by.as_str())).collect();
    let step = [("forth", "back"), ("back", "forth")];
    assert_eq!(of_steps, pairs(&[step, step, step].concat()[..5]));
}

#[test]
fn a_task_that_another_wakes_has_an_edge() {
    let edges = edges_of(true, |runtime| {
        let (sender, receiver) = futures::channel::oneshot::channel::<()>();
        let waits = runtime.task("waits").run_async(move || async move { receiver.await.unwrap() });
        let sender = Mutex::new(Some(sender));
        let wakes = runtime.task("wakes").run(move || {
            let sender = sender.lock().unwrap().take().unwrap();
            sender.send(()).unwrap();
        });
        for task in [waits, wakes] {
            runtime.block_on(task.unwrap()).unwrap().unwrap();
        }
    });
    // The two may run in either order.
    assert!(edges == pairs(&[("wakes", "waits")]) || edges.is_empty(), "{edges:?}");
}
