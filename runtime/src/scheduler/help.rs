//! Spawners that are ahead of those who run what they spawn.

use talpf_primitives::{Ordering, thread};

use super::queues::Seat;
use super::thief::SHORT_NS;
use super::worker::Worker;
use crate::group::GroupInner;
use crate::task::{self, Role, record};

/// Spawns between looks at whether the spawner is too far ahead, and tasks it runs if it is.
pub(super) const HELP_ROUNDS: u64 = 16;
/// Ready tasks that a spawner of short ones leaves to others at most.
const PLENTY: usize = 32;
/// Spawns between tasks whose delay is measured; the fair rounds do the same for other tasks.
pub(super) const SAMPLE_ROUNDS: u64 = 4 * HELP_ROUNDS;
/// Throttles that a spawner is ahead before it does what slows it down: steals, and waits.
const FAR: u64 = 16;
/// How long a spawner waits at most for workers that are behind before it goes on: what they run may
/// wait for what it does next.
const CATCH_UP_NS: u64 = 1_000_000;

impl Worker {
    /// Runs some ready tasks if too many tasks of `group` are outstanding, or more short ones are
    /// ready than anybody else will want.
    pub(super) fn help(&self, group: &GroupInner) {
        let throttle = self.shared.config.throttle;
        let plenty = throttle < usize::MAX
            && self.grain_ns.get() < SHORT_NS
            && self.deques.len() >= PLENTY.min(throttle);
        let is_ahead = || group.outstanding() > throttle as u64;
        let is_far_ahead = || group.outstanding() > FAR.saturating_mul(throttle as u64);
        if self.helping.get()
            || !(plenty || is_ahead())
            // What a body that unwinds has dropped must not mix with the guards of another task.
            || std::thread::panicking()
        {
            return;
        }
        // None: an action that spawns, where a guard drops.
        let Some(spawner) = task::current() else { return };
        self.helping.set(true);
        let (start_ns, mut ran) = (self.shared.clock.now_ns(), 0);
        let steals = !plenty && is_far_ahead();
        if steals {
            // It may have rested long enough.
            self.rests(start_ns);
        }
        let note = task::take_note();
        let next = &self.seat().pulse.next;
        for _ in 0..HELP_ROUNDS {
            let sent = || self.take_mail().or_else(|| self.take_returned());
            let own = || next.take().or_else(|| self.deques.pop()).or_else(sent);
            let others = || if steals { self.steal() } else { None };
            match self.shared.priorities.pop_above().or_else(own).or_else(others) {
                // A program must not run on top of another, which could not go on before it.
                Some(task) if record(task).role() == Role::Main => {
                    self.shared.inject(task);
                    break;
                }
                Some(task) => {
                    self.seat().pulse.note_help(Some(spawner), Some(task));
                    self.execute(task, false);
                }
                None => break,
            }
            ran += 1;
        }
        self.seat().pulse.note_help(None, None);
        let now_ns = self.shared.clock.now_ns();
        let spent_ns = now_ns.saturating_sub(start_ns);
        self.grain_ns.set(spent_ns.checked_div(ran).unwrap_or(self.grain_ns.get()));
        self.settle();
        if steals {
            self.forget_theft();
        }
        if ran < HELP_ROUNDS && is_far_ahead() {
            self.let_others_catch_up(now_ns + CATCH_UP_NS, is_far_ahead);
        }
        task::take_note();
        note.into_iter().for_each(task::note_wait);
        self.helping.set(false);
    }

    /// Waits for workers that are in a body to complete tasks, if nothing is left to do here. Two
    /// do not wait for each other.
    #[cold]
    fn let_others_catch_up(&self, until_ns: u64, is_far_ahead: impl Fn() -> bool) {
        let Seat { pulse, mail, .. } = self.seat();
        pulse.catches_up.store(true, Ordering::Relaxed);
        while pulse.next.peek().is_none()
            && mail.is_empty()
            && self.shared.injector.is_empty()
            && self.shared.is_busy_beside(self.index)
            && is_far_ahead()
            && self.shared.clock.now_ns() < until_ns
        {
            thread::yield_now();
        }
        pulse.catches_up.store(false, Ordering::Relaxed);
    }
}
