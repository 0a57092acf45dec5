//! The part of a record for tasks that are children or have lent regions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use talpf_primitives::Mutex;

use super::{Record, RecordId};
use crate::access::PassedOn;
use crate::task::Nest;

/// The nest of a task, and the accesses that it has passed on. `is_nested` of the record is set if
/// there is either, so that other tasks do not touch this cache line.
#[derive(Default)]
pub(crate) struct Nesting(Mutex<Parts>);

#[derive(Default)]
struct Parts {
    nest: Option<Arc<Nest>>,
    passed_on: Option<Box<PassedOn>>,
}

impl Record {
    #[inline]
    pub(crate) fn is_nested(&self) -> bool {
        self.is_nested.load(Relaxed)
    }

    /// Makes an unshared task a child.
    pub(crate) fn enter(&self, nest: &Arc<Nest>) {
        self.nesting.0.lock().nest = Some(Arc::clone(nest));
        self.is_nested.store(true, Relaxed);
    }

    /// Returns the nest that the task is in. The caller keeps the task from being complete.
    pub(crate) fn nest(&self) -> Option<Arc<Nest>> {
        if self.is_nested() { self.nesting.0.lock().nest.clone() } else { None }
    }

    /// Returns the parent of a child. The caller keeps the child from being complete, or checks
    /// afterwards that it was not.
    pub(crate) fn parent(&self) -> Option<RecordId> {
        if !self.is_nested() {
            return None;
        }
        self.nesting.0.lock().nest.as_ref().map(|nest| nest.parent())
    }

    /// Notes an access that closes when the task is complete.
    pub(crate) fn note_passed_on(&self, mut access: PassedOn) {
        let mut parts = self.nesting.0.lock();
        access.next = parts.passed_on.take();
        parts.passed_on = Some(Box::new(access));
        self.is_nested.store(true, Relaxed);
    }

    /// Closes the accesses that the task has passed on and takes it out of its nest; the caller
    /// completes it.
    pub(crate) fn leave(&self) -> Option<Arc<Nest>> {
        self.is_nested.store(false, Relaxed);
        let Parts { nest, mut passed_on } = std::mem::take(&mut *self.nesting.0.lock());
        while let Some(access) = passed_on {
            passed_on = access.close();
        }
        nest
    }
}
