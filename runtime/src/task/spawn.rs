//! Spawning: from a declaration to a task that is pending or ready.
#![allow(unsafe_code, reason = "fills the body cell of a record it owns")]

use std::future::Future;
use std::sync::Arc;

use super::access_list::access;
use super::body::{Body, Later};
use super::handle::{JoinHandle, promise};
use super::{Label, RecordId, pool, record, run};
use crate::access::{self, AccessSlot, Declared};
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

/// Up to this many accesses are compared each with each.
const FEW: usize = 16;

/// A bias that keeps `pending` above zero while edges are being linked.
const SPAWNING: u32 = 1 << 30;

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
        let mut index = 0;
        declare(&mut |declared| {
            let access = access(id, index);
            access.slot().fill(access.carrier().generation(), &declared);
            index += 1;
        });
        if let Err(error) = check(id, count) {
            abandon(group, id);
            return Err(error);
        }
    }
    // SAFETY: the record is ours until `submit`, and `begin` left its cell empty.
    unsafe { record(id).body.put(body) };
    submit(group, id, count);
    scheduler::help(group);
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
fn check(id: RecordId, count: usize) -> Result<(), Error> {
    for index in 0..count {
        let slot = access(id, index).slot();
        let rect = slot.rect();
        let extent = slot.array().extent();
        let inside = extent.covers(&rect) && rect.row <= rect.row_end && rect.col <= rect.col_end;
        if !inside {
            let (rows, cols) = (extent.row_end, extent.col_end);
            return Err(Error::RegionOutOfBounds { region: rect, rows, cols });
        }
        if count > FEW {
            continue;
        }
        for earlier in 0..index {
            let other = access(id, earlier).slot();
            if other.core() == slot.core() && other.conflicts(slot) {
                return Err(overlap(id, other, slot));
            }
        }
    }
    if count > FEW { check_many(id, count) } else { Ok(()) }
}

/// Overlaps among many accesses: sorted by place, each is compared with those that begin before
/// its last row.
#[cold]
fn check_many(id: RecordId, count: usize) -> Result<(), Error> {
    let mut slots: Vec<&AccessSlot> = (0..count).map(|index| access(id, index).slot()).collect();
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
            return Err(overlap(id, slot, other));
        }
    }
    Ok(())
}

#[cold]
fn overlap(id: RecordId, first: &AccessSlot, second: &AccessSlot) -> Error {
    Error::OverlappingAccesses {
        label: record(id).label().text().to_owned(),
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
    let new = record(id);
    if count > 0 {
        new.pending.set(SPAWNING);
        let edges = access::register(id, count);
        if edges > 0 {
            let bias = SPAWNING - edges;
            if !new.pending.take(bias) {
                return;
            }
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
