//! Taking in what was posted to a rank of this process that nobody looks after.
//!
//! A rank whose task is suspended until a sync ends looks for arrivals only when a worker has
//! nothing else to do and runs its polling task. Whoever posts something to it is there already,
//! and carries its sync on by itself: what was posted is counted, and the task woken, on the spot.
//! Where workers are fewer than ranks a superstep is a row of such posts, and no worker looks in
//! vain in between.
//!
//! It is a hint throughout: what a poster misses, the polling task finds.

use std::cell::RefCell;

use smallvec::SmallVec;

use crate::numbers::Rank;
use crate::world::World;

/// What a thread that takes in for others has still to do.
struct Next {
    /// The world of the ranks; never followed.
    world: *const World,
    /// They have been posted to meanwhile.
    ranks: SmallVec<[Rank; 4]>,
}

thread_local! {
    static NEXT: RefCell<Option<Next>> = const { RefCell::new(None) };
}

impl World {
    /// Something was posted to `target`. The caller holds no lock.
    #[inline]
    pub(crate) fn notify(&self, target: Rank) {
        if self.remote_processes(target).is_none() && self.rank(target).waits.is_set() {
            self.progress_for(target);
        }
    }

    /// What follows from that (control messages, operations that were kept, actions of tasks that
    /// become ready) may tell others: they come next, not inside.
    fn progress_for(&self, target: Rank) {
        if std::thread::panicking() {
            // What a body that unwinds drops must not mix with guards of other tasks.
            return;
        }
        let is_first = NEXT.with_borrow_mut(|next| match next {
            Some(Next { world, ranks }) => {
                if std::ptr::eq(*world, self) && !ranks.contains(&target) {
                    ranks.push(target);
                }
                false
            }
            None => {
                *next = Some(Next { world: self, ranks: SmallVec::new() });
                true
            }
        });
        if !is_first {
            return;
        }
        let _over = Over;
        let mut target = Some(target);
        // Each once: the polling tasks find what comes after that.
        for _ in 0..self.size() {
            let Some(rank) = target else {
                return;
            };
            self.rank(rank).progress(self);
            let first = |next: &mut Next| (!next.ranks.is_empty()).then(|| next.ranks.remove(0));
            target = NEXT.with_borrow_mut(|next| next.as_mut().and_then(first));
        }
    }
}

/// The thread takes in for others no more.
struct Over;

impl Drop for Over {
    fn drop(&mut self) {
        NEXT.set(None);
    }
}
