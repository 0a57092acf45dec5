//! The context of a rank, through which its program communicates.

use std::fmt;
use std::sync::Arc;

use talpf_runtime::{Group, In, Out, Region};

use crate::all_gather::Call;
use crate::double_buffered_channel::{DoubleBufferedChannel, Link};
use crate::error::Error;
use crate::numbers::{LaneNumber, Rank};
use crate::operation::{OpenRound, Source, Spawned};
use crate::round::User;
use crate::slot::{MemorySlot, Registrable, RemoteRegion, Slot, Use};
use crate::sync::{SyncBuilder, SyncMode};
use crate::world::World;

/// A handle of one rank of a run. Clones are handles of the same rank.
#[derive(Clone)]
pub struct Context {
    world: Arc<World>,
    rank: Rank,
}

impl Context {
    pub(crate) fn new(world: &Arc<World>, rank: Rank) -> Self {
        Context { world: Arc::clone(world), rank }
    }

    pub(crate) fn world(&self) -> &Arc<World> {
        &self.world
    }

    pub(crate) fn state(&self) -> &crate::world::RankState {
        self.world.rank(self.rank)
    }

    /// Returns the number of this rank.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.world.size()
    }

    /// Returns the rank with a number.
    ///
    /// **Errors**: no such rank.
    pub fn peer(&self, number: u32) -> Result<Rank, Error> {
        let (rank, ranks) = (Rank(number), self.ranks());
        if number < ranks { Ok(rank) } else { Err(Error::NoSuchRank { rank, ranks }) }
    }

    /// Returns the group of this rank, which arrays are made in and tasks are spawned into.
    pub fn group(&self) -> &Group {
        &self.state().group
    }

    /// Registers an array that peers reach inside windows. Collective: every rank registers one
    /// of the same element type, of any size, in the same order.
    ///
    /// **Completion**: all ranks have registered. **Errors**: at a rank that cannot register (no
    /// room: `resize_memory_register`; too large for the device) the cause, at all others
    /// [`Error::CallFailed`], which names that rank; different element sizes; another collective
    /// call at another rank; a rank that has failed. After all of these errors but the last the
    /// register is as before at every rank, and all may go on.
    /// **Source**: thesis, chapter 2.3.3.
    pub async fn register_global<A: Registrable>(
        &self,
        array: &A,
    ) -> Result<MemorySlot<A::Element>, Error> {
        self.register(array, Use::Windowed, Call::RegisterGlobal).await
    }

    /// Registers an array that peers reach at any time, without windows: the semantics of the
    /// thesis. Collective, as [`Context::register_global`].
    ///
    /// # Safety
    /// The program separates in time, by its syncs and by double buffers or acknowledgements, the
    /// accesses of peers to a part of the array from those of tasks that hold a guard of it; and
    /// the accesses of two peers to one part, if one of them writes: [`Config::check_conflicts`]
    /// finds a round that reads and writes it.
    ///
    /// [`Config::check_conflicts`]: crate::Config::check_conflicts
    #[allow(unsafe_code, reason = "the program answers for raw slots")]
    pub async unsafe fn register_raw<A: Registrable>(
        &self,
        array: &A,
    ) -> Result<MemorySlot<A::Element>, Error> {
        self.register(array, Use::Raw, Call::RegisterRaw).await
    }

    pub(crate) async fn register<A: Registrable>(
        &self,
        array: &A,
        usage: Use,
        call: Call,
    ) -> Result<MemorySlot<A::Element>, Error> {
        let state = self.state();
        let prepared = state.slots.prepare_global(&state.endpoint.domain, array, usage);
        let own = prepared.map(|slot| (slot.descriptor(), slot));
        let (slot, gathered) = self.world.all_gather(self.rank, call, own).await?;
        Ok(MemorySlot::new(slot.publish(&gathered)?))
    }

    /// Registers an array for this rank's own operations, as the source of puts and the destination
    /// of gets. Arrays that are not registered work too, but are registered for each operation.
    ///
    /// **Errors**: no room (`resize_memory_register`).
    /// **Source**: thesis, chapter 2.3.3.
    pub fn register_local<A: Registrable>(
        &self,
        array: &A,
    ) -> Result<MemorySlot<A::Element>, Error> {
        let state = self.state();
        Ok(MemorySlot::new(state.slots.add_local(&state.endpoint.domain, array)?))
    }

    /// Takes a slot out of the register. Not collective; the peers must not use the slot any more.
    /// The array is kept until the last handle of the slot is dropped.
    ///
    /// **Errors**: the slot was deregistered before.
    pub fn deregister<T>(&self, slot: MemorySlot<T>) -> Result<(), Error> {
        self.state().slots.remove(&slot.slot)
    }

    /// Makes a [`DoubleBufferedChannel`] of `links`, which takes `lane` for the rest of the run.
    /// Collective: every rank calls it, those without links too. The n-th link of one rank to
    /// another matches the n-th link of that one back. The buffers are of arrays registered with
    /// [`Context::register_global`], and no two of them overlap.
    ///
    /// **Completion**: all ranks have made theirs, and each has the buffers of its first round as
    /// `inout`. **Errors**: links that do not match, which name the rank and both values; a lane
    /// that was used; buffers that overlap or are not registered; a rank that failed. Each of them
    /// fails the run.
    pub async fn double_buffered_channel<T: bytemuck::Pod + Send + Sync>(
        &self,
        lane: LaneNumber,
        links: &[Link<'_, T>],
    ) -> Result<DoubleBufferedChannel<T>, Error> {
        let made = DoubleBufferedChannel::new(self, lane, links).await;
        if let Err(error) = &made {
            self.world.fail(&[self.rank], error);
        }
        made
    }

    /// Sets how many slots this rank may have. The default is 64.
    ///
    /// **Errors**: fewer than are in use.
    /// **Source**: thesis, chapter 2.3.3.
    pub fn resize_memory_register(&self, slots: usize) -> Result<(), Error> {
        self.state().slots.set_limit(slots)
    }

    /// Sets how many operations this rank may issue in one round of one lane. The default is
    /// 1,048,576.
    ///
    /// **Errors**: zero, or more than 2^31.
    /// **Source**: thesis, chapter 2.3.2.
    pub fn resize_message_queue(&self, operations: usize) -> Result<(), Error> {
        self.state().open_rounds.set_limit(operations)
    }

    /// Takes a handle of the open round of lane 0, to issue operations inside tasks.
    #[inline]
    pub fn round(&self) -> OpenRound {
        self.round_of(LaneNumber::default())
    }

    /// As [`Context::round`], of another lane. If a [`DoubleBufferedChannel`] has taken the lane,
    /// operations are refused.
    #[inline]
    pub fn round_of(&self, lane: LaneNumber) -> OpenRound {
        let state = self.state();
        OpenRound::new(state.open_rounds.enter(&self.world, self.rank, lane, User::Program))
    }

    /// Spawns a task that puts `from` to where `to` begins, in the open round of lane 0.
    ///
    /// **Completion**: returns at once. The task has `from` as input until it may be reused
    /// (*local*). **Errors**: as a spawn; later, those of [`OpenRound::put`] at the sync.
    pub fn put<T, D>(&self, from: &Region<'_, T, D>, to: RemoteRegion<'_, T>) -> Result<(), Error>
    where
        T: bytemuck::Pod + Send + Sync,
        D: Send + 'static,
    {
        self.put_on(LaneNumber::default(), from, to)
    }

    /// As [`Context::put`], on another lane.
    pub fn put_on<T, D>(
        &self,
        lane: LaneNumber,
        from: &Region<'_, T, D>,
        to: RemoteRegion<'_, T>,
    ) -> Result<(), Error>
    where
        T: bytemuck::Pod + Send + Sync,
        D: Send + 'static,
    {
        let (spawned, to) = (Spawned::new(self.round_of(lane)), Remote::new(&to));
        let task = self.group().task("put").communicates().inline().input(from);
        Ok(task.spawn(move |from: In<T, D>| {
            detach(spawned.issue(|round| round.put(from, to.region())))
        })?)
    }

    /// Spawns a task that gets the elements from where `from` begins into `to`, in the open round
    /// of lane 0.
    ///
    /// **Completion**: returns at once. The task has `to` as output until it holds the data.
    /// **Errors**: as a spawn; later, those of [`OpenRound::get`] at the sync.
    pub fn get<T, D>(&self, from: RemoteRegion<'_, T>, to: &Region<'_, T, D>) -> Result<(), Error>
    where
        T: bytemuck::Pod + Send + Sync,
        D: Send + 'static,
    {
        self.get_on(LaneNumber::default(), from, to)
    }

    /// As [`Context::get`], on another lane.
    pub fn get_on<T, D>(
        &self,
        lane: LaneNumber,
        from: RemoteRegion<'_, T>,
        to: &Region<'_, T, D>,
    ) -> Result<(), Error>
    where
        T: bytemuck::Pod + Send + Sync,
        D: Send + 'static,
    {
        let (spawned, from) = (Spawned::new(self.round_of(lane)), Remote::new(&from));
        let task = self.group().task("get").communicates().inline().output(to);
        Ok(task.spawn(move |to: Out<T, D>| {
            detach(spawned.issue(|round| round.get(from.region(), to)))
        })?)
    }

    /// Spawns a task that adds to a remote number and writes its value before that to `result`.
    ///
    /// **Completion**, **Errors**: as [`Context::get`].
    pub fn fetch_and_add(
        &self,
        target: RemoteRegion<'_, u64>,
        add: u64,
        result: &Region<'_, u64>,
    ) -> Result<(), Error> {
        let (spawned, target) = (Spawned::new(self.round()), Remote::new(&target));
        let task = self.group().task("fetch_and_add").communicates().inline().output(result);
        Ok(task.spawn(move |result: Out<u64>| {
            detach(spawned.issue(|round| round.fetch_and_add(target.region(), add, result)));
        })?)
    }

    /// Spawns a task that replaces a remote number by `swap` if it is `compare`, and writes its
    /// value before that to `result`.
    ///
    /// **Completion**, **Errors**: as [`Context::get`].
    pub fn compare_and_swap(
        &self,
        target: RemoteRegion<'_, u64>,
        compare: u64,
        swap: u64,
        result: &Region<'_, u64>,
    ) -> Result<(), Error> {
        let (spawned, target) = (Spawned::new(self.round()), Remote::new(&target));
        let task = self.group().task("compare_and_swap").communicates().inline().output(result);
        Ok(task.spawn(move |result: Out<u64>| {
            let target = target.region();
            detach(spawned.issue(|round| round.compare_and_swap(target, compare, swap, result)));
        })?)
    }

    /// Polls for arrivals instead of waiting for the polling task, and returns the number of
    /// operations that have arrived for the oldest round of the lane that has not ended.
    ///
    /// For programs that have a worker to spare and need the lowest latency of a notification.
    /// **Completion**: the operations counted are *delivered*; the window still holds its region.
    pub fn arrivals(&self, lane: LaneNumber) -> u32 {
        self.state().batches.post_all();
        self.state().poll(&self.world);
        let arrivals = self.state().engine.arrivals(lane);
        // A thread that tried to enter the engine meanwhile has left it to this one.
        self.state().progress_if_rung(&self.world);
        arrivals
    }

    /// Declares a sync of lane 0, which ends a superstep: it closes the round that is open when the
    /// sync is spawned or awaited.
    #[inline]
    pub fn sync(&self, mode: SyncMode) -> SyncBuilder<'_> {
        SyncBuilder::new(self, mode, LaneNumber::default())
    }

    /// As [`Context::sync`], of another lane.
    #[inline]
    pub fn sync_of(&self, lane: LaneNumber, mode: SyncMode) -> SyncBuilder<'_> {
        SyncBuilder::new(self, mode, lane)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context ({} of {})", self.rank, self.ranks())
    }
}

/// Drops the future of an operation, whose task holds its guard.
fn detach<G: Source>(operation: crate::operation::Operation<G>) {
    drop(operation);
}

/// A remote region that a task keeps.
struct Remote<T> {
    slot: MemorySlot<T>,
    rank: Rank,
    index: u64,
}

impl<T> Remote<T> {
    fn new(region: &RemoteRegion<'_, T>) -> Self {
        let slot: Arc<Slot> = Arc::clone(region.slot);
        Remote { slot: MemorySlot::new(slot), rank: region.rank, index: region.index }
    }

    fn region(&self) -> RemoteRegion<'_, T> {
        self.slot.at(self.rank, self.index as usize)
    }
}
