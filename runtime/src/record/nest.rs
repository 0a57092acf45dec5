//! The common state of the children of one handle.

use std::sync::Arc;
use std::task::Waker;

use talpf_primitives::{AtomicUsize, Mutex, Ordering};

use super::{RecordId, record};
use crate::error::Failure;
use crate::wakers::Wakers;

/// State shared by the children of one handle. It stands for one unit of the parent's completion,
/// which the last of its owners gives up: the handle that spawns, and the children that are not
/// complete. Every owner ends with [`Nest::leave`].
pub(crate) struct Nest {
    parent: RecordId,
    /// Number of children spawned and not yet complete.
    outstanding: AtomicUsize,
    wakers: Wakers,
    /// Failure with the longest chain since the last wait.
    failure: Mutex<Option<Arc<Failure>>>,
}

impl Nest {
    /// Creates a nest for a unit of the completion of `parent`.
    pub(crate) fn of(parent: RecordId) -> Self {
        Nest {
            parent,
            outstanding: AtomicUsize::new(0),
            wakers: Wakers::default(),
            failure: Mutex::default(),
        }
    }

    pub(crate) fn parent(&self) -> RecordId {
        self.parent
    }

    /// Counts the children that are not complete.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Relaxed)
    }

    pub(crate) fn count_spawn(&self) {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a child that is complete. Returns the wakers to call.
    ///
    /// **Ordering**: a thread that sees that no child is left sees everything they did.
    pub(crate) fn count_completion(&self) -> Vec<Waker> {
        let last = self.outstanding.fetch_sub(1, Ordering::AcqRel) == 1;
        if last { self.wakers.take() } else { Vec::new() }
    }

    /// Returns `true` if no child is left; otherwise `waker` is called when that is so.
    pub(crate) fn is_quiet_or_wakes(&self, waker: &Waker) -> bool {
        // Before the check: a completion after the check finds the waker.
        self.wakers.add(waker);
        self.outstanding.load(Ordering::Acquire) == 0
    }

    /// Keeps the failure of a child for the next wait, unless it has one with a longer chain.
    pub(crate) fn note_failure(&self, failure: Arc<Failure>) {
        let depth = |failure: &Arc<Failure>| failure.chain().count();
        let mut known = self.failure.lock();
        if known.as_ref().is_none_or(|known| depth(known) < depth(&failure)) {
            *known = Some(failure);
        }
    }

    pub(crate) fn take_failure(&self) -> Option<Arc<Failure>> {
        self.failure.lock().take()
    }

    /// Ends the part of an owner. If it is the last one, a failure that nobody has waited for goes
    /// to the nest that the parent is in, and the unit of the parent is taken. Returns the parent
    /// if that was its last one: the caller completes it.
    pub(crate) fn leave(self: Arc<Self>) -> Option<RecordId> {
        let Nest { parent, failure, .. } = Arc::into_inner(self)?;
        if let Some(failure) = failure.lock().take() {
            record(parent).nest().into_iter().for_each(|nest| nest.note_failure(failure.clone()));
        }
        record(parent).open.take(1).then_some(parent)
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::wakers::model::Woken;

    #[test]
    fn who_waits_for_children_sees_the_last_or_is_woken() {
        loom::model(|| {
            let nest = Arc::new(Nest::of(RecordId::of_test(0)));
            (0..2).for_each(|_| nest.count_spawn());
            let children: Vec<_> = (0..2)
                .map(|_| {
                    let nest = nest.clone();
                    thread::spawn(move || {
                        nest.count_completion().into_iter().for_each(Waker::wake);
                    })
                })
                .collect();
            let (waker, woken) = Woken::waker();
            let quiet = nest.is_quiet_or_wakes(&waker);
            children.into_iter().for_each(|child| child.join().unwrap());
            assert!(quiet || woken.is_woken());
        });
    }
}
