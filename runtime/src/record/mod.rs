//! Records of tasks: plain memory, which calls nobody.
//!
//! A [`Record`] has all words of one task: its state, its counts, its accesses and the edges that
//! lead to it, its body, its failure. Records live in a pool and are reused. Beside them are the
//! words of a thread that every room reads: the task that it runs, and what that waits for.
//!
//! This room knows rectangles, modes and errors. Of the rooms above it knows addresses: that of the
//! array of an access, which it compares; and those of a task's group and of its replayed task, of
//! which it knows the beginning ([`GroupHead`], [`ReplayHead`]). Who follows edges, runs bodies and
//! counts completions is not its concern.
//!
//! Plain fields are written by the spawner while it owns the record and read by the thread that
//! runs or completes the task; the counter that hands the task over orders the two. They are
//! atomics nevertheless because the hang report may read a record at any time.
//!
//! A task with more than [`ACCESSES`] accesses or [`EDGES`] edges has further records, its
//! continuation records, linked through `more`.
#![allow(unsafe_code, reason = "makes ids of the indices that it has stored")]

mod access_head;
mod access_list;
mod access_slot;
mod body;
mod counter;
mod edge;
mod failure;
mod failure_cell;
mod group_head;
mod label;
mod memory;
mod nest;
mod nesting;
pub(crate) mod pool;
mod replay_head;
pub(crate) mod running;
mod state;
mod traits;
mod urgency;
mod wait_note;

use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32 as PlainU32,
    Ordering::{Acquire, Relaxed, Release},
};

use self::failure_cell::FailureCell;
use self::label::AtomicLabel;
use self::nesting::Nesting;

pub(crate) use self::access_head::AccessHead;
pub(crate) use self::access_list::{AccessId, Accesses, EdgeRoom, free_all, make_room, more_edges};
pub(crate) use self::access_slot::{ARRAY_ALIGN, AccessSlot};
pub(crate) use self::body::{Body, BodyCell};
pub(crate) use self::counter::{EventCounter, SPAWNING};
pub(crate) use self::edge::{Edge, EdgeId, Waiter};
pub(crate) use self::group_head::GroupHead;
pub(crate) use self::label::Label;
pub(crate) use self::nest::Nest;
pub(crate) use self::pool::{RecordId, for_each_record, record};
pub(crate) use self::replay_head::ReplayHead;
pub(crate) use self::state::{Phase, TaskState};
pub(crate) use self::traits::{Marks, Role, Traits};
pub(crate) use self::urgency::Urgency;
pub(crate) use self::wait_note::take_note;
pub use self::wait_note::{note_outside, note_wait};

/// Number of accesses in one record.
pub(crate) const ACCESSES: usize = 6;
/// Number of edges in one record.
pub(crate) const EDGES: usize = 8;

/// All data of one task.
#[repr(C, align(64))]
pub(crate) struct Record {
    pub(crate) state: TaskState,
    /// Number of edges not yet followed, plus a bias while the task is being spawned.
    pub(crate) pending: EventCounter,
    /// Units that completion waits for: the body, the guards, the pending events.
    pub(crate) open: EventCounter,
    group: AtomicPtr<GroupHead>,
    label: AtomicLabel,
    owner: PlainU32,
    more: PlainU32,
    /// Number of accesses of the task; in a continuation record, of those before its own.
    access_count: PlainU32,
    urgency: AtomicI32,
    failure: FailureCell,
    marks: PlainU32,
    /// Steps of the task between its last edge and a queue.
    steps: AtomicU8,
    pub(crate) is_nested: AtomicBool,
    pub(crate) accesses: [AccessSlot; ACCESSES],
    pub(crate) edges: [Edge; EDGES],
    pub(crate) body: BodyCell,
    waits_for: AtomicLabel,
    /// Task that follows this one in the list of those that wait for a tile lock.
    next_waiter: PlainU32,
    /// Used if `is_nested`.
    pub(crate) nesting: Nesting,
    /// The replayed task, for the role `Replayed`.
    replayed: AtomicPtr<ReplayHead>,
}

#[cfg(not(talpf_loom))]
const _: () = {
    assert!(std::mem::offset_of!(Record, accesses) == 64, "the header fills one cache line");
    assert!(size_of::<Record>() == 512);
};

const NONE: u32 = u32::MAX;

const TILE_LOCKS: u8 = 1;
const ACTS: u8 = 2;
const MAY_BE_HELD: u8 = 4;

impl Record {
    pub(crate) fn new() -> Self {
        Record {
            state: TaskState::new(),
            pending: EventCounter::new(),
            open: EventCounter::new(),
            group: AtomicPtr::default(),
            label: AtomicLabel::empty(),
            owner: PlainU32::new(0),
            more: PlainU32::new(NONE),
            access_count: PlainU32::new(0),
            urgency: AtomicI32::new(0),
            failure: FailureCell::default(),
            marks: PlainU32::new(0),
            steps: AtomicU8::new(0),
            is_nested: AtomicBool::new(false),
            accesses: std::array::from_fn(|_| AccessSlot::new()),
            edges: std::array::from_fn(|_| Edge::new()),
            body: BodyCell::new(),
            waits_for: AtomicLabel::empty(),
            next_waiter: PlainU32::new(0),
            nesting: Nesting::default(),
            replayed: AtomicPtr::default(),
        }
    }

    /// Starts a new generation in a record that the caller owns. A thread that sees the generation
    /// in `state` sees its owner, group and label, not those of the task before.
    #[inline]
    pub(crate) fn create(&self, owner: RecordId, group: *const GroupHead, label: Label) {
        self.owner.store(owner.index(), Relaxed);
        self.more.store(NONE, Relaxed);
        // A thread that sees this group in the generation before sees as well that it was free.
        self.group.store(group.cast_mut(), Release);
        self.label.store(label);
        self.steps.store(0, Relaxed);
        self.is_nested.store(false, Relaxed);
        self.state.create();
    }

    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.state.generation()
    }

    /// Returns the task that this record belongs to: itself, or the one that it continues.
    #[inline]
    pub(crate) fn owner(&self) -> RecordId {
        // SAFETY: `create` has stored the index of an id; before, it is 0, the first of all
        // records.
        unsafe { RecordId::new(self.owner.load(Relaxed)) }
    }

    #[inline]
    pub(crate) fn more(&self) -> Option<RecordId> {
        let more = self.more.load(Relaxed);
        // SAFETY: besides `NONE`, the word holds indices of ids only.
        (more != NONE).then(|| unsafe { RecordId::new(more) })
    }

    #[inline]
    pub(crate) fn set_more(&self, more: RecordId) {
        self.more.store(more.index(), Relaxed);
    }

    /// Links the continuation record `more` behind this one, unless there is another, which is the
    /// error.
    ///
    /// For a task that may run: the caller keeps it from being complete.
    pub(crate) fn append(&self, more: RecordId) -> Result<(), RecordId> {
        let appended = self.more.compare_exchange(NONE, more.index(), Release, Relaxed);
        // SAFETY: as in `more`; `NONE` would have been replaced.
        appended.map(|_| ()).map_err(|other| unsafe { RecordId::new(other) })
    }

    #[inline]
    pub(crate) fn group(&self) -> *const GroupHead {
        self.group.load(Acquire)
    }

    /// Returns the group of a task that is not complete.
    ///
    /// # Safety
    /// The caller has a unit of the task's completion as long as it uses the result.
    unsafe fn live_group(&self) -> &'static GroupHead {
        // SAFETY: the pointer was set from a reference when the task was created, and groups are
        // kept until their tasks are complete.
        unsafe { &*self.group() }
    }

    #[inline]
    pub(crate) fn label(&self) -> Label {
        self.label.load()
    }

    /// Returns a number that identifies the task in a trace.
    pub(crate) fn number(&self, id: RecordId) -> u64 {
        u64::from(self.generation()) << 32 | u64::from(id.index())
    }

    #[inline]
    pub(crate) fn access_count(&self) -> usize {
        self.access_count.load(Relaxed) as usize
    }

    /// Returns the number of accesses in the task's records before this continuation record.
    pub(crate) fn accesses_before(&self) -> usize {
        self.access_count.load(Relaxed) as usize
    }

    #[inline]
    pub(crate) fn set_access_count(&self, count: usize) {
        self.access_count.store(count as u32, Relaxed);
    }

    #[inline]
    pub(crate) fn set_traits(&self, traits: &Traits) {
        self.marks.store(traits.marks().bits(), Relaxed);
        self.urgency.store(traits.urgency().bits(), Relaxed);
    }

    #[inline]
    pub(crate) fn marks(&self) -> Marks {
        Marks::from_bits(self.marks.load(Relaxed))
    }

    #[inline]
    pub(crate) fn role(&self) -> Role {
        self.marks().role()
    }

    #[inline]
    pub(crate) fn urgency(&self) -> Urgency {
        Urgency::from_bits(self.urgency.load(Relaxed))
    }

    pub(crate) fn set_urgency(&self, urgency: Urgency) {
        self.urgency.store(urgency.bits(), Relaxed);
    }

    /// Returns `true` if the task has steps between its last edge and a queue.
    #[inline]
    pub(crate) fn has_steps(&self) -> bool {
        self.steps.load(Relaxed) != 0
    }

    /// Returns `true` if the task has commutative accesses.
    pub(crate) fn needs_tile_locks(&self) -> bool {
        self.steps.load(Relaxed) & TILE_LOCKS != 0
    }

    pub(crate) fn set_needs_tile_locks(&self) {
        self.add_step(TILE_LOCKS);
    }

    /// Returns `true` if the task has actions before its body.
    pub(crate) fn acts(&self) -> bool {
        self.steps.load(Relaxed) & ACTS != 0
    }

    pub(crate) fn set_acts(&self) {
        self.add_step(ACTS);
    }

    /// Returns `true` if the task's actions, which may hold it back, have begun.
    pub(crate) fn may_be_held(&self) -> bool {
        self.steps.load(Relaxed) & MAY_BE_HELD != 0
    }

    pub(crate) fn set_may_be_held(&self) {
        self.add_step(MAY_BE_HELD);
    }

    /// Adds a step. Called by the one thread that has the task.
    fn add_step(&self, step: u8) {
        self.steps.store(self.steps.load(Relaxed) | step, Relaxed);
    }

    pub(crate) fn next_waiter(&self) -> u32 {
        self.next_waiter.load(Relaxed)
    }

    pub(crate) fn set_next_waiter(&self, next: u32) {
        self.next_waiter.store(next, Relaxed);
    }

    /// Returns the reason why the task is suspended, if the runtime knows it.
    pub(crate) fn waits_for(&self) -> Option<&'static str> {
        Some(self.waits_for.load().text()).filter(|text| !text.is_empty())
    }

    pub(crate) fn set_waits_for(&self, what: Option<&'static str>) {
        self.waits_for.store(Label::new(what.unwrap_or("")));
    }

    /// Returns the pointer that `set_replayed` has stored.
    #[inline]
    pub(crate) fn replayed(&self) -> *const ReplayHead {
        self.replayed.load(Relaxed)
    }

    pub(crate) fn set_replayed(&self, replayed: *const ReplayHead) {
        self.replayed.store(replayed.cast_mut(), Relaxed);
    }

    /// Returns the preferred worker of a queued task, if it is replayed.
    pub(crate) fn preferred_worker(&self) -> Option<usize> {
        if self.role() != Role::Replayed {
            return None;
        }
        // SAFETY: a task that is in a queue is not complete, so its run lives.
        unsafe { &*self.replayed() }.preferred_worker()
    }

    #[inline]
    pub(crate) fn failure_cell(&self) -> &FailureCell {
        &self.failure
    }
}

#[cfg(all(test, not(any(talpf_loom, talpf_shuttle))))]
mod tests {
    use std::{ptr, thread};

    use super::*;

    #[test]
    fn a_thread_that_sees_a_task_sees_its_group() {
        const TASKS: u32 = if cfg!(miri) { 100 } else { 300_000 };
        let group_of = |generation: u32| if generation.is_multiple_of(2) { 8 } else { 16 };
        // SAFETY: an id that is not used to find a record.
        let id = unsafe { RecordId::new(0) };
        let record = Record::new();
        let reads = || {
            loop {
                let seen @ (generation, phase) = record.state.phase();
                let group = record.group().addr();
                let is_same = record.state.phase() == seen;
                if phase == Phase::Created && is_same {
                    assert_eq!(group, group_of(generation), "of the task before, at {generation}");
                }
                if generation == TASKS {
                    break;
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(reads);
            for generation in 1..=TASKS {
                record.create(
                    id,
                    ptr::without_provenance(group_of(generation)),
                    Label::new("task"),
                );
                record.state.set(Phase::Free);
            }
        });
    }
}
