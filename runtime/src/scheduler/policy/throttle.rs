//! Throttling of spawners that are ahead of the workers that run their tasks.
//!
//! | figure | cost without the policy | noise |
//! |---|---|---|
//! | `runtime.stencil` | +226 % | +1 % |
//! | `runtime.chain` | +141 % | +1 % |

use talpf_primitives::{Ordering, thread};

use super::super::Runner;
use super::super::worker::Worker;
use super::super::worker_slot::WorkerSlot;
use super::{Policy, catch_up};
use crate::group::GroupInner;
use crate::record::{Role, note_wait, record, running, take_note};

/// Spawns between checks of whether the spawner is too far ahead, and tasks that it runs if it is.
pub(in crate::scheduler) const HELP_ROUNDS: u64 = 16;
/// Spawns between tasks whose delay is measured; the fair rounds do the same outside spawns.
pub(in crate::scheduler) const SAMPLE_ROUNDS: u64 = 4 * HELP_ROUNDS;
impl Worker {
    /// Runs some ready tasks if too many tasks of `group` are outstanding, or more short ones are
    /// ready than other workers will take.
    pub(in crate::scheduler) fn throttle<R: Runner>(&self, group: &GroupInner) {
        let policies = self.shared.config.policies;
        let throttle = match policies.has(Policy::Throttle) {
            true => self.shared.config.throttle,
            false => usize::MAX,
        };
        let plenty = throttle < usize::MAX && self.has_plenty_of_short(throttle);
        let is_ahead = || group.outstanding() > throttle as u64;
        let far = catch_up::far(policies, throttle);
        let is_far_ahead = || group.outstanding() > far;
        if self.helping.get()
            || !(plenty || is_ahead())
            // Guards dropped by a body that unwinds must not mix with those of another task.
            || std::thread::panicking()
        {
            return;
        }
        // `None`: an action that spawns as a guard drops.
        let Some(spawner) = running::current() else { return };
        self.helping.set(true);
        let (start_ns, mut ran) = (self.shared.clock.now_ns(), 0);
        let steals = !plenty && is_far_ahead();
        if steals {
            // It may have rested long enough.
            self.rests(start_ns);
        }
        let note = take_note();
        let next = &self.slot().hot.next;
        for _ in 0..HELP_ROUNDS {
            let affine = || self.take_from_affinity_queue().or_else(|| self.take_returned());
            let own = || next.take().or_else(|| self.deques.pop()).or_else(affine);
            let others = || if steals { self.steal() } else { None };
            match self.set.priorities.pop_above().or_else(own).or_else(others) {
                // A main must not run on top of another, which could not go on before it ended.
                Some(task) if record(task).role() == Role::Main => {
                    self.set.inject(task);
                    break;
                }
                Some(task) => {
                    self.slot().hot.note_help(Some(spawner), Some(task));
                    self.execute::<R>(task, false);
                }
                None => break,
            }
            ran += 1;
        }
        self.slot().hot.note_help(None, None);
        let now_ns = self.shared.clock.now_ns();
        let spent_ns = now_ns.saturating_sub(start_ns);
        self.grain_ns.set(spent_ns.checked_div(ran).unwrap_or(self.grain_ns.get()));
        self.settle();
        if steals {
            self.forget_theft();
        }
        if ran < HELP_ROUNDS && is_far_ahead() {
            self.let_others_catch_up(now_ns, is_far_ahead);
        }
        take_note();
        note.into_iter().for_each(note_wait);
        self.helping.set(false);
    }

    /// Waits until workers that are in a body complete tasks, if nothing is left to do here. Two
    /// workers do not wait for each other.
    #[cold]
    fn let_others_catch_up(&self, now_ns: u64, is_far_ahead: impl Fn() -> bool) {
        let until_ns = now_ns + catch_up::LONGEST_NS;
        let WorkerSlot { hot, affinity_queue, .. } = self.slot();
        hot.catches_up.store(true, Ordering::Relaxed);
        while hot.next.peek().is_none()
            && affinity_queue.is_empty()
            && self.set.injector.is_empty()
            && self.set.beside(self.index).any(|(_, other)| other.hot.is_busy())
            && is_far_ahead()
            && self.shared.clock.now_ns() < until_ns
        {
            thread::yield_now();
        }
        hot.catches_up.store(false, Ordering::Relaxed);
    }
}
