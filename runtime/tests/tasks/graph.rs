//! The graph of a run is that of the program, however the run goes.

use talpf_runtime::operator::{InOrder, Sum};
use talpf_runtime::{
    Array, Children, Config, Dependency, Error, GraphRecorder, Group, Outcome, Runtime, TaskGraph,
    Waits, fail_current_task,
};

use crate::common;

/// Returns the graph of `program` on two workers, recorded up to `limit` tasks.
fn graph_of(limit: usize, program: impl Fn(&Group)) -> TaskGraph {
    let _watchdog = common::watchdog();
    let recorder = GraphRecorder::new(limit);
    let config = Config { workers: 2, graph: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    program(&runtime.group("the group", 1));
    // Some programs are there to fail.
    let _ = runtime.shut_down();
    recorder.graph()
}

fn labels(graph: &TaskGraph) -> Vec<&str> {
    graph.tasks().iter().map(|task| task.label).collect()
}

fn edges(graph: &TaskGraph, waits: Waits) -> Vec<(usize, usize)> {
    let of = graph.dependencies().iter().filter(|dependency| dependency.waits == waits);
    of.map(|&Dependency { from, to, .. }| (from, to)).collect()
}

fn line(group: &Group, len: usize) -> Array<u64> {
    Array::new(group, vec![0; len], 4).unwrap()
}

/// Spawns a writer, two readers, a writer of a half, a reader of the other one, a task without
/// accesses.
fn diamond(group: &Group) {
    let cells = line(group, 8);
    group.task("fill").output(&cells.all()).spawn(|_| ()).unwrap();
    // Each waits, so that what it depends on is complete.
    group.wait_blocking().unwrap();
    group.task("left").input(&cells.tile(0)).spawn(|_| ()).unwrap();
    group.task("right").input(&cells.tile(1)).spawn(|_| ()).unwrap();
    group.wait_blocking().unwrap();
    group.task("update").inout(&cells.region(0..4)).spawn(|_| ()).unwrap();
    group.task("late").input(&cells.region(6..8)).spawn(|_| ()).unwrap();
    group.task("alone").spawn(|| ()).unwrap();
}

#[test]
fn dependencies_are_those_of_the_program_whatever_is_complete() {
    for _ in 0..5 {
        let graph = graph_of(100, diamond);
        assert_eq!(labels(&graph), ["fill", "left", "right", "update", "late", "alone"]);
        assert_eq!(edges(&graph, Waits::Body), [(0, 1), (0, 2), (0, 4), (1, 3)]);
        assert!(graph.tasks().iter().all(|task| &*task.group == "the group"));
        assert!(graph.tasks().iter().all(|task| task.outcome == Outcome::Fine));
    }
}

#[test]
fn commutative_tasks_have_no_order_among_them() {
    let graph = graph_of(100, |group| {
        let cell = line(group, 1);
        group.task("zero").output(&cell.all()).spawn(|mut cell| cell[0] = 0).unwrap();
        for _ in 0..3 {
            group.task("add").commutative(&cell.all()).spawn(|mut cell| cell[0] += 1).unwrap();
        }
        group.task("read").input(&cell.all()).spawn(|cell| assert_eq!(cell[0], 3)).unwrap();
    });
    assert_eq!(edges(&graph, Waits::Body), [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4)]);
}

#[test]
fn tasks_of_one_reduction_have_no_order_and_those_of_two_have() {
    let graph = graph_of(100, |group| {
        let cells = line(group, 4);
        for _ in 0..2 {
            group.task("sum").reduction(&cells.all(), Sum).spawn(|_| ()).unwrap();
        }
        group.task("in order").reduction(&cells.all(), InOrder(Sum)).spawn(|_| ()).unwrap();
        group.task("part").reduction(&cells.region(0..2), InOrder(Sum)).spawn(|_| ()).unwrap();
        group.task("sum").reduction(&cells.all(), Sum).spawn(|_| ()).unwrap();
    });
    let expected = [(0, 2), (1, 2), (2, 3), (2, 4), (3, 4)];
    assert_eq!(edges(&graph, Waits::Body), expected);
}

#[test]
fn children_lie_in_their_parent_and_are_ordered_among_themselves() {
    let graph = graph_of(100, |group| {
        let cells = line(group, 8);
        let parent = group.task("parent").inout(&cells.all());
        parent
            .spawn(|cells| {
                let (children, cells) = (Children::of_current_task().unwrap(), cells.lend());
                children.task("write").output(&cells.all()).spawn(|_| ()).unwrap();
                children.task("read").input(&cells.region(..3)).spawn(|_| ()).unwrap();
            })
            .unwrap();
        group.wait_blocking().unwrap();
        group.task("after").input(&cells.region(..1)).spawn(|_| ()).unwrap();
    });
    assert_eq!(labels(&graph), ["parent", "write", "read", "after"]);
    let parents: Vec<_> = graph.tasks().iter().map(|task| task.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0), None]);
    assert_eq!(edges(&graph, Waits::Body), [(0, 3), (1, 2)]);
}

#[test]
fn weak_accesses_wait_with_their_children() {
    let graph = graph_of(100, |group| {
        let cells = line(group, 8);
        group.task("fill").output(&cells.all()).spawn(|_| ()).unwrap();
        group.task("weak").weak_inout(&cells.all()).spawn(|_| ()).unwrap();
        let both = group.task("both").input(&cells.tile(0)).weak_input(&cells.tile(1));
        both.spawn(|_, _| ()).unwrap();
    });
    assert_eq!(edges(&graph, Waits::Children), [(0, 1)]);
    assert_eq!(edges(&graph, Waits::Body), [(1, 2)], "one access waits with the body");
}

/// Replays `steps` steps that shift one line into another, and back.
fn shift(group: &Group, steps: usize) {
    let lines = [line(group, 4), line(group, 4)];
    let declared = group.iterate::<Error>(steps, |iteration| {
        let forth = iteration.task("forth").input(&lines[0].all()).output(&lines[1].all());
        forth.spawn(|_, _| ())?;
        let back = iteration.task("back").input(&lines[1].all()).output(&lines[0].all());
        back.spawn(|_, _| ())
    });
    declared.unwrap();
}

#[test]
fn an_iterated_graph_is_noted_once_with_the_number_of_its_steps() {
    let graph = graph_of(100, |group| shift(group, 50));
    assert_eq!(labels(&graph), ["iterate", "forth", "back"]);
    assert_eq!(graph.tasks()[0].steps, Some(50));
    assert!(graph.tasks()[1..].iter().all(|task| task.parent == Some(0)));
    assert_eq!(edges(&graph, Waits::Body), [(1, 2)]);
    assert_eq!(edges(&graph, Waits::NextIteration), [(2, 1)]);
}

#[test]
fn an_iterated_graph_is_cut_at_the_limit() {
    let graph = graph_of(2, |group| shift(group, 50));
    assert_eq!((labels(&graph), graph.spawned()), (vec!["iterate", "forth"], 3));
    assert_eq!(graph.dependencies(), []);
}

#[test]
fn a_refused_task_is_not_in_the_graph() {
    let graph = graph_of(100, |group| {
        let cells = line(group, 4);
        let refused = group.task("refused").inout(&cells.all()).inout(&cells.all());
        assert!(refused.spawn(|_, _| ()).is_err());
        group.task("fine").inout(&cells.all()).spawn(|_| ()).unwrap();
    });
    assert_eq!((labels(&graph), graph.spawned()), (vec!["fine"], 1));
}

#[test]
fn what_became_of_tasks_is_noted() {
    let graph = graph_of(100, |group| {
        let cells = line(group, 4);
        let fails = group.task("fails").output(&cells.all());
        fails.spawn(|_| fail_current_task("no reason").unwrap()).unwrap();
        group.task("depends").inout(&cells.all()).spawn(|_| ()).unwrap();
        assert!(group.wait_blocking().is_err());
        group.task("goes on").inout(&cells.all()).spawn(|_| ()).unwrap();
        group.wait_blocking().unwrap();
        group.cancel("enough");
        group.task("cancelled").inout(&cells.all()).spawn(|_| ()).unwrap();
        assert!(group.wait_blocking().is_err());
    });
    let outcomes: Vec<_> = graph.tasks().iter().map(|task| task.outcome).collect();
    let expected = [Outcome::Failed, Outcome::NotRun, Outcome::Fine, Outcome::Cancelled];
    assert_eq!(outcomes, expected);
    assert_eq!(edges(&graph, Waits::Body), [(0, 1), (1, 2), (2, 3)], "order has no failures");
}

#[test]
fn the_limit_on_tasks_holds_on_both_sides() {
    for limit in 0..8 {
        let graph = graph_of(limit, diamond);
        assert_eq!((graph.tasks().len(), graph.spawned()), (limit.min(6), 6));
        let whole = graph_of(100, diamond);
        let kept = whole.dependencies().iter().filter(|edge| edge.to < limit).copied();
        assert_eq!(graph.dependencies(), kept.collect::<Vec<_>>());
    }
}
