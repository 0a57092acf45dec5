//! Replayed tasks, which run more than once: their records, and bodies that can be called again.
//!
//! A closure is called in place. An async closure leaves its future in the record, like that of
//! any task, for as long as it lasts.
#![allow(unsafe_code, reason = "fills the body cell of the record that it runs")]

use std::future::Future;
use std::sync::Arc;
use std::task::Poll;

use super::body::AsyncBody;
use crate::dependency::Declared;
use crate::error::Error;
use crate::group::GroupInner;
use crate::record::{Accesses, RecordId, Role, Traits, free_all, make_room, pool, record};

/// The body of a task that runs more than once.
pub(crate) trait Repeated: Send + Sync {
    /// Runs the body to its end, or to its first await; the rest is in the record then.
    fn run(&self, task: RecordId) -> Poll<()>;
}

struct Closure<F>(F);

impl<F: Fn(RecordId) + Send + Sync> Repeated for Closure<F> {
    #[inline]
    fn run(&self, task: RecordId) -> Poll<()> {
        (self.0)(task);
        Poll::Ready(())
    }
}

struct AsyncClosure<F>(Arc<F>);

impl<F, Fut> Repeated for AsyncClosure<F>
where
    F: Fn(RecordId) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    fn run(&self, task: RecordId) -> Poll<()> {
        let start = Arc::clone(&self.0);
        let body = AsyncBody::Start(Some(move |task| start(task)));
        // SAFETY: the caller runs the task, and the future of the run before has ended.
        unsafe { record(task).body.put(body) };
        // SAFETY: as above.
        unsafe { record(task).body.run(task) }
    }
}

/// Makes a body that is called in every run.
pub(crate) fn repeated(call: impl Fn(RecordId) + Send + Sync + 'static) -> Box<dyn Repeated> {
    Box::new(Closure(call))
}

/// Makes a body that returns a future in every run.
pub(crate) fn repeated_async<Fut: Future<Output = ()> + Send + 'static>(
    start: impl Fn(RecordId) -> Fut + Send + Sync + 'static,
) -> Box<dyn Repeated> {
    Box::new(AsyncClosure(Arc::new(start)))
}

/// Creates the record of a task that runs more than once, with its accesses filled in. It is not
/// counted, but another task that completes later is.
///
/// **Errors**: too many tasks.
pub(crate) fn new_repeated(
    group: &Arc<GroupInner>,
    traits: &Traits,
    accesses: &[Declared<'_>],
) -> Result<RecordId, Error> {
    let id = pool::allocate()?;
    let new = record(id);
    new.create(id, group.for_records(), traits.label);
    new.set_access_count(accesses.len());
    let mut traits = *traits;
    traits.set_role(Role::Replayed);
    new.set_traits(&traits);
    make_room(id, accesses.len());
    for (access, declared) in Accesses::of(new).zip(accesses) {
        declared.fill(access.slot(), access.generation());
    }
    Ok(id)
}

/// Frees the record of a task that does not run again.
pub(crate) fn free_task(task: RecordId) {
    drop(record(task).take_failure());
    free_all(task);
}
