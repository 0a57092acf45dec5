//! Sizes beyond the limits are refused, those at the limits work.

use crate::common;
use futures::channel::mpsc;
use talpf_runtime::{Array, Config, Error, InOut, Matrix, Runtime, Tiling, cores};

fn refused<T>(result: Result<T, Error>) -> (&'static str, usize, usize) {
    match result {
        Err(Error::Size { what, value, limit }) => (what, value, limit),
        Err(other) => panic!("a size was expected to be wrong, not {other}"),
        Ok(_) => panic!("accepted"),
    }
}

fn with_workers(workers: usize) -> Result<Runtime, Error> {
    Runtime::new(Config { workers, ..Config::default() })
}

#[test]
fn a_runtime_has_1_to_1024_workers() {
    let _watchdog = common::watchdog();
    assert_eq!(refused(with_workers(0)), ("number of workers", 0, 1));
    assert_eq!(refused(with_workers(1025)), ("number of workers", 1025, 1024));
    for workers in [1, 1024] {
        let runtime = with_workers(workers).unwrap();
        assert_eq!(runtime.workers(), workers);
        (0..100).for_each(|_| runtime.task("empty").spawn(|| ()).unwrap());
        runtime.shut_down().unwrap();
    }
    assert_eq!(Config::default().workers, cores());
}

#[test]
fn a_tile_has_an_element_at_least() {
    let runtime = common::runtime(1);
    assert_eq!(refused(Array::new(&runtime, vec![0u8; 4], 0)), ("tile columns", 0, 1));
    for tile in [1, 4, 5, usize::MAX] {
        let array = Array::new(&runtime, vec![0u8; 4], tile).unwrap();
        assert_eq!(array.tiles(), 4usize.div_ceil(tile));
        runtime.task("whole").inout(&array.all()).spawn(|all| assert_eq!(all.len(), 4)).unwrap();
    }
    let flat = |rows, cols| Tiling::new(rows, cols);
    let of = |tiling| Matrix::new(&runtime, vec![0u8; 4], 2, tiling);
    assert_eq!(refused(of(flat(0, 1))), ("tile rows", 0, 1));
    assert_eq!(refused(of(flat(1, 0))), ("tile columns", 0, 1));
    assert_eq!(of(flat(1, usize::MAX)).unwrap().tiles(), (2, 1));
    runtime.wait_blocking().unwrap();
}

#[test]
fn an_array_has_up_to_two_to_the_32_less_2_elements() {
    let runtime = common::runtime(1);
    let most = u32::MAX as usize - 1;
    let of = |len| Array::new(&runtime, vec![(); len], usize::MAX);
    assert_eq!(refused(of(most + 1)), ("columns", most + 1, most));
    assert_eq!(refused(of(most + 2)), ("columns", most + 2, most));
    let array = of(most).unwrap();
    let last = runtime.task("last").input(&array.region(most - 1..));
    let last = last.run(move |last| (last.len(), last.rect().col as usize)).unwrap();
    assert_eq!(runtime.block_on(last).unwrap().unwrap(), (1, most - 1));
    let whole = runtime.task("whole").inout(&array.all()).run(|all| all.len()).unwrap();
    assert_eq!(runtime.block_on(whole).unwrap().unwrap(), most);
    let beyond = runtime.task("beyond").input(&array.region(most..=most)).spawn(drop);
    assert!(matches!(beyond, Err(Error::RegionOutOfBounds { .. })));
}

#[test]
fn a_large_array_is_cut_into_tiles_to_its_end() {
    let runtime = common::runtime(1);
    let most = u32::MAX as usize - 1;
    let array = Array::new(&runtime, vec![(); most], 1 << 24).unwrap();
    assert_eq!(array.tiles(), 256);
    let last = runtime.task("last").input(&array.tile(255)).run(|last| last.len()).unwrap();
    assert_eq!(runtime.block_on(last).unwrap().unwrap(), (1 << 24) - 2);
    let none = runtime.task("none").input(&array.tile(256)).spawn(drop);
    assert!(matches!(none, Err(Error::RegionOutOfBounds { .. })));
}

#[test]
fn a_matrix_has_a_whole_number_of_rows() {
    let runtime = common::runtime(1);
    let of = |len, cols| Matrix::new(&runtime, vec![0u8; len], cols, Tiling::default());
    assert_eq!(refused(of(7, 3)), ("number of values of a matrix", 7, 6));
    assert_eq!(refused(of(7, 0)), ("number of values of a matrix", 7, 0));
    let matrix = of(6, 3).unwrap();
    assert_eq!((matrix.rows(), matrix.cols()), (2, 3));
}

#[test]
fn arrays_without_elements_and_empty_regions_give_empty_guards() {
    let runtime = common::runtime(1);
    let none = Array::new(&runtime, Vec::<u64>::new(), 5).unwrap();
    assert!(none.is_empty());
    let some = Array::new(&runtime, vec![1u64; 8], 4).unwrap();
    let flat = Matrix::new(&runtime, Vec::<u64>::new(), 0, Tiling::default()).unwrap();
    let matrix = Matrix::new(&runtime, vec![1u64; 12], 4, Tiling::default()).unwrap();
    let task = runtime.task("empty").inout(&none.all()).output(&some.region(8..8));
    let lengths = task.run(|mut none, mut end| {
        none.fill(0);
        end.fill(0);
        (none.len(), end.len())
    });
    assert_eq!(runtime.block_on(lengths.unwrap()).unwrap().unwrap(), (0, 0));
    let task = runtime.task("flat").inout(&flat.all()).output(&matrix.region(1..3, 4..4));
    let shapes = task.run(|mut flat, mut thin| {
        thin.row_mut(1).fill(0);
        (flat.view_mut().dim(), thin.view_mut().dim())
    });
    assert_eq!(runtime.block_on(shapes.unwrap()).unwrap().unwrap(), ((0, 0), (2, 0)));
    runtime.shut_down().unwrap();
}

#[test]
fn an_array_without_elements_lives_as_long_as_its_steps() {
    let runtime = common::runtime(1);
    let nothing = Array::new(&runtime, Vec::<u64>::new(), 1).unwrap();
    let (send, receive) = mpsc::unbounded::<InOut<u64>>();
    runtime
        .iterate(3, |iteration| {
            let send = send.clone();
            iteration.task("give").inout(&nothing.all()).spawn(move |guard| {
                send.unbounded_send(guard).unwrap();
            })
        })
        .unwrap();
    drop(send);
    let mut guards = futures::executor::block_on_stream(receive);
    let first = guards.next().unwrap();
    drop(nothing);
    // One worker has tried all that was ready before.
    let after = runtime.task("after").run(|| ()).unwrap();
    runtime.block_on(after).unwrap().unwrap();
    let dump = runtime.dump().to_string();
    assert!(dump.contains("task `free`"), "{dump}");
    drop(first);
    guards.for_each(drop);
    runtime.wait_blocking().unwrap();
}
