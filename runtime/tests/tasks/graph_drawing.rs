//! The drawing of a graph: well-formed, complete, and nothing on top of anything else.

use roxmltree::{Document, Node};
use talpf_runtime::{
    Array, Children, Config, Error, GraphRecorder, Group, Runtime, TaskGraph, fail_current_task,
};

use crate::common;

/// Returns the graph of a program with tasks of every kind.
fn everything(limit: usize) -> TaskGraph {
    let _watchdog = common::watchdog();
    let recorder = GraphRecorder::new(limit);
    let config = Config { workers: 2, graph: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    for (number, name) in [(1, "first <&> \"group\""), (2, "")] {
        let group = runtime.group(name, number);
        nested(&group);
        iterated(&group);
        failing(&group);
        communicating(&group);
        assert!(group.wait_blocking().is_err());
    }
    runtime.shut_down().unwrap();
    recorder.graph()
}

fn nested(group: &Group) {
    let cells = Array::new(group, vec![0u64; 64], 4).unwrap();
    for _ in 0..3 {
        let parent = group.task("parent").weak_inout(&cells.all());
        parent
            .spawn(|all| {
                let children = Children::of_current_task().unwrap();
                for tile in 0..16 {
                    let own = all.region(tile * 4..tile * 4 + 4);
                    children.task("child").inout(&own).spawn(grandchildren).unwrap();
                }
            })
            .unwrap();
        group.task("a<b>&\"c\"\u{1}\u{ffff}").input(&cells.all()).spawn(|_| ()).unwrap();
    }
    group.task("Übersicht 概要").input(&cells.tile(3)).spawn(|_| ()).unwrap();
}

fn grandchildren(cells: talpf_runtime::InOut<u64>) {
    let (children, cells) = (Children::of_current_task().unwrap(), cells.lend());
    for at in [0..2, 2..4, 1..3] {
        children.task("part").inout(&cells.region(at)).spawn(|_| ()).unwrap();
    }
}

fn iterated(group: &Group) {
    let cells = Array::new(group, vec![0u64; 8], 1).unwrap();
    let declared = group.iterate::<Error>(10, |iteration| {
        (1..8).try_for_each(|at| {
            let task = iteration.task("sweep").input(&cells.tile(at - 1)).inout(&cells.tile(at));
            task.spawn(|_, _| ())
        })
    });
    declared.unwrap();
}

fn failing(group: &Group) {
    let cell = Array::new(group, vec![0u64; 1], 1).unwrap();
    let fails = group.task("fails").inout(&cell.all());
    fails.spawn(|_| fail_current_task("for the drawing").unwrap()).unwrap();
    group.task("depends").inout(&cell.all()).spawn(|_| ()).unwrap();
}

fn communicating(group: &Group) {
    let cells = Array::new(group, vec![0u64; 2], 1).unwrap();
    group.task("put").communicates().input(&cells.all()).spawn(|_| ()).unwrap();
    let declared = group.iterate::<Error>(3, |iteration| {
        iteration.task("get").communicates().inout(&cells.all()).spawn(|_| ())
    });
    declared.unwrap();
}

#[derive(Clone, Copy, Debug)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{name}"))
}

/// Returns the area of a task, by the number at the end of the first line of its tip.
fn area(task: Node<'_, '_>) -> (usize, Area) {
    let tip = task.children().find_map(|node| node.text().filter(|_| node.has_tag_name("title")));
    let number_of = |tip: &str| tip.split("task ").nth(1)?.split([',', '\n']).next()?.parse().ok();
    let shape = |name| task.children().find(|node| node.has_tag_name(name));
    let area = match shape("polygon") {
        Some(polygon) => around(polygon.attribute("points").unwrap()),
        None => {
            let of = |name| number(shape("rect").unwrap(), name);
            Area { x: of("x"), y: of("y"), width: of("width"), height: of("height") }
        }
    };
    (tip.and_then(number_of).unwrap(), area)
}

/// Returns the least area that has all `points`.
fn around(points: &str) -> Area {
    let axis = |axis: usize| {
        let of = |point: &str| point.split(',').nth(axis).unwrap().parse::<f64>().unwrap();
        let all = points.split(' ').map(of);
        all.fold((f64::MAX, f64::MIN), |(least, most), at| (least.min(at), most.max(at)))
    };
    let ((left, right), (top, bottom)) = (axis(0), axis(1));
    Area { x: left, y: top, width: right - left, height: bottom - top }
}

impl Area {
    fn overlaps(&self, other: &Area) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }

    fn covers(&self, other: &Area) -> bool {
        self.x <= other.x
            && other.x + other.width <= self.x + self.width
            && self.y <= other.y
            && other.y + other.height <= self.y + self.height
    }
}

/// Returns the areas of the tasks, in their order.
fn areas(svg: &Document<'_>, graph: &TaskGraph) -> Vec<Area> {
    let tasks = svg.root_element().children().filter(|node| node.has_tag_name("g"));
    let mut areas: Vec<(usize, Area)> = tasks.map(area).collect();
    areas.sort_by_key(|(number, _)| *number);
    assert!(areas.iter().map(|(number, _)| *number).eq(1..=graph.tasks().len()));
    areas.into_iter().map(|(_, area)| area).collect()
}

#[test]
fn a_drawing_has_every_task_and_every_dependency_once() {
    let graph = everything(1000);
    let text = graph.to_svg();
    let svg = Document::parse(&text).unwrap();
    assert_eq!(areas(&svg, &graph).len(), graph.tasks().len());
    let arrow = |node: &Node<'_, '_>| node.attribute("marker-end").is_some();
    let in_legend = |node: &Node<'_, '_>| node.attribute("d").is_some_and(|d| d.ends_with("h20"));
    let arrows = svg.root_element().children().filter(arrow);
    assert_eq!(arrows.filter(|node| !in_legend(node)).count(), graph.dependencies().len());
}

#[test]
fn children_lie_inside_their_parents_and_nothing_on_anything_else() {
    let graph = everything(1000);
    let text = graph.to_svg();
    let svg = Document::parse(&text).unwrap();
    let root = svg.root_element();
    let page =
        Area { x: 0.0, y: 0.0, width: number(root, "width"), height: number(root, "height") };
    let areas = areas(&svg, &graph);
    for (number, (task, area)) in graph.tasks().iter().zip(&areas).enumerate() {
        assert!(page.covers(area), "{area:?} is cut");
        if let Some(parent) = task.parent {
            assert!(areas[parent].covers(area), "{area:?} is not in {:?}", areas[parent]);
        }
        let siblings = graph.tasks()[..number].iter().zip(&areas);
        for (_, other) in siblings.filter(|(other, _)| other.parent == task.parent) {
            assert!(!area.overlaps(other), "{area:?} lies on {other:?}");
        }
    }
    for dependency in graph.dependencies().iter().filter(|edge| edge.from < edge.to) {
        let (from, to) = (areas[dependency.from], areas[dependency.to]);
        assert!(from.y + from.height < to.y, "{to:?} has to lie below {from:?}");
    }
}

#[test]
fn a_group_that_only_waits_for_another_begins_below_it() {
    let _watchdog = common::watchdog();
    let recorder = GraphRecorder::new(10);
    let config = Config { workers: 2, graph: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let [first, second] = [runtime.group("first", 1), runtime.group("second", 2)];
    let cells = Array::new(&first, vec![0u64; 4], 4).unwrap();
    first.task("write").output(&cells.all()).spawn(|_| ()).unwrap();
    second.task("read").input(&cells.all()).spawn(|_| ()).unwrap();
    runtime.shut_down().unwrap();
    let graph = recorder.graph();
    let text = graph.to_svg();
    let areas = areas(&Document::parse(&text).unwrap(), &graph);
    assert!(areas[0].y + areas[0].height < areas[1].y, "{areas:?}");
    assert!(areas[0].x + areas[0].width < areas[1].x, "{areas:?}");
}

#[test]
fn labels_come_out_of_the_drawing_as_they_are() {
    let graph = everything(1000);
    let text = graph.to_svg();
    let svg = Document::parse(&text).unwrap();
    let texts: Vec<&str> = svg.descendants().filter_map(|node| node.text()).collect();
    for text in ["a<b>&\"c\"\u{fffd}\u{fffd}", "Übersicht 概要", "iterate, 10 steps", "sweep"] {
        assert!(texts.contains(&text), "{text}");
    }
    for legend in ["first <&> \"group\"", "failed", "did not run because of a failure"] {
        assert!(texts.contains(&legend), "{legend}");
    }
}

#[test]
fn tasks_that_communicate_have_a_shape_of_their_own_and_an_entry_in_the_legend() {
    let graph = everything(1000);
    let text = graph.to_svg();
    let svg = Document::parse(&text).unwrap();
    let has_points = |node: &Node<'_, '_>| {
        node.has_tag_name("g") && node.children().any(|node| node.has_tag_name("polygon"))
    };
    let communicates = |label| graph.tasks().iter().filter(move |task| task.label == label);
    for label in ["put", "get"] {
        assert_eq!(communicates(label).filter(|task| task.communicates).count(), 2, "{label}");
    }
    assert_eq!(svg.descendants().filter(has_points).count(), 4);
    assert!(svg.descendants().any(|node| node.text() == Some("exchanges data with others")));
    let without = graph_of_one_task().to_svg();
    assert!(!without.contains("polygon") && !without.contains("exchanges"), "{without}");
}

fn graph_of_one_task() -> TaskGraph {
    let recorder = GraphRecorder::new(1);
    let config = Config { workers: 1, graph: Some(recorder.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    runtime.task("alone").spawn(|| ()).unwrap();
    runtime.shut_down().unwrap();
    recorder.graph()
}

#[test]
fn a_drawing_says_how_many_tasks_it_leaves_out() {
    let graph = everything(5);
    let title = format!("the first 5 of {} tasks, ", graph.spawned());
    assert!(graph.to_svg().contains(&title), "{title}");
}

#[test]
fn an_empty_graph_is_a_drawing_too() {
    let text = GraphRecorder::new(10).graph().to_svg();
    Document::parse(&text).unwrap();
    assert!(text.contains("0 tasks, 0 dependencies"));
}
