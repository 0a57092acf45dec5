//! Costs of the parts of a message, measured on the machine that runs.

use std::fmt;
use std::hint::{black_box, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use talpf_runtime::{Clock, spawn_on_other_core};

/// Costs of the parts of a message, from which [`Protocols`](crate::Protocols) computes thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Time to register memory at both ends and post a read. Not measured: on the machine of the
    /// defaults, a message of 64 bytes that was read took this much longer than one that was
    /// copied.
    pub request_ns: u64,
    /// Time to copy 1 KiB that another core has written.
    pub remote_ns_per_kib: u64,
}

impl Default for Costs {
    /// Returns the costs between two cores of an Intel Xeon of 2024.
    fn default() -> Self {
        Costs { request_ns: 500, remote_ns_per_kib: 230 }
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Costs { request_ns, remote_ns_per_kib } = *self;
        write!(f, "request {request_ns} ns, 1 KiB {remote_ns_per_kib} ns from another core")
    }
}

impl Costs {
    /// Measures the costs on this machine, once in the life of the process. Returns the defaults if
    /// no second core is free.
    ///
    /// **Cost**: about 300 us; on a busy machine a millisecond, and the time until the second
    /// thread gets a core.
    pub fn measured() -> Self {
        static MEASURED: OnceLock<Costs> = OnceLock::new();
        *MEASURED.get_or_init(|| {
            let remote_ns_per_kib = measure_remote();
            remote_ns_per_kib.map_or_else(Costs::default, |remote_ns_per_kib| Costs {
                remote_ns_per_kib,
                ..Costs::default()
            })
        })
    }
}

/// Words of the copied block: 8 KiB.
const WORDS: usize = 1024;
/// Copies that are measured at most.
const ROUNDS: usize = 64;
/// Copies that a result needs.
const LEAST_ROUNDS: usize = 8;
/// Time after which no further copy begins.
const LONGEST_NS: u64 = 1_000_000;
/// Polls, tens of microseconds, before a thread yields its core to the other.
const SPINS: u32 = 500;

/// A block that one thread fills and another copies, in alternating phases.
struct Block {
    words: Vec<AtomicU64>,
    /// Phase counter: the filling thread writes in odd phases, the copying thread reads in even
    /// ones.
    phase: AtomicU64,
}

/// Phase that ends the filling thread.
const END: u64 = u64::MAX;

/// Measures the copy of 1 KiB that another core has just written. Returns `None` if no second core
/// is free.
///
/// **Units**: nanoseconds.
fn measure_remote() -> Option<u64> {
    let words = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let block = Block { words, phase: AtomicU64::new(0) };
    thread::scope(|scope| {
        spawn_on_other_core(scope, || block.fill()).ok()?;
        let copies = block.measure_copies();
        block.phase.store(END, Ordering::Release);
        let kib = (WORDS * 8 / 1024) as u64;
        (copies.len() >= LEAST_ROUNDS).then(|| (median(copies) / kib).max(1))
    })
}

impl Block {
    /// Copies the block after each fill and returns the time of each copy, in nanoseconds.
    fn measure_copies(&self) -> Vec<u64> {
        let (mut to, mut copies) = (vec![0; WORDS], Vec::new());
        let (clock, mut phase) = (Clock::start(), 0);
        while copies.len() < ROUNDS && clock.now_ns() < LONGEST_NS {
            self.phase.store(phase + 1, Ordering::Release);
            phase += 2;
            let kept_core = self.wait_for(phase);
            let start_ns = clock.now_ns();
            to.iter_mut()
                .zip(&self.words)
                .for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
            black_box(&mut to);
            let copied = clock.now_ns() - start_ns;
            // Otherwise both threads share one core.
            if kept_core {
                copies.push(copied);
            }
        }
        copies
    }

    /// Fills the block in every odd phase, until the phase is [`END`].
    fn fill(&self) {
        for phase in (1..).step_by(2) {
            self.wait_for(phase);
            if self.phase.load(Ordering::Acquire) == END {
                return;
            }
            self.words.iter().for_each(|word| word.store(phase, Ordering::Relaxed));
            self.phase.store(phase + 1, Ordering::Release);
        }
    }

    /// Waits for a phase. Returns `true` if it came before this thread yielded its core.
    fn wait_for(&self, phase: u64) -> bool {
        let mut spins = 0u32;
        while self.phase.load(Ordering::Acquire) < phase {
            spins = spins.saturating_add(1);
            if spins > SPINS {
                thread::yield_now();
            } else {
                spin_loop();
            }
        }
        spins <= SPINS
    }
}

/// Returns the median: interruptions make single copies longer, and a core that both threads share
/// for a moment makes them shorter.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

    use super::*;

    #[test]
    fn a_copy_from_another_core_takes_a_plausible_time() {
        match measure_remote() {
            Some(ns_per_kib) => assert!((5..100_000).contains(&ns_per_kib), "{ns_per_kib}"),
            None => println!("skipped: no second core was free"),
        }
    }

    #[test]
    fn on_one_core_nothing_is_measured() {
        let pinned = thread::spawn(|| {
            let (mut core, here) = (sched_getaffinity(None).unwrap(), sched_getcpu());
            (0..1024).filter(|core| *core != here).for_each(|other| core.unset(other));
            sched_setaffinity(None, &core).unwrap();
            measure_remote()
        });
        assert_eq!(pinned.join().unwrap(), None);
    }
}
