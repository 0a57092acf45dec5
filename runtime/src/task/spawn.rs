//! Spawning: from a declaration to a task that is pending or ready.
#![allow(unsafe_code, reason = "fills the body cell of a record it owns")]

use std::future::Future;
use std::sync::Arc;

use super::body::{AsyncBody, Call};
use super::handle::{JoinHandle, promise};
use super::release::release_unheld;
use super::run::{self, Steps};
use crate::dependency::{self, Clauses, OpenAccess};
use crate::error::Error;
use crate::group::GroupInner;
use crate::record::{
    Accesses, Body, Label, Nest, Phase, RecordId, Role, SPAWNING, Traits, make_room, pool, record,
};
use crate::scheduler;

/// Spawns a task, in a nest if it is a child.
#[inline]
pub(super) fn spawn<'r, B: Body>(
    group: &Arc<GroupInner>,
    nest: Option<&Arc<Nest>>,
    traits: Traits,
    clauses: &impl Clauses<'r>,
    body: B,
) -> Result<(), Error> {
    let (mut whole, mut ours) = (nest.is_none(), true);
    clauses.for_each(|declared| {
        whole &= declared.whole_tile().is_some();
        ours &= declared.is_among(&group.arrays);
    });
    if !(whole & ours) {
        check(group, clauses, traits.label, nest)?;
    }
    let count = clauses.count();
    let own = ours.then_some(&group.arrays.domain);
    let id = begin(group, traits, count, nest.is_some())?;
    let new = record(id);
    if let Some(nest) = nest {
        nest.count_spawn();
        new.enter(nest);
    }
    let refused = |body: B, edges, overlap: Box<Error>| {
        // The task may have joined reductions, which it leaves before its accesses close.
        group.call_back("a body that drops", || drop(body));
        refuse(group, id, edges);
        Err(*overlap)
    };
    let mut edges = 0;
    make_room(id, count);
    // Separate calls, so that the common path keeps its values in registers.
    if let Some(graph) = &group.shared.config.graph {
        let parent = nest.map(|nest| nest.parent());
        let mut register = || dependency::register(id, new, own, clauses);
        let noted = graph.note(id, group.head(), parent, clauses, &mut register);
        if let Some(overlap) = noted.overlap {
            return refused(body, noted.edges, overlap);
        }
        edges = noted.edges;
    } else if count > 0 {
        let registered = dependency::register(id, new, own, clauses);
        if let Some(overlap) = registered.overlap {
            return refused(body, registered.edges, overlap);
        }
        edges = registered.edges;
    }
    // SAFETY: the record is ours until `submit`, and `begin` left its cell empty.
    unsafe { new.body.put(body) };
    if B::ACTS {
        new.set_acts();
    }
    submit(group, id, edges);
    // An inline task may be part of an operation that its spawner has to finish first, and the drop
    // of an array should not act as a spawn.
    if traits.marks().is_throttled() {
        scheduler::throttle::<Steps>(group);
    }
    Ok(())
}

/// Checks accesses that are not just whole tiles. Not inlined, since errors are large.
#[inline(never)]
fn check(
    group: &GroupInner,
    clauses: &dyn Clauses<'_>,
    label: Label,
    nest: Option<&Arc<Nest>>,
) -> Result<(), Error> {
    let parent = nest.map(|nest| nest.parent());
    let mut checked = Ok(());
    clauses.visit(&mut |declared| {
        if checked.is_ok() {
            let ours = declared.check_runtime(&group.arrays, group.head(), label);
            checked = ours.and_then(|()| declared.check(label, parent));
        }
    });
    checked
}

#[inline]
fn begin(
    group: &Arc<GroupInner>,
    traits: Traits,
    count: usize,
    is_child: bool,
) -> Result<RecordId, Error> {
    let role = traits.marks().role();
    group.count_spawn(role, is_child)?;
    let id = match pool::allocate() {
        Ok(id) => id,
        Err(error) => return Err(not_begun(group, role, error)),
    };
    let new = record(id);
    new.create(id, group.for_records(), traits.label);
    new.set_access_count(count);
    new.set_traits(&traits);
    new.open.set(1 + count as u32);
    new.pending.set(SPAWNING);
    Ok(id)
}

#[cold]
fn not_begun(group: &GroupInner, role: Role, error: Error) -> Error {
    scheduler::count_completion(group, role);
    error
}

/// Spawns a task whose accesses exclude each other with a body that closes them in order.
#[cold]
fn refuse(group: &Arc<GroupInner>, id: RecordId, edges: u32) {
    // SAFETY: the task runs as the body is called, and nobody has guards of its accesses.
    let open = |access| unsafe { OpenAccess::new(access) };
    // SAFETY: as above; each is released once.
    let release = |access| unsafe { release_unheld(access) };
    let body = move |task| Accesses::of(record(task)).map(open).for_each(release);
    // SAFETY: the record is ours until `submit`, and its cell is empty.
    unsafe { record(id).body.put(Call(Some(body))) };
    submit(group, id, edges);
}

/// Hands a new task over to the accesses that it waits for, or to the queues.
#[inline]
fn submit(group: &Arc<GroupInner>, id: RecordId, edges: u32) {
    if edges == 0 || record(id).pending.take(SPAWNING - edges) {
        run::ready_at_spawn(group, id);
    }
}

/// Spawns a task without accesses whose body has ended: its one unit is the caller's to resolve.
#[inline]
pub(super) fn spawn_ended(group: &Arc<GroupInner>, label: Label) -> Result<RecordId, Error> {
    let mut traits = Traits::new(label, Role::Member);
    traits.set_inline();
    let id = begin(group, traits, 0, false)?;
    let begin = scheduler::trace_begin(id);
    record(id).state.set(Phase::Ended);
    scheduler::trace_end(id, begin);
    Ok(id)
}

/// Spawns a future without accesses.
pub(crate) fn spawn_future<R: Send + 'static>(
    group: &Arc<GroupInner>,
    label: &'static str,
    role: Role,
    future: impl Future<Output = R> + Send + 'static,
) -> Result<JoinHandle<R>, Error> {
    let (promise, handle) = promise(group);
    let body = move |_| async move { promise.keep(future.await) };
    spawn(group, None, Traits::new(Label::new(label), role), &(), AsyncBody::Start(Some(body)))?;
    Ok(handle)
}
