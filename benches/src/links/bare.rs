#![allow(unsafe_code, reason = "two threads copy to memory that they share, one after the other")]
//! The least that a long write can cost: a copy, and a flag on a cache line.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use talpf_runtime::spawn_on_other_core;

use crate::error::Error;

/// Memory that the thread whose round it is copies to.
struct Buffer(*mut u8);

// SAFETY: the count of rounds says which thread uses the memory.
unsafe impl Sync for Buffer {}

/// Measures a ping-pong of copies of `size` bytes between two threads on two cores.
pub(super) fn one_way_ns(size: usize, times: usize) -> Result<f64, Error> {
    let mut memory = [vec![0u8; size], vec![0u8; size]];
    let buffers = memory.each_mut().map(|bytes| Buffer(bytes.as_mut_ptr()));
    let played = AtomicUsize::new(0);
    let play = |end: usize| {
        let (source, target) = (vec![1u8; size], &buffers[end]);
        for round in 0..times {
            while played.load(Ordering::Acquire) != 2 * round + end {
                spin_loop();
            }
            // SAFETY: it is the round of this thread, and the target is as long.
            unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), target.0, size) };
            played.store(2 * round + end + 1, Ordering::Release);
        }
    };
    std::thread::scope(|scope| {
        let other = spawn_on_other_core(scope, || play(1));
        other.map_err(|reason| Error::System { doing: "starting a thread", reason })?;
        let start = Instant::now();
        play(0);
        while played.load(Ordering::Acquire) != 2 * times {
            spin_loop();
        }
        Ok(start.elapsed().as_nanos() as f64 / (2 * times) as f64)
    })
}
