//! Computation of a task, in iterations, and its peak rate on all cores without tasks.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use clap::ValueEnum;
use pulp::{Arch, Simd, WithSimd};

/// Computation that is bound either by the core or by memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// An iteration computes `a * a + a` for 16 vectors in registers.
    Compute,
    /// An iteration copies 256 bytes of a buffer that is larger than the caches.
    Memory,
}

/// Bytes copied by an iteration of [`Kernel::Memory`].
const CHUNK: usize = 256;
/// Bytes of the source buffer and of the destination buffer of a thread: larger than caches.
const HALF: usize = 16 << 20;
/// Number of samples of the peak; the best one counts.
const PEAK_SAMPLES: usize = 20;

impl Kernel {
    /// Runs `iterations` iterations on this thread.
    ///
    /// **Cost**: the first memory kernel of a thread allocates its buffers.
    #[inline]
    pub fn run(self, iterations: u64) {
        match self {
            Kernel::Compute => Arch::new().dispatch(Compute { iterations }),
            Kernel::Memory => BUFFERS.with_borrow_mut(|buffers| buffers.copy(iterations)),
        }
    }

    /// Returns the name of the kernel in `benches/peers/metg.c`.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Compute => "compute",
            Kernel::Memory => "memory",
        }
    }

    /// Measures iterations per second of `threads` threads together that run nothing else, from the
    /// first start to the last end: the best of several samples.
    pub fn peak(self, threads: usize) -> f64 {
        let iterations = match self {
            Kernel::Compute => 1 << 20,
            Kernel::Memory => 1 << 17,
        };
        let all = Barrier::new(threads);
        let sample = |_| {
            self.run(1); // Allocates the buffers of this thread.
            all.wait();
            let start = Instant::now();
            self.run(iterations);
            (start, Instant::now())
        };
        let samples: Vec<Vec<_>> = std::thread::scope(|scope| {
            let run = || (0..PEAK_SAMPLES).map(sample).collect();
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
            threads.into_iter().flat_map(|thread| thread.join()).collect()
        });
        let rate = |index: usize| {
            let start = samples.iter().map(|thread: &Vec<_>| thread[index].0).min()?;
            let end = samples.iter().map(|thread: &Vec<_>| thread[index].1).max()?;
            Some(threads as f64 * iterations as f64 / (end - start).as_secs_f64())
        };
        (0..PEAK_SAMPLES).filter_map(rate).fold(0.0, f64::max)
    }
}

struct Compute {
    iterations: u64,
}

impl WithSimd for Compute {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let one = simd.splat_f64s(1.25);
        let mut numbers = [one; 16];
        for _ in 0..self.iterations {
            for a in &mut numbers {
                *a = simd.mul_add_e_f64s(*a, *a, *a);
            }
        }
        black_box(&numbers);
    }
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        from: vec![1; HALF],
        to: vec![1; HALF],
        at: 0,
    });
}

struct Buffers {
    from: Vec<u8>,
    to: Vec<u8>,
    at: usize,
}

impl Buffers {
    fn copy(&mut self, iterations: u64) {
        for _ in 0..iterations {
            let chunk = self.at..self.at + CHUNK;
            self.to[chunk.clone()].copy_from_slice(&self.from[chunk]);
            self.at = (self.at + CHUNK) % HALF;
        }
        black_box(&self.to);
    }
}
