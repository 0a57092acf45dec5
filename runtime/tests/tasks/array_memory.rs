//! Arrays in memory of a source that the configuration names.
#![allow(unsafe_code, reason = "a source of memory")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use talpf_runtime::{Allocation, Array, ArrayMemory, Config, Matrix, Runtime, Tiling};

use crate::common::Drops;

/// A source of memory `SKIP` bytes behind a boundary, for arrays of at least so many bytes.
#[derive(Debug, Default)]
struct Source<const SKIP: usize> {
    smallest: usize,
    allocations: Arc<AtomicUsize>,
}

struct Words {
    words: Box<[u64]>,
    skip: usize,
    allocations: Arc<AtomicUsize>,
}

// SAFETY: the boxed words stay where they are, and nobody else has a reference to them.
unsafe impl Allocation for Words {
    fn memory(&self) -> NonNull<[u8]> {
        let start = NonNull::from(&*self.words).cast::<u8>();
        // SAFETY: there are more words than are skipped.
        let start = unsafe { start.add(self.skip) };
        NonNull::slice_from_raw_parts(start, size_of_val(&*self.words) - self.skip)
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        self.allocations.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<const SKIP: usize> ArrayMemory for Source<SKIP> {
    fn allocate(&self, bytes: usize) -> Option<Box<dyn Allocation>> {
        (bytes >= self.smallest).then(|| {
            let words = vec![0; bytes.div_ceil(8) + 1].into();
            self.allocations.fetch_add(1, Ordering::SeqCst);
            let allocations = Arc::clone(&self.allocations);
            Box::new(Words { words, skip: SKIP, allocations }) as Box<dyn Allocation>
        })
    }
}

fn runtime<const SKIP: usize>(smallest: usize) -> (Runtime, Arc<AtomicUsize>) {
    let source = Source::<SKIP> { smallest, ..Source::default() };
    let allocations = Arc::clone(&source.allocations);
    let memory = Some(Arc::new(source) as Arc<dyn ArrayMemory>);
    (Runtime::new(Config { workers: 1, memory, ..Config::default() }).unwrap(), allocations)
}

#[test]
fn elements_move_to_memory_of_the_source_and_are_dropped_once() {
    let (runtime, allocations) = runtime::<0>(0);
    let drops = Drops::default();
    let matrix = Matrix::new(&runtime, drops.items(12), 4, Tiling::default()).unwrap();
    let numbers = Array::new(&runtime, (0..100u64).collect(), 10).unwrap();
    assert_eq!((allocations.load(Ordering::SeqCst), drops.count()), (2, 0));
    let sum = runtime.task("sum").input(&numbers.all()).run(|all| all.iter().sum::<u64>());
    assert_eq!(runtime.block_on(sum.unwrap()).unwrap().unwrap(), 4950);
    drop((matrix, numbers));
    assert_eq!((allocations.load(Ordering::SeqCst), drops.count()), (0, 12));
}

#[test]
fn elements_stay_where_the_source_has_no_memory_that_fits() {
    // None for so few bytes; memory that is not aligned; no bytes to move.
    let small = runtime::<0>(1000);
    let unaligned = runtime::<1>(0);
    for ((runtime, allocations), count) in [(small, 10), (unaligned, 10), (runtime::<0>(0), 0)] {
        let drops = Drops::default();
        let array = Array::new(&runtime, drops.items(count), 4).unwrap();
        assert_eq!(allocations.load(Ordering::SeqCst), 0);
        drop(array);
        assert_eq!(drops.count(), count);
    }
}
