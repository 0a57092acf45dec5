//! Arrays, tokens and lent regions belong to their runtime; results may be awaited anywhere.

use talpf_runtime::{Array, Children, Error, Matrix, Runtime, Tiling, Token};

use crate::common;

fn is_of_other(spawned: &Result<(), Error>) -> bool {
    matches!(spawned, Err(Error::OtherRuntime { label: "theirs", .. }))
}

#[test]
fn a_task_cannot_declare_what_belongs_to_another_runtime() {
    let _watchdog = common::watchdog();
    let (ours, theirs) = (common::runtime(1), common::runtime(1));
    let array = Array::new(&ours, vec![0u8; 4], 2).unwrap().named("halo");
    let matrix = Matrix::new(&ours, vec![0u8; 4], 2, Tiling::new(2, 2)).unwrap();
    let token = Token::new(&ours).unwrap();
    let group = theirs.group("other group", 3);
    let spawned = [
        group.task("theirs").input(&array.tile(0)).spawn(drop),
        group.task("theirs").output(&array.region(1..3)).spawn(drop),
        group.task("theirs").inout([matrix.tile(0, 0)]).spawn(drop),
        group.task("theirs").weak_inout(&array.all()).spawn(drop),
        group.task("theirs").commutative(&token.region()).spawn(drop),
    ];
    assert!(spawned.iter().all(is_of_other), "{spawned:?}");
    let text = spawned[0].as_ref().unwrap_err().to_string();
    let label = format!("array {} `halo` of 4 elements", array.id());
    assert!(text.contains(&label) && text.contains("other group"), "{text}");
    let iterated =
        group.iterate(2, |iteration| iteration.task("theirs").inout(&array.all()).spawn(|_| ()));
    assert!(matches!(iterated, Err(Error::OtherRuntime { .. })), "{iterated:?}");
    let within = ours.group("another group", 1).task("ours").inout(&array.all()).spawn(drop);
    assert!(within.is_ok(), "{within:?}");
    ours.shut_down().unwrap();
    theirs.shut_down().unwrap();
}

/// Moves a set of children, and a region that their parent lends, into a task of another runtime.
#[test]
fn children_and_lent_regions_stay_those_of_their_parent() {
    let _watchdog = common::watchdog();
    let (ours, theirs) = (common::runtime(1), common::runtime(1));
    let array = Array::new(&ours, vec![1u64; 4], 4).unwrap();
    let parent = ours.task("parent").inout(&array.all()).run(|all| {
        let children = Children::of_current_task().unwrap();
        (children, all.lend())
    });
    let (children, lend) = ours.block_on(parent.unwrap()).unwrap().unwrap();
    let spawner = theirs.task("spawner").run(move || {
        let own = Children::of_current_task().unwrap();
        let foreign = own.task("theirs").inout(&lend.all()).spawn(drop);
        children.task("ours").inout(&lend.all()).spawn(|mut all| all.fill(2)).unwrap();
        foreign
    });
    let foreign = theirs.block_on(spawner.unwrap()).unwrap().unwrap();
    assert!(is_of_other(&foreign), "{foreign:?}");
    let read = ours.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap();
    assert_eq!(ours.block_on(read).unwrap().unwrap(), [2; 4]);
}

fn result_of(runtime: &Runtime) -> talpf_runtime::JoinHandle<u32> {
    runtime.task("seven").run(|| 7).unwrap()
}

#[test]
fn a_result_may_be_awaited_in_another_runtime_and_after_its_own() {
    let _watchdog = common::watchdog();
    let (ours, theirs) = (common::runtime(1), common::runtime(1));
    let (inside, after) = (result_of(&ours), result_of(&ours));
    let waits = theirs.task("waits").run_async(move || inside).unwrap();
    assert_eq!(theirs.block_on(waits).unwrap().unwrap().unwrap(), 7);
    ours.shut_down().unwrap();
    assert_eq!(theirs.block_on(after).unwrap().unwrap(), 7);
}
