//! The membership of a task in a reduction.
#![allow(unsafe_code, reason = "says which region a reduction has to itself")]

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::operator::Operator;
use super::{Copies, PrivateCopy, Target};
use crate::data::Invariant;
use crate::dependency::{Declared, Joins, OpenReduction};
use crate::task;

/// An object that a clause makes for its access, and that joins a reduction at the registration.
pub(super) struct Ticket<T, O> {
    joined: OnceLock<Joined<T, O>>,
    /// Number of steps in which a replayed task has added a copy.
    steps: OnceLock<AtomicU64>,
    element: Invariant<T>,
}

struct Joined<T, O> {
    reduction: Arc<OpenReduction>,
    copies: Arc<Copies<T, O>>,
    number: u64,
}

/// A ticket, whatever its operator.
pub(super) trait Contribution<T>: Joins + Send + Sync {
    /// Returns a copy for the task, which begins.
    fn take(&self) -> PrivateCopy<T>;
    /// Ends the membership, with the task's copy if it has one.
    fn leave(&self, copy: Option<PrivateCopy<T>>) -> Result<(), String>;
}

impl<T, O> Ticket<T, O> {
    pub(super) fn new() -> Self {
        Ticket { joined: OnceLock::new(), steps: OnceLock::new(), element: PhantomData }
    }
}

impl<T: Send + Sync + 'static, O: Operator<T>> Joins for Ticket<T, O> {
    fn join(
        &self,
        open: Option<&Arc<OpenReduction>>,
        declared: &Declared<'_>,
    ) -> Arc<OpenReduction> {
        let same = open.and_then(|open| {
            let copies: Arc<dyn Any + Send + Sync> = Arc::clone(open.copies());
            Some((Arc::clone(open), copies.downcast::<Copies<T, O>>().ok()?))
        });
        let (reduction, copies) = same.unwrap_or_else(|| {
            let (core, rect) = (declared.core(), declared.rect());
            let first = core.first_of::<T>(&rect);
            // SAFETY: the access that is declared is to elements of type `T` (`Reduced::new`). Its
            // task leaves before that closes, as do all that join (`ReductionAccess::release`,
            // `Member`).
            let target = unsafe { Target::new(first, rect.rows(), rect.cols(), core.stride()) };
            let copies = Arc::new(Copies::<T, O>::new(target, core.arrays().workers()));
            (Arc::new(OpenReduction::new(rect, copies.clone())), copies)
        });
        let number = copies.join();
        let _ = self.joined.set(Joined { reduction: Arc::clone(&reduction), copies, number });
        reduction
    }

    fn stay(&self) {
        let _ = self.steps.set(AtomicU64::new(0));
    }

    fn operator(&self) -> TypeId {
        TypeId::of::<O>()
    }
}

impl<T: Send + Sync + 'static, O: Operator<T>> Contribution<T> for Ticket<T, O> {
    fn take(&self) -> PrivateCopy<T> {
        self.joined.get().map_or_else(PrivateCopy::default, |joined| joined.copies.take())
    }

    fn leave(&self, copy: Option<PrivateCopy<T>>) -> Result<(), String> {
        let Some(Joined { reduction, copies, number }) = self.joined.get() else {
            return Ok(());
        };
        let left = match (self.steps.get(), copy) {
            (None, copy) => copies.leave(*number, copy),
            // A task waits for itself in the step before.
            (Some(steps), Some(copy)) => {
                copies.add_step(*number, steps.fetch_add(1, Ordering::Relaxed), copy)
            }
            // The run fails, or has ended.
            (Some(_), None) => Ok(()),
        };
        if left.is_err() {
            reduction.seal();
        }
        left
    }
}

/// The membership of a declared task, which ends once, at the latest when this drops. A replayed
/// task has another one for every step.
pub struct Member<T: 'static>(Option<Arc<dyn Contribution<T>>>);

impl<T> Member<T> {
    pub(super) fn new(contribution: &Arc<dyn Contribution<T>>) -> Self {
        Member(Some(Arc::clone(contribution)))
    }

    pub(super) fn take(&self) -> PrivateCopy<T> {
        self.0.as_ref().map_or_else(PrivateCopy::default, |contribution| contribution.take())
    }

    pub(super) fn leave(&mut self, copy: Option<PrivateCopy<T>>) -> Result<(), String> {
        self.0.take().map_or(Ok(()), |contribution| contribution.leave(copy))
    }
}

impl<T> Clone for Member<T> {
    fn clone(&self) -> Self {
        Member(self.0.clone())
    }
}

/// Ends the membership of a task that does not run, or whose spawn was refused.
impl<T> Drop for Member<T> {
    fn drop(&mut self) {
        if let Err(reason) = self.leave(None) {
            // A task whose declaration is dropped without running has failed already.
            let _ = task::fail_current_task(reason);
        }
    }
}
