//! A task waits for an earlier one exactly when they touch a common element and one of them writes.
//!
//! With one worker a task of negative priority runs once nothing else can, so it sees for certain
//! whether the second of two tasks was ready while the first one was held up.

use crate::common;
use futures::channel::oneshot;
use talpf_runtime::{Array, Matrix, Mode, Region, Runtime, Tiling, Token};

use crate::common::Flag;

type Access<'a, T, D> = (Mode, Region<'a, T, D>);

fn by_mode<'a, T, D>((mode, region): Access<'a, T, D>) -> [Option<Region<'a, T, D>>; 3] {
    [Mode::In, Mode::Out, Mode::InOut].map(|wanted| (wanted == mode).then_some(region))
}

/// Returns `true` if a task with the access `second` waits for an earlier one with the access
/// `first`.
fn waits<T, D1, D2>(runtime: &Runtime, first: Access<'_, T, D1>, second: Access<'_, T, D2>) -> bool
where
    T: Send + Sync + 'static,
    D1: 'static,
    D2: 'static,
{
    let (open, gate) = oneshot::channel::<()>();
    let [reads, writes, changes] = by_mode(first);
    let task = runtime.task("first").input(reads).output(writes).inout(changes);
    task.spawn_async(|reads, writes, changes| async move {
        gate.await.unwrap();
        drop((reads, writes, changes));
    })
    .unwrap();

    let ran = Flag::default();
    let [reads, writes, changes] = by_mode(second);
    let task = runtime.task("second").input(reads).output(writes).inout(changes);
    let running = ran.clone();
    task.spawn(move |_, _, _| running.set()).unwrap();

    let seen = ran.clone();
    let probe = runtime.task("probe").priority(-1).run(move || seen.is_set()).unwrap();
    let ran_early = runtime.block_on(probe).unwrap().unwrap();
    open.send(()).unwrap();
    runtime.wait_blocking().unwrap();
    assert!(ran.is_set());
    !ran_early
}

/// Checks two regions that share elements: all pairs of modes, in both orders.
fn overlapping<T, D1, D2>(runtime: &Runtime, one: Region<'_, T, D1>, other: Region<'_, T, D2>)
where
    T: Send + Sync + 'static,
    D1: 'static,
    D2: 'static,
{
    use Mode::{In, InOut, Out};
    for (earlier, later, expected) in [
        (Out, In, true),
        (InOut, In, true),
        (In, Out, true),
        (In, InOut, true),
        (Out, Out, true),
        (Out, InOut, true),
        (InOut, InOut, true),
        (In, In, false),
    ] {
        let case = format!("{earlier} {one:?}, {later} {other:?}");
        assert_eq!(waits(runtime, (earlier, one), (later, other)), expected, "{case}");
        assert_eq!(waits(runtime, (earlier, other), (later, one)), expected, "{case}, swapped");
    }
}

fn disjoint<T, D1, D2>(runtime: &Runtime, one: Region<'_, T, D1>, other: Region<'_, T, D2>)
where
    T: Send + Sync + 'static,
    D1: 'static,
    D2: 'static,
{
    for mode in [Mode::In, Mode::Out, Mode::InOut] {
        let first = (Mode::InOut, one);
        assert!(!waits(runtime, first, (mode, other)), "{one:?}, {mode} {other:?}");
    }
}

#[test]
fn regions_of_an_array_are_ordered_where_they_overlap() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 20], 8).unwrap();
    overlapping(&runtime, array.tile(1), array.tile(1));
    overlapping(&runtime, array.all(), array.tile(2));
    overlapping(&runtime, array.region(2..6), array.region(5..7));
    overlapping(&runtime, array.region(6..10), array.region(9..18));
    overlapping(&runtime, array.region(0..20), array.region(19..20));
    disjoint(&runtime, array.tile(0), array.tile(1));
    disjoint(&runtime, array.region(0..4), array.region(4..8));
    disjoint(&runtime, array.region(6..10), array.region(10..18));
}

#[test]
fn regions_of_a_matrix_are_ordered_where_they_overlap() {
    let runtime = common::runtime(1);
    let tiling = Tiling::new(4, 3).first(1, 2);
    let matrix = Matrix::new(&runtime, vec![0u8; 10 * 9], 9, tiling).unwrap();
    overlapping(&runtime, matrix.tile(1, 1), matrix.tile(1, 1));
    overlapping(&runtime, matrix.region(0..6, 0..6), matrix.region(5..10, 5..9));
    overlapping(&runtime, matrix.region(2..4, ..), matrix.region(.., 3..4));
    overlapping(&runtime, matrix.row(3, 2..7), matrix.tile(1, 1));
    overlapping(&runtime, matrix.row(3, 2..7), matrix.row(3, 6..9));
    disjoint(&runtime, matrix.tile(1, 1), matrix.tile(1, 2));
    disjoint(&runtime, matrix.region(1..3, ..), matrix.region(3..5, ..));
    disjoint(&runtime, matrix.region(1..5, 2..3), matrix.region(1..5, 3..4));
    disjoint(&runtime, matrix.row(3, ..), matrix.row(4, ..));
    disjoint(&runtime, matrix.row(3, 2..3), matrix.row(3, 3..5));
}

#[test]
fn tokens_order_like_one_element() {
    let runtime = common::runtime(1);
    let (token, other) = (Token::new(&runtime).unwrap(), Token::new(&runtime).unwrap());
    overlapping(&runtime, token.region(), token.region());
    disjoint(&runtime, token.region(), other.region());
}

#[test]
fn empty_regions_wait_for_nothing() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 8], 4).unwrap();
    let matrix = Matrix::new(&runtime, vec![0u8; 8], 4, Tiling::default()).unwrap();
    for at in [0, 2, 4, 8] {
        disjoint(&runtime, array.all(), array.region(at..at));
        disjoint(&runtime, array.region(at..at), array.all());
    }
    disjoint(&runtime, matrix.all(), matrix.region(1..1, ..));
    disjoint(&runtime, matrix.all(), matrix.region(.., 2..2));
}

/// Uses tiles, which are registered on a path of their own.
#[test]
fn empty_regions_and_whole_tiles_do_not_meet() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 8], 4).unwrap();
    disjoint(&runtime, array.region(0..0), array.tile(0));
    let both = runtime.task("both").input(&array.region(2..2)).inout(&array.tile(0));
    runtime.block_on(both.run(|_, _| ()).unwrap()).unwrap().unwrap();
}
