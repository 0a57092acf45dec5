//! A handle of an open round, by which operations of the round are issued.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bytemuck::Pod;
use ibverbs_sim::{Access, LocalKey, RemoteAddress};
use talpf_runtime::ByteLayout;

use super::batches::{NO_BATCH, NO_RANK};
use super::future::awaited;
use super::guards::{Destination, Entries, ResultWord, Source, entries, first_row, lent};
use super::issued::Issued;
use super::patience::EARLY_POLLS;
use super::payloads::Memory;
use super::registration::Registered;
use super::{Operation, Route, Transfer, Verb};
use crate::error::Error;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::sender::RoundState;
use crate::slot::{Located, RemoteRegion};
use crate::window::{Claim, Kind};

/// A handle of the round that was open when it was taken from the [`Context`](crate::Context), by
/// which any task issues operations of that round.
///
/// The sync that ends the round waits until every clone is dropped, so a task must not keep a
/// handle while it waits for that sync.
pub struct OpenRound {
    pub(super) state: Arc<RoundState>,
    /// Target of its last operation, if that was a short put.
    pub(super) last: AtomicU32,
    /// Epoch of the batches at that time.
    pub(super) epoch: AtomicU32,
    /// Number of the batch that it owns.
    pub(super) batch: AtomicUsize,
    /// Polls that are left to its operations that come before their windows are open.
    pub(super) early_polls: AtomicU32,
}

impl OpenRound {
    pub(crate) fn new(entered: Arc<RoundState>) -> Self {
        OpenRound {
            state: entered,
            last: AtomicU32::new(NO_RANK),
            epoch: AtomicU32::new(0),
            batch: AtomicUsize::new(NO_BATCH),
            early_polls: AtomicU32::new(EARLY_POLLS),
        }
    }

    /// Returns the lane of the round.
    pub fn lane(&self) -> LaneNumber {
        self.state.lane
    }

    /// Returns the number of the round.
    pub fn number(&self) -> Round {
        self.state.number
    }

    /// Writes the elements of `from` to `to`.
    ///
    /// **Completion**: the returned operation ends when the region may be reused (*local*). The
    /// data is *delivered* when the target's sync of this round has ended.
    /// **Ordering**: a put lands inside a window of the same round only, and is parked if it comes
    /// early (R5); overlapping puts of one round land in some order, and no other operation of the
    /// round may read elements that they write (R6). Short puts to one rank that follow each other
    /// may be posted together: when this handle issues another operation or is dropped, when a task
    /// of this rank polls for arrivals or awaits a sync or an operation, or when the polling task
    /// finds that no more follow.
    /// **Errors**: elements beyond the slot of the target, or a rectangle of another length; at the
    /// syncs of both ranks, a target outside every window (R7) and, if the run checks for it, a
    /// conflict ([`Config::check_conflicts`](crate::Config::check_conflicts)).
    /// **Cost**: an array of more than 256 bytes (4 KiB between processes) that is no slot is
    /// registered for each operation: a program that puts it repeatedly registers it once
    /// ([`Context::register_local`]).
    /// **Source**: thesis, chapters 5.1.1 and 6.1.
    ///
    /// [`Context::register_local`]: crate::Context::register_local
    #[inline(always)]
    pub fn put<G: Source>(&self, from: G, to: RemoteRegion<'_, G::Element>) -> Operation<G> {
        let layout = from.layout();
        // The second of two short puts to one rank, and those that follow.
        if self.last.load(Ordering::Relaxed) == to.rank.0
            && layout.is_contiguous()
            && self.add_to_batch(lent(&from, &layout), layout.len as u64, &to)
        {
            return Operation::returned(from);
        }
        self.put_alone(from, &layout, &to)
    }

    /// Writes a copy of `values` to `to`: for values outside arrays, at most 256
    /// bytes.
    ///
    /// **Completion**: `values` may be reused at once. The returned operation ends when the put is
    /// posted or parked; a loop of puts awaits it, so as not to run ahead.
    /// **Ordering**: as [`OpenRound::put`]. **Errors**: more than 256 bytes; as [`OpenRound::put`].
    #[inline]
    pub fn put_copy<T: Pod>(&self, values: &[T], to: RemoteRegion<'_, T>) -> Operation<()> {
        let (bytes, len) = (bytemuck::cast_slice(values), values.len() as u64);
        if self.last.load(Ordering::Relaxed) == to.rank.0 && self.add_to_batch(bytes, len, &to) {
            return Operation::returned(());
        }
        self.put_copy_alone(bytes, len, &to)
    }

    #[inline(never)]
    fn put_alone<G: Source>(
        &self,
        from: G,
        layout: &ByteLayout,
        to: &RemoteRegion<'_, G::Element>,
    ) -> Operation<G> {
        match self.locate(to, layout.len as u64, Kind::Write) {
            Ok((at, route)) => self.put_at(from, layout, at, route),
            Err(error) => self.refuse(error),
        }
    }

    /// Writes the elements of `from` to `remote`, without a check of windows.
    ///
    /// # Safety
    /// From now until the target has ended this round, it holds a guard of the memory that is
    /// written there, and no other operation puts to it.
    #[allow(unsafe_code, reason = "the caller answers for the memory at the target")]
    #[inline]
    pub(crate) unsafe fn put_unchecked<G: Source>(
        &self,
        from: G,
        target: Rank,
        remote: RemoteAddress,
    ) -> Operation<G> {
        let layout = from.layout();
        if let Err(error) = self.state.count(target, 1) {
            return self.refuse(error);
        }
        let called_ns = self.state.sender.tracer.clock();
        let at = Transfer::consecutive(target, remote, layout.bytes(), called_ns);
        self.put_at(from, &layout, at, Route::Direct)
    }

    #[inline(always)]
    fn put_at<G: Source>(
        &self,
        from: G,
        layout: &ByteLayout,
        at: Transfer,
        route: Route,
    ) -> Operation<G> {
        let is_consecutive = layout.is_contiguous() && at.is_consecutive();
        if layout.bytes() <= self.longest_copied() as u64 && is_consecutive {
            let bytes = lent(&from, layout);
            let left = self.short_put(bytes, at, route);
            return self.after_short_put(from, left);
        }
        self.put_long(from, layout, at, route)
    }

    #[inline(never)]
    fn put_long<G: Source>(
        &self,
        from: G,
        layout: &ByteLayout,
        at: Transfer,
        route: Route,
    ) -> Operation<G> {
        at.prefetch(&self.state.sender.peers);
        self.flush_batch(NO_RANK);
        match self.registered(from, layout, Access::NONE) {
            Ok((from, key)) => self.issue(from, at, route, Verb::Put, (*layout, key)),
            Err(error) => self.refuse(error),
        }
    }

    /// Reads the elements of `from` into `to`.
    ///
    /// **Completion**: the returned operation ends when `to` holds the data. The owner counts it as
    /// an arrival of this round.
    /// **Ordering**: reads only once the owner exposes the region in this round (R5). No put or
    /// atomic of the round may write the elements that a get reads, of this rank or another (R6).
    /// **Errors**: as [`OpenRound::put`].
    /// **Source**: thesis, chapters 5.1.1 and 6.1.
    pub fn get<G: Destination>(&self, from: RemoteRegion<'_, G::Element>, to: G) -> Operation<G> {
        let layout = to.layout();
        self.bring(from, to, layout, Kind::Read, Verb::Get)
    }

    /// Adds to the number at `target` and writes its value before that to `result`.
    ///
    /// **Completion**: as [`OpenRound::get`]. **Ordering**: atomic towards all atomics of all
    /// ranks and nothing else: no put or get of the round may touch the same number (R6). Inside a
    /// window of the target, as a put.
    /// **Cost**: the device carries an operation on a rank of this process out as it posts it; so
    /// once the window is open an `await` ends at its first poll and does not suspend its task,
    /// unless another thread makes progress for this rank at that moment. One that comes before
    /// its window, or goes to another process, suspends: an atomic in a window takes one message there and one back. Over shared memory, this process changes a number of a raw
    /// slot itself if the array has 4 KiB or more, once its operations before were taken in by the owner.
    /// **Errors**: as [`OpenRound::get`]; a result that is not one element.
    /// **Source**: thesis, chapter 5.2.
    pub fn fetch_and_add<G: Destination<Element = u64>>(
        &self,
        target: RemoteRegion<'_, u64>,
        add: u64,
        result: G,
    ) -> Operation<G> {
        self.atomic(target, result, Verb::FetchAdd { add })
    }

    /// Replaces the number at `target` by `swap` if it is `compare`, and writes its value before
    /// that to `result`.
    ///
    /// **Completion**, **Ordering**, **Errors**, **Source**: as [`OpenRound::fetch_and_add`].
    pub fn compare_and_swap<G: Destination<Element = u64>>(
        &self,
        target: RemoteRegion<'_, u64>,
        compare: u64,
        swap: u64,
        result: G,
    ) -> Operation<G> {
        self.atomic(target, result, Verb::CompareSwap { compare, swap })
    }

    fn atomic<G: Destination>(
        &self,
        target: RemoteRegion<'_, G::Element>,
        result: G,
        verb: Verb,
    ) -> Operation<G> {
        let layout = result.layout();
        if layout.len != 1 {
            let (what, value) = ("number of elements of an atomic's result", layout.len as u64);
            return self.refuse(Error::Limit { what, value, limit: 1 });
        }
        self.bring(target, result, layout, Kind::Update, verb)
    }

    fn bring<G: Destination>(
        &self,
        remote: RemoteRegion<'_, G::Element>,
        local: G,
        layout: ByteLayout,
        kind: Kind,
        verb: Verb,
    ) -> Operation<G> {
        self.flush_batch(NO_RANK);
        let (at, route) = match self.locate(&remote, layout.len as u64, kind) {
            Ok(located) => located,
            Err(error) => return self.refuse(error),
        };
        let (mut local, key) = match self.registered(local, &layout, Access::LOCAL_WRITE) {
            Ok(registered) => registered,
            Err(error) => return self.refuse(error),
        };
        if self.is_short_get(&layout, &at) {
            local = match self.bring_at_once(local, first_row(&layout, key), &at, route, verb) {
                Ok(operation) => return operation,
                Err(local) => local,
            };
        }
        self.issue(local, at, route, verb, (layout, key))
    }

    fn issue<G: Source>(
        &self,
        guard: Registered<G>,
        at: Transfer,
        route: Route,
        verb: Verb,
        (layout, key): (ByteLayout, LocalKey),
    ) -> Operation<G> {
        let memory = self.entries(&layout, key, &at);
        if self.is_one_request(&at, &memory) {
            return self.issue_at_once(guard, at, route, verb, memory);
        }
        let origin = &self.state.sender;
        let message = origin.tracer.begin_get(&at, verb);
        let (operation, done) = awaited(&self.state, at.target, verb, message, guard);
        let memory = Memory::Entries(memory);
        let issued = Issued::new(&self.state, at, route, verb, memory, Some(done));
        if verb.update().is_none() {
            issued.issue();
        } else {
            #[allow(unsafe_code, reason = "the guard of the result belongs to the operation")]
            // SAFETY: `OpenRound::atomic` has checked the guard, a `Destination`, which `done` keeps until the operation
            // has ended. If the operation has no result it is not posted to the device, which would write there.
            let result = unsafe { ResultWord::new(layout) };
            issued.with_result(result).issue();
        }
        operation
    }

    #[inline]
    pub(super) fn locate<T>(
        &self,
        remote: &RemoteRegion<'_, T>,
        len: u64,
        kind: Kind,
    ) -> Result<(Transfer, Route), Error> {
        let RemoteRegion { slot, rank: target, part, .. } = *remote;
        let located = slot.locate(self.state.sender.run, target, part, len)?;
        let Located { remote, index, end, rows, stride, windowed } = located;
        self.state.count(target, 1)?;
        let (source, number) = (self.state.rank, slot.number);
        let raw = !windowed;
        let claim = Claim { source, slot: number, index, end, rows, stride, kind, raw };
        let route = if windowed || self.is_to_be_noted_by(target) {
            Route::Window(claim)
        } else {
            self.state.sender.note(&self.state, target, claim);
            Route::Direct
        };
        let called_ns = self.state.sender.tracer.clock();
        let bytes = len * slot.element_bytes;
        let stride_bytes = u64::from(stride) * slot.element_bytes;
        Ok((Transfer { target, remote, bytes, rows, stride_bytes, called_ns }, route))
    }

    /// Returns `true` if a remote rank has to grant the operation though it needs no window: the
    /// target notes it, to find conflicts.
    pub(super) fn is_to_be_noted_by(&self, target: Rank) -> bool {
        let origin = &self.state.sender;
        origin.checks_conflicts && origin.peers.is_granting(target)
    }

    /// Returns the most bytes of a guard that a put copies.
    #[inline]
    fn longest_copied(&self) -> usize {
        let endpoint = &self.state.sender.own.endpoint;
        endpoint.inline_bytes.min(endpoint.max_transfer)
    }

    /// Registers the memory of a guard for an operation.
    fn registered<G: Source>(
        &self,
        guard: G,
        layout: &ByteLayout,
        access: Access,
    ) -> Result<(Registered<G>, LocalKey), Error> {
        let (slots, endpoint) = (&self.state.sender.slots, &self.state.sender.own.endpoint);
        Registered::new(slots, &endpoint.domain, guard, layout, access)
    }

    /// Returns registered memory for an operation with the remote side `at`.
    fn entries(&self, layout: &ByteLayout, key: LocalKey, at: &Transfer) -> Entries {
        let longest = self.state.sender.own.endpoint.max_transfer;
        entries(layout, key, longest, at.row_bytes() as usize)
    }

    /// Refuses an invalid operation: its task fails, and so does this rank.
    #[cold]
    pub(super) fn refuse<G>(&self, error: Error) -> Operation<G> {
        // Outside a task only the rank fails.
        let _ = talpf_runtime::fail_current_task(error.to_string());
        self.state.sender.fail(&error);
        Operation::failed(error)
    }
}

impl Clone for OpenRound {
    fn clone(&self) -> Self {
        OpenRound::new(self.state.enter())
    }
}

impl Drop for OpenRound {
    fn drop(&mut self) {
        let origin = &self.state.sender;
        let batch = *self.batch.get_mut();
        if batch != NO_BATCH {
            origin.batches.release(batch);
        }
        if self.state.leave() {
            self.state.progress();
        } else {
            self.state.progress_if_rung();
        }
    }
}

/// The handle of an operation that is a task of its own. If the task does not run because one
/// before it failed, the drop of the handle notes that an operation is missing.
pub(crate) struct Spawned {
    round: OpenRound,
    issued: bool,
}

impl Spawned {
    pub(crate) fn new(round: OpenRound) -> Self {
        Spawned { round, issued: false }
    }

    pub(crate) fn issue<R>(mut self, operation: impl FnOnce(&OpenRound) -> R) -> R {
        self.issued = true;
        operation(&self.round)
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        if !self.issued {
            self.round.state.note_missing();
        }
    }
}
