//! A dump shows all tasks and the accesses that they wait for, even while the program runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use talpf_runtime::{Array, Children, Config, Dump, Monitor, PendingEvent, Runtime, Standing};

use crate::common::{self, Flag};

fn labels(dump: &Dump, standing: Standing) -> Vec<&'static str> {
    let mut labels: Vec<_> = dump.labels(standing).collect();
    labels.sort_unstable();
    labels
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
}

#[test]
fn every_standing_of_a_task_is_shown() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let group = runtime.group("part", 1);
    let cells = Array::new(&group, vec![0u64; 8], 4).unwrap();
    let event = group.task("held").run(PendingEvent::of_current_task).unwrap();
    let event = runtime.block_on(event).unwrap().unwrap().unwrap();
    let (begun, go) = (Flag::default(), Flag::default());
    let asleep = runtime.group("other", 2);
    let waits = group.clone();
    let sleeper = asleep.task("sleeper");
    sleeper.spawn_async(move || async move { drop(waits.wait().await) }).unwrap();
    let suspended = || runtime.dump().count(Standing::Suspended) == 1;
    assert!(common::eventually(suspended), "{}", runtime.dump());
    let (begins, goes) = (begun.clone(), go.clone());
    let holder = group.task("holder").inout(&cells.region(1..3));
    holder
        .spawn(move |_cells| {
            begins.set();
            assert!(common::eventually(|| goes.is_set()));
        })
        .unwrap();
    assert!(common::eventually(|| begun.is_set()));
    group.task("reader").input(&cells.all()).spawn(|_| ()).unwrap();
    group.task("free to go").spawn(|| ()).unwrap();
    let dump = runtime.dump();
    go.set();
    drop(event);
    assert_eq!(labels(&dump, Standing::Running), ["holder"]);
    assert_eq!(labels(&dump, Standing::Ready), ["free to go"]);
    assert_eq!(labels(&dump, Standing::Suspended), ["sleeper"]);
    assert_eq!(labels(&dump, Standing::Ended), ["held"]);
    assert_eq!(labels(&dump, Standing::Waiting), ["reader"]);
    let region = format!("inout array {}[1..3]", cells.id());
    contains(
        &dump.to_string(),
        &[
            "1 of 1 worker in a task; 5 tasks: 1 running, 1 ready, 1 suspended, 1 ended but held, \
             1 waiting\n",
            "task `holder` of part runs\n",
            &format!("{region}, awaited by `reader`\n"),
            "task `reader` of part waits for 1 earlier access, of `holder`\n",
            "task `sleeper` of other is suspended and waits for its group's tasks\n",
            "task `held` of part has ended and waits for open guards or events\n",
        ],
    );
    contains(
        &dump.to_graphviz(),
        &["digraph tasks {", "label=\"part\"", "holder\\nruns", &format!("[label=\"{region}\"]")],
    );
    let group = group.clone();
    group.wait_blocking().unwrap();
}

#[test]
fn a_program_that_runs_is_not_disturbed() {
    const TASKS: u64 = 20_000;
    let _watchdog = common::watchdog();
    let monitor = Monitor::default();
    let config = Config { workers: 2, monitor: Some(monitor.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let over = AtomicBool::new(false);
    let sums = thread::scope(|scope| {
        let looker = scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                let dump = monitor.dump().unwrap();
                assert!(dump.to_string().contains(" of 2 workers in a task; "));
                assert!(dump.to_graphviz().ends_with("}\n"));
            }
        });
        let group = (*runtime).clone();
        let program = async move {
            let mut sum = 0;
            // Arrays are made and freed while dumps are taken.
            for _ in 0..20 {
                let cells = Array::new(&group, vec![0u64; 16], 2).unwrap();
                for task in 0..TASKS / 20 {
                    let tile = cells.tile(task as usize % cells.tiles());
                    group.task("add").inout(&tile).spawn(|mut tile| tile[0] += 1).unwrap();
                }
                let all = group.task("sum").input(&cells.all());
                sum += all.run(|all| all.iter().sum::<u64>()).unwrap().await.unwrap();
            }
            sum
        };
        let sums = runtime.block_on(runtime.spawn_main("main", program).unwrap());
        over.store(true, Ordering::SeqCst);
        looker.join().unwrap();
        sums.unwrap().unwrap()
    });
    assert_eq!(sums, TASKS);
}

#[test]
fn a_runtime_without_tasks_has_none() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(2);
    let dump = runtime.dump();
    assert_eq!(dump.count(Standing::Running) + dump.count(Standing::Waiting), 0);
    contains(&dump.to_string(), &["2 workers in a task; 0 tasks:"]);
}

#[test]
fn nested_tasks_are_shown_in_their_parents() {
    let _watchdog = common::watchdog();
    let runtime = common::runtime(1);
    let cells = Array::new(&runtime, vec![0u64; 8], 2).unwrap();
    let (begun, go) = (Flag::default(), Flag::default());
    let (begins, goes) = (begun.clone(), go.clone());
    let parent = runtime.task("parent").inout(&cells.all()).run(move |all| {
        let (children, all) = (Children::of_current_task().unwrap(), all.lend());
        let half = children.task("half").inout(&all.region(..4));
        half.spawn(move |half| {
            let (children, half) = (Children::of_current_task().unwrap(), half.lend());
            let quarter = children.task("quarter").inout(&half.all());
            quarter
                .spawn(move |_quarter| {
                    begins.set();
                    assert!(common::eventually(|| goes.is_set()));
                })
                .unwrap();
        })
        .unwrap();
        children.task("whole").inout(&all.all()).spawn(|_all| ()).unwrap();
    });
    runtime.block_on(parent.unwrap()).unwrap().unwrap();
    assert!(common::eventually(|| begun.is_set()));
    let dump = runtime.dump();
    go.set();
    let array = cells.id();
    contains(
        &dump.to_string(),
        &[
            "task `parent` of the runtime has ended and waits for 2 children\n",
            "task `half` in `parent` of the runtime has ended and waits for a child\n",
            "task `quarter` in `half` of the runtime runs\n",
            &format!("inout array {array}[0..4], awaited by `whole`\n"),
            "task `whole` in `parent` of the runtime waits for ",
        ],
    );
    contains(&dump.to_graphviz(), &["[style=dotted, arrowhead=none, label=\"in\"];"]);
    runtime.wait_blocking().unwrap();
}
