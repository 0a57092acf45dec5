//! Turns: commutative accesses exclude each other, in any order, and no worker waits for one.
//!
//! Every tile of an array has a turn. A task with commutative accesses that nothing earlier holds
//! back takes the turns of all tiles they touch before it is ready, in one order for all tasks, so
//! that tasks never wait for each other in a circle. Where a turn is taken the task joins those
//! who wait for it and is left there. Closing an access gives its turns up: each is handed to the
//! task that has waited longest, which is carried on by the same thread.
//!
//! A turn is free, or taken with a stack of the tasks that have come since the holder last looked;
//! those it has seen are a queue, which only the holder touches.
//!
//! # The race to beware of
//!
//! A task that fails notes what it has spoilt before it gives up its turns, and a task looks for
//! such notes once it has got all of its own. A look before that could come between the start of
//! the holder and its failure, and the task would run on what that has spoilt (R4).
#![allow(unsafe_code, reason = "says that the accesses of a task that has not begun are open")]

use smallvec::SmallVec;
use talpf_primitives::{AtomicU32, Ordering};

use super::{AccessSlot, OpenAccess};
use crate::data::Mode;
use crate::task::{self, Accesses, EventCounter, Record, RecordId, record};

const FREE: u32 = u32::MAX;
/// Taken and nobody waits; at the end of a list: nobody follows.
const NOBODY: u32 = u32::MAX - 1;

/// Who may use a tile commutatively.
pub(crate) struct Turn {
    word: AtomicU32,
    /// The first of the waiting tasks that the holder has seen.
    queue: AtomicU32,
    /// The holder's open accesses of the tile.
    held: EventCounter,
}

impl Turn {
    pub(crate) fn new() -> Self {
        Turn {
            word: AtomicU32::new(FREE),
            queue: AtomicU32::new(NOBODY),
            held: EventCounter::new(),
        }
    }

    /// Takes the turn, or leaves `task` with those who wait. `set_next` notes who follows it there.
    fn take(&self, task: u32, set_next: impl Fn(u32)) -> bool {
        let mut current = self.word.load(Ordering::Relaxed);
        loop {
            let next = if current == FREE { NOBODY } else { task };
            if current != FREE {
                set_next(current);
            }
            let swapped =
                self.word.compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Relaxed);
            match swapped {
                Ok(_) => return current == FREE,
                Err(seen) => current = seen,
            }
        }
    }

    /// Gives up the turn, which the caller has: to the task that is returned, if one waits.
    fn pass_on(&self, next_of: impl Fn(u32) -> u32, set_next: impl Fn(u32, u32)) -> Option<u32> {
        let mut first = self.queue.load(Ordering::Relaxed);
        if first == NOBODY {
            let freed =
                self.word.compare_exchange(NOBODY, FREE, Ordering::Release, Ordering::Relaxed);
            if freed.is_ok() {
                return None;
            }
            // The last to come is the first in the stack.
            let mut waiting = self.word.swap(NOBODY, Ordering::Acquire);
            while waiting != NOBODY {
                let earlier = next_of(waiting);
                set_next(waiting, first);
                first = waiting;
                waiting = earlier;
            }
        }
        self.queue.store(next_of(first), Ordering::Relaxed);
        Some(first)
    }
}

/// Takes the turns of a task that nothing earlier holds back. `false`: it waits for one of them,
/// and whoever hands it over goes on with the task.
pub(crate) fn take_turns(id: RecordId) -> bool {
    // For the hang report: all earlier accesses have closed.
    record(id).pending.set(0);
    take_from(id, &turns_of(record(id)))
}

/// As `take_turns`, from the first one on in `turns`.
fn take_from(id: RecordId, turns: &[(&Turn, u32)]) -> bool {
    let waiting = record(id);
    for (turn, held) in turns {
        if !turn.take(id.index(), |next| waiting.set_next_in_turn(next)) {
            return false;
        }
        turn.held.set(*held);
    }
    look_for_failures(waiting);
    true
}

/// Gives up the turns of a commutative access that is about to close.
#[cold]
pub(super) fn give_up(access: OpenAccess) {
    for_each_turn(access, |turn| {
        if turn.held.take(1) {
            // SAFETY: who waits for a turn has entered the index of its id, in `take_from`.
            let id_of = |task| unsafe { RecordId::new(task) };
            let next_of = |task| record(id_of(task)).next_in_turn();
            let set_next = |task, next| record(id_of(task)).set_next_in_turn(next);
            if let Some(next) = turn.pass_on(next_of, set_next) {
                carry_on(id_of(next), turn);
            }
        }
    });
}

/// Goes on with a task that has been handed a turn it waited for.
fn carry_on(id: RecordId, turn: &Turn) {
    let turns = turns_of(record(id));
    let at = turns.partition_point(|(other, _)| std::ptr::from_ref(*other) < turn);
    let Some(((turn, held), rest)) = turns[at..].split_first() else {
        return;
    };
    turn.held.set(*held);
    if take_from(id, rest) {
        task::release_ready(id);
    }
}

/// The turns that a task needs, in the order of all tasks, each with its accesses of that tile.
fn turns_of(task: &'static Record) -> SmallVec<[(&'static Turn, u32); 8]> {
    let mut turns: SmallVec<[(&Turn, u32); 8]> = SmallVec::new();
    for access in commutative(task) {
        for_each_turn(access, |turn| turns.push((turn, 1)));
    }
    turns.sort_unstable_by_key(|(turn, _)| std::ptr::from_ref(*turn));
    turns.dedup_by(|(turn, _), (before, held)| {
        let same = std::ptr::eq(*turn, *before);
        *held += u32::from(same);
        same
    });
    turns
}

/// The accesses that need turns, of a task that has not begun. What lends one that touches no element
/// may have closed before it.
fn commutative(task: &'static Record) -> impl Iterator<Item = OpenAccess> {
    let takes_turns =
        |slot: &AccessSlot| slot.mode() == Mode::Commutative && !slot.rect().is_empty();
    let accesses = Accesses::of(task).filter(move |access| takes_turns(access.slot()));
    // SAFETY: the accesses of a task that has not begun are open.
    accesses.map(|access| unsafe { OpenAccess::new(access) })
}

fn for_each_turn(access: OpenAccess, mut visit: impl FnMut(&'static Turn)) {
    let (array, rect) = (access.array(), access.slot().rect());
    if !rect.is_empty() {
        let turns = array.turns();
        array.for_each_tile(&rect, |tile, _| visit(&turns[tile]));
    }
}

/// Keeps a task that has all its turns from running if those who had them before have failed.
fn look_for_failures(task: &'static Record) {
    for access in commutative(task) {
        let array = access.array();
        if array.was_spoilt()
            && let Some(failure) = array.domain().lock().spoilt_before(access)
        {
            task.poison(failure);
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    struct Model {
        turn: Turn,
        next: [AtomicU32; 3],
        inside: AtomicU32,
        went: AtomicU32,
    }

    impl Model {
        /// What a task does with its turn, and everybody after it whom it hands the turn to.
        fn go(&self, task: u32) {
            let mut holder = Some(task);
            while let Some(task) = holder {
                assert_eq!(self.inside.load(Ordering::Relaxed), 0, "two at once");
                self.inside.store(1, Ordering::Relaxed);
                self.went.fetch_add(1 << (8 * task), Ordering::Relaxed);
                self.inside.store(0, Ordering::Relaxed);
                let next_of = |task: u32| self.next[task as usize].load(Ordering::Relaxed);
                let set_next = |task: u32, next| {
                    self.next[task as usize].store(next, Ordering::Relaxed);
                };
                holder = self.turn.pass_on(next_of, set_next);
            }
        }

        fn come(&self, task: u32) {
            let set_next = |next| self.next[task as usize].store(next, Ordering::Relaxed);
            if self.turn.take(task, set_next) {
                self.go(task);
            }
        }
    }

    #[test]
    fn everybody_gets_the_turn_once_and_alone() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let model = Arc::new(Model {
                turn: Turn::new(),
                next: std::array::from_fn(|_| AtomicU32::new(NOBODY)),
                inside: AtomicU32::new(0),
                went: AtomicU32::new(0),
            });
            let others: Vec<_> = (1..3u32)
                .map(|task| {
                    let model = model.clone();
                    thread::spawn(move || model.come(task))
                })
                .collect();
            model.come(0);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert_eq!(model.went.load(Ordering::Relaxed), 0x01_01_01);
            assert_eq!(model.turn.word.load(Ordering::Relaxed), FREE);
        });
    }
}
