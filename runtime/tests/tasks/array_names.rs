//! Names of arrays appear in all reports on them.

use talpf_runtime::{
    Array, ArrayLabel, Children, Config, GraphRecorder, Matrix, Runtime, Tiling, Token,
};

use crate::common;

#[test]
fn labels_show_number_name_and_shape() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 6], 3).unwrap();
    let id = array.id();
    assert_eq!(array.label().to_string(), format!("array {id} of 6 elements"));
    let array = array.named("halo").named("another name");
    assert_eq!(array.label().to_string(), format!("array {id} `halo` of 6 elements"));
    assert_eq!((array.label().id(), array.clone().label().name()), (id, Some("halo")));
    assert_eq!(format!("{:?}", array.region(1..3)), format!("array {id} `halo`[1..3]"));
    assert_eq!(ArrayLabel::of_id(id), array.label());
    drop(array);
    assert_eq!(ArrayLabel::of_id(id).to_string(), format!("array {id} of 0 x 0"));
    let tiling = Tiling::new(2, 2).first(1, 0);
    let matrix = Matrix::new(&runtime, vec![0u8; 6], 2, tiling).unwrap().named("grid");
    let label = matrix.label();
    assert_eq!(label.to_string(), format!("array {} `grid` of 3 x 2", matrix.id()));
    assert_eq!((label.rows(), label.cols(), matrix.tiles()), (3, 2, (2, 1)));
}

#[test]
fn errors_show_the_array() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 6], 3).unwrap().named("halo");
    let label = array.label().to_string();
    let beyond = runtime.task("bad").input(&array.region(4..9)).spawn(drop);
    let twice = runtime.task("bad").inout(&array.all()).input(&array.all()).spawn(|_, _| ());
    let parent = runtime.task("parent").run({
        let array = array.clone();
        move || {
            let children = Children::of_current_task().unwrap();
            children.task("bad").input(&array.all()).spawn(drop)
        }
    });
    let not_lent = runtime.block_on(parent.unwrap()).unwrap().unwrap();
    for refused in [beyond, twice, not_lent] {
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(&label), "`{label}` is missing in: {text}");
    }
}

#[test]
fn dumps_guards_and_drawings_show_the_array() {
    let graph = GraphRecorder::new(100);
    let config = Config { workers: 1, graph: Some(graph.clone()), ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let array = Array::new(&runtime, vec![0u8; 6], 3).unwrap().named("halo");
    let token = Token::new(&runtime).unwrap().named("turn");
    let task = runtime.task("giver").inout(&array.all()).inout(&token.region());
    let guards = runtime.block_on(task.run(|all, other| (all, other)).unwrap()).unwrap().unwrap();
    let title = format!("array {} `halo`", array.id());
    let debug = format!("{:?}", guards.0);
    assert!(debug.contains(&title), "{debug}");
    assert_eq!(guards.0.array_label(), array.label());
    runtime.task("taker").input(&array.all()).input(&token.region()).spawn(|_, _| ()).unwrap();
    let dump = runtime.dump();
    for text in [dump.to_string(), dump.to_graphviz(), graph.graph().to_svg()] {
        assert!(text.contains("halo") && text.contains("turn"), "{text}");
    }
}
