//! An invalid declaration is refused with its wrong values, and leaves no trace.

use crate::common;
use talpf_runtime::{Array, Error, Matrix, Mode, Rect, Runtime, Tiling};

use crate::common::Drops;

fn out_of_bounds(result: Result<(), Error>) -> (Rect, usize, usize) {
    match result {
        Err(Error::RegionOutOfBounds { region, array }) => (region, array.rows(), array.cols()),
        other => panic!("a region out of bounds was expected, not {other:?}"),
    }
}

fn rect(rows: [u32; 2], cols: [u32; 2]) -> Rect {
    Rect { row: rows[0], row_end: rows[1], col: cols[0], col_end: cols[1] }
}

/// Runs a task over all of `array` to its end.
fn works(runtime: &Runtime, array: &Array<u8>) {
    runtime.task("after").inout(&array.all()).spawn(|mut all| all.fill(1)).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_region_past_the_end_of_an_array_is_refused() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 10], 4).unwrap();
    let declare = |region| runtime.task("bad").input(&region).spawn(|_| panic!("ran"));
    assert_eq!(out_of_bounds(declare(array.region(8..11))), (rect([0, 1], [8, 11]), 1, 10));
    assert_eq!(out_of_bounds(declare(array.region(11..))).0, rect([0, 1], [11, 10]));
    assert_eq!(out_of_bounds(declare(array.tile(3))).1, 1);
    let far = array.region(..=usize::MAX);
    assert_eq!(out_of_bounds(declare(far)).0, rect([0, 1], [0, u32::MAX]));
    #[allow(clippy::reversed_empty_ranges, reason = "this is what must be refused")]
    let reversed = array.region(5..3);
    assert_eq!(out_of_bounds(declare(reversed)).0, rect([0, 1], [5, 3]));
    let text = declare(array.region(8..11)).unwrap_err().to_string();
    assert_eq!(text, format!("region [8..11] lies outside array {} of 10 elements", array.id()));
    works(&runtime, &array);
}

#[test]
fn the_last_region_that_fits_is_accepted() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 10], 4).unwrap();
    for region in [array.region(8..10), array.region(10..10), array.tile(2), array.region(..)] {
        runtime.task("good").inout(&region).spawn(drop).unwrap();
    }
    runtime.wait_blocking().unwrap();
}

#[test]
fn a_region_outside_a_matrix_is_refused() {
    let runtime = common::runtime(1);
    let tiling = Tiling::new(2, 2);
    let matrix = Matrix::new(&runtime, vec![0u8; 12], 4, tiling).unwrap();
    for (region, expected) in [
        (matrix.region(0..4, 0..1), rect([0, 4], [0, 1])),
        (matrix.region(0..1, 0..5), rect([0, 1], [0, 5])),
        (matrix.region(4..4, ..), rect([4, 4], [0, 4])),
        (matrix.tile(2, 0), rect([3, 4], [0, 2])),
    ] {
        let declared = runtime.task("bad").output(&region).spawn(|_| panic!("ran"));
        assert_eq!(out_of_bounds(declared), (expected, 3, 4));
    }
    let row = runtime.task("bad").input(&matrix.row(3, ..)).spawn(|_| panic!("ran"));
    assert_eq!(out_of_bounds(row).0, rect([3, 4], [0, 4]));
    runtime.task("good").input(&matrix.row(2, ..)).spawn(drop).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn overlapping_accesses_of_one_task_are_refused_if_one_writes() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 10], 4).unwrap();
    let (one, other) = (array.region(1..5), array.region(4..9));
    let declared = runtime.task("twice").output(&one).input(&other).spawn(|_, _| panic!("ran"));
    match declared {
        Err(Error::OverlappingAccesses {
            label, first, first_mode, second, second_mode, ..
        }) => {
            assert_eq!(label, "twice");
            assert_eq!((first, second), (one.rect(), other.rect()));
            assert_eq!((first_mode, second_mode), (Mode::Out, Mode::In));
        }
        other => panic!("overlapping accesses were expected, not {other:?}"),
    }
    let declared = runtime.task("twice").input([one]).inout([other]).spawn(|_, _| panic!("ran"));
    let text = declared.unwrap_err().to_string();
    let array_label = array.label().to_string();
    assert!(text.ends_with(&format!("in [1..5] and inout [4..9] of {array_label}")), "{text}");
    works(&runtime, &array);
}

#[test]
fn overlapping_reads_and_touching_writes_of_one_task_are_accepted() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![7u8; 10], 4).unwrap();
    runtime.task("reads").input(&array.all()).input(&array.tile(1)).spawn(|_, _| ()).unwrap();
    let halves = [array.region(0..5), array.region(5..10), array.region(5..5)];
    runtime.task("halves").inout(halves).spawn(drop).unwrap();
    runtime.wait_blocking().unwrap();
}

#[test]
fn what_a_refused_body_captured_is_dropped_once() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 10], 4).unwrap();
    let drops = Drops::default();
    let captured = drops.item();
    let task = runtime.task("bad").input(&array.region(9..99));
    assert!(task.spawn(move |_| drop(captured)).is_err());
    assert_eq!(drops.count(), 1);
    let captured = drops.item();
    let task = runtime.task("bad").input(&array.region(9..99));
    assert!(task.run_async(move |_| async move { drop(captured) }).is_err());
    assert_eq!(drops.count(), 2);
    works(&runtime, &array);
}

#[test]
fn a_refused_access_among_many_registers_none_of_them() {
    let runtime = common::runtime(1);
    let array = Array::new(&runtime, vec![0u8; 100], 1).unwrap();
    let tiles = (0..100).map(|tile| array.tile(tile)).chain([array.region(100..101)]);
    assert!(runtime.task("bad").output(tiles).spawn(|_| panic!("ran")).is_err());
    works(&runtime, &array);
    assert_eq!(runtime.outstanding(), 0);
}
