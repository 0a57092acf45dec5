//! What messages are made of costs, measured where they will run.

use std::fmt;
use std::hint::{black_box, spin_loop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use talpf_runtime::{Clock, spawn_apart};

/// What messages are made of costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Registering memory at both ends and posting a read. Not measured: it is what a message of 64
    /// bytes took longer that was read than one that was copied, on the machine of the defaults.
    pub request_ns: u64,
    /// Copying 1 KiB that another core has written.
    pub remote_ns_per_kib: u64,
}

impl Default for Costs {
    /// Those of two cores of an Intel Xeon of 2024.
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
    /// Measures the costs on this machine, once in the life of the process. The defaults if no two
    /// cores can be had for it.
    ///
    /// **Cost**: about 300 us; on a busy machine a millisecond, and what the other thread waits for
    /// its core.
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

/// Words of the block that is copied, 8 KiB.
const WORDS: usize = 1024;
/// Rounds that count, how many there must be, and after what time there is no other one.
const ROUNDS: usize = 64;
const LEAST_ROUNDS: usize = 8;
const LONGEST_NS: u64 = 1_000_000;
/// Looks for the other thread, tens of microseconds, before this one leaves its core to it.
const LOOKS: u32 = 500;

/// A block that one thread fills and another copies.
struct Block {
    words: Vec<AtomicU64>,
    /// Whose turn it is: the other thread's if odd.
    turn: AtomicU64,
}

/// In place of a turn: the other thread ends.
const END: u64 = u64::MAX;

/// **Units**: nanoseconds for a copy of 1 KiB that another core has just written.
fn measure_remote() -> Option<u64> {
    let words = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let block = Block { words, turn: AtomicU64::new(0) };
    thread::scope(|scope| {
        spawn_apart(scope, || block.fill_by_turns()).ok()?;
        let copies = block.copy_by_turns();
        block.turn.store(END, Ordering::Release);
        let kib = (WORDS * 8 / 1024) as u64;
        (copies.len() >= LEAST_ROUNDS).then(|| (median(copies) / kib).max(1))
    })
}

impl Block {
    /// What the copies took, in nanoseconds.
    fn copy_by_turns(&self) -> Vec<u64> {
        let (mut to, mut copies) = (vec![0; WORDS], Vec::new());
        let (clock, mut turn) = (Clock::start(), 0);
        while copies.len() < ROUNDS && clock.now_ns() < LONGEST_NS {
            self.turn.store(turn + 1, Ordering::Release);
            turn += 2;
            let at_once = self.wait_for(turn);
            let start_ns = clock.now_ns();
            to.iter_mut()
                .zip(&self.words)
                .for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
            black_box(&mut to);
            let copied = clock.now_ns() - start_ns;
            // Else both threads have the same core.
            if at_once {
                copies.push(copied);
            }
        }
        copies
    }

    fn fill_by_turns(&self) {
        for turn in (1..).step_by(2) {
            self.wait_for(turn);
            if self.turn.load(Ordering::Acquire) == END {
                return;
            }
            self.words.iter().for_each(|word| word.store(turn, Ordering::Relaxed));
            self.turn.store(turn + 1, Ordering::Release);
        }
    }

    /// Whether the turn came without this thread's leaving the core to others.
    fn wait_for(&self, turn: u64) -> bool {
        let mut looks = 0u32;
        while self.turn.load(Ordering::Acquire) < turn {
            looks = looks.saturating_add(1);
            if looks > LOOKS {
                thread::yield_now();
            } else {
                spin_loop();
            }
        }
        looks <= LOOKS
    }
}

/// What disturbs a round makes it longer; if both threads have one core for a moment, it is shorter.
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
