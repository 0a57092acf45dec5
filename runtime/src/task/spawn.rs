//! Spawning: from a declaration to a task that is pending or ready.
#![allow(unsafe_code, reason = "fills the body cell of a record it owns")]

use std::future::Future;
use std::sync::Arc;

use smallvec::SmallVec;

use super::access_list::{Accesses, make_room};
use super::body::{Body, Later};
use super::handle::{JoinHandle, promise};
use super::{Label, Record, RecordId, pool, record, run};
use crate::access::{self, AccessId, AccessSlot, Declared};
use crate::error::Error;
use crate::group::GroupInner;
use crate::scheduler;

/// Who waits for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    /// Waits for its group wait for it.
    Member,
    /// A program that spawns tasks of the group and may wait for them: only shutdown waits for it.
    Main,
    /// A service such as a poller: shutdown waits for it, and its running is no sign of progress.
    Service,
    /// As `Member`, and runs on data that failed tasks left undefined.
    Cleanup,
}

impl Role {
    pub(super) fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Role::Member,
            1 => Role::Main,
            2 => Role::Service,
            _ => Role::Cleanup,
        }
    }
}

/// What a task is, apart from accesses and body.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    pub(super) label: Label,
    pub(super) priority: i32,
    pub(super) role: Role,
    /// Run it where it becomes ready instead of queueing it.
    pub(super) inline: bool,
}

/// A bias that keeps `pending` above zero while edges are being linked; it stays if there are none.
pub(crate) const SPAWNING: u32 = 1 << 30;

/// Spawns a task. `declare` calls its argument with every access, in order; `count` is how many.
#[inline]
pub(super) fn spawn<'a, B: Body>(
    group: &Arc<GroupInner>,
    traits: Traits,
    count: usize,
    declare: impl Fn(&mut dyn FnMut(Declared<'a>)),
    body: B,
) -> Result<(), Error> {
    let id = begin(group, traits, count)?;
    if count > 0 {
        make_room(id, count);
        let mut accesses = Accesses::of(record(id));
        declare(&mut |declared| {
            if let Some(access) = accesses.next() {
                access.slot().fill(access.generation(), &declared);
            }
        });
        if let Err(error) = check(record(id)) {
            abandon(group, id);
            return Err(error);
        }
    }
    // SAFETY: the record is ours until `submit`, and `begin` left its cell empty.
    unsafe { record(id).body.put(body) };
    submit(group, id, count);
    // An inline task may be part of something that its spawner has to finish first, and nobody
    // takes the drop of an array for a spawn.
    if !traits.inline && traits.role == Role::Member {
        scheduler::help(group);
    }
    Ok(())
}

#[inline]
fn begin(group: &Arc<GroupInner>, traits: Traits, count: usize) -> Result<RecordId, Error> {
    // Counted before the look, so that a shutdown sees this task or this spawn the shutdown.
    group.count_spawn(traits.role);
    if let Err(error) = admit(group) {
        group.count_completion(traits.role);
        return Err(error);
    }
    let id = pool::allocate();
    let new = record(id);
    new.create(id, Arc::as_ptr(group), traits.label);
    new.set_access_count(count);
    new.set_traits(&traits);
    new.open.set(1 + count as u32);
    Ok(id)
}

#[inline]
fn admit(group: &GroupInner) -> Result<(), Error> {
    group.shared.accept()?;
    if pool::exhausted() {
        let limit = pool::LIMIT - pool::RESERVE;
        return Err(Error::Size { what: "number of live tasks", value: limit + 1, limit });
    }
    Ok(())
}

/// Bounds and overlaps: the only ways a declaration can be wrong.
#[inline]
fn check(task: &'static Record) -> Result<(), Error> {
    let Some(slots) = task.accesses.get(..task.access_count()) else {
        return check_many(task);
    };
    for (index, slot) in slots.iter().enumerate() {
        check_bounds(slot)?;
        if let Some(other) = slots[..index].iter().find(|other| other.conflicts(slot)) {
            return Err(overlap(task, other, slot));
        }
    }
    Ok(())
}

#[inline]
fn check_bounds(slot: &AccessSlot) -> Result<(), Error> {
    let (region, extent) = (slot.rect(), slot.array().extent());
    if extent.covers(&region) && region.row <= region.row_end && region.col <= region.col_end {
        return Ok(());
    }
    Err(Error::RegionOutOfBounds { region, rows: extent.row_end, cols: extent.col_end })
}

/// As `check`, for accesses in several records: sorted by place, each is compared with those that
/// begin before its last row.
#[cold]
fn check_many(task: &'static Record) -> Result<(), Error> {
    let mut slots: SmallVec<[&AccessSlot; 16]> = Accesses::of(task).map(AccessId::slot).collect();
    slots.iter().try_for_each(|slot| check_bounds(slot))?;
    slots.sort_by_key(|slot| (slot.core().addr(), slot.rect().row, slot.rect().col));
    for (index, slot) in slots.iter().enumerate() {
        let rect = slot.rect();
        let near = |other: &&&AccessSlot| {
            let next = other.rect();
            let one_row = rect.rows() == 1 && next.row == rect.row;
            other.core() == slot.core()
                && next.row < rect.row_end
                && !(one_row && next.col >= rect.col_end)
        };
        if let Some(other) = slots[index + 1..].iter().take_while(near).find(|o| o.conflicts(slot))
        {
            return Err(overlap(task, slot, other));
        }
    }
    Ok(())
}

#[cold]
fn overlap(task: &Record, first: &AccessSlot, second: &AccessSlot) -> Error {
    Error::OverlappingAccesses {
        label: task.label().text().to_owned(),
        first: first.rect(),
        first_mode: first.mode(),
        second: second.rect(),
        second_mode: second.mode(),
    }
}

/// Gives back a record that was never submitted.
#[cold]
fn abandon(group: &GroupInner, id: RecordId) {
    let role = record(id).role();
    super::access_list::free_all(id);
    group.count_completion(role);
}

#[inline]
fn submit(group: &Arc<GroupInner>, id: RecordId, count: usize) {
    if count > 0 {
        let new = record(id);
        new.pending.set(SPAWNING);
        let edges = access::register(id, new);
        if edges > 0 && !new.pending.take(SPAWNING - edges) {
            return;
        }
    }
    run::ready_at_spawn(group, id);
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
    let traits = Traits { label: Label::new(label), priority: 0, role, inline: false };
    spawn(group, traits, 0, |_| {}, Later::Start(Some(body)))?;
    Ok(handle)
}
