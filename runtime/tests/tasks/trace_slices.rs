//! A task that runs inside another one interrupts the slice of that one in a trace.

use std::fs;

use talpf_runtime::{Config, Runtime};
use talpf_traces::{Recorder, TraceInfo};

use crate::common;

#[test]
fn of_an_inline_task_that_an_action_spawns() {
    let _watchdog = common::watchdog();
    let recorder = Recorder::default();
    let config = Config { workers: 1, recorder: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let group = runtime.group("other", 1);
    let outer = runtime.task("outer").run(move || {
        let inner = group.clone();
        let task = group.task("acts").on_ready(move |_| {
            inner.task("inner").inline().spawn(|| ()).unwrap();
        });
        task.spawn(|| ()).unwrap();
    });
    runtime.block_on(outer.unwrap()).unwrap().unwrap();
    runtime.shut_down().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let info = TraceInfo { ranks: 2, workers: 1, ..TraceInfo::default() };
    let files = recorder.write_paraver(folder.path(), "slices", &info).unwrap();
    let trace = fs::read_to_string(files.prv).unwrap();
    let corrected = trace.lines().find(|line| line.contains("task slices"));
    assert_eq!(corrected, None, "slices end where others begin");
}
