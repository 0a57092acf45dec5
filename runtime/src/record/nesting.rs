//! The part of a record for tasks that are children or have lent regions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use talpf_primitives::Mutex;

use super::{Nest, Record, RecordId};

/// The nest of a task, and the actions at its completion. `is_nested` of the record is set if there
/// is either, so that other tasks do not touch this cache line.
#[derive(Default)]
pub(crate) struct Nesting(Mutex<Parts>);

#[derive(Default)]
struct Parts {
    nest: Option<Arc<Nest>>,
    at_completion: AtCompletion,
}

/// Actions to be called by the thread that completes a task, the last one first: they close the
/// accesses that the task has passed on.
#[derive(Default)]
pub(crate) struct AtCompletion(Option<Box<Action>>);

struct Action {
    call: Box<dyn FnOnce() + Send>,
    next: AtCompletion,
}

impl Iterator for AtCompletion {
    type Item = Box<dyn FnOnce() + Send>;

    fn next(&mut self) -> Option<Self::Item> {
        let Action { call, next } = *self.0.take()?;
        *self = next;
        Some(call)
    }
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

    /// Adds an action to those at the completion of the task.
    pub(crate) fn at_completion(&self, action: impl FnOnce() + Send + 'static) {
        let call = Box::new(action);
        let mut parts = self.nesting.0.lock();
        let next = std::mem::take(&mut parts.at_completion);
        parts.at_completion = AtCompletion(Some(Box::new(Action { call, next })));
        self.is_nested.store(true, Relaxed);
    }

    /// Takes the task out of its nest and removes its actions; the caller completes it, after it
    /// has called those.
    pub(crate) fn take_nesting(&self) -> (Option<Arc<Nest>>, AtCompletion) {
        self.is_nested.store(false, Relaxed);
        let Parts { nest, at_completion } = std::mem::take(&mut *self.nesting.0.lock());
        (nest, at_completion)
    }
}
