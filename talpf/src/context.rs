//! The context of a rank, through which its program communicates.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;
use talpf_runtime::{In, Region};

use crate::all_gather::Call;
use crate::bsp::Bsp;
use crate::double_buffered_channel::{DoubleBufferedChannel, Link};
use crate::error::Error;
use crate::iteration::{Iteration, RoundsOfStep};
use crate::lane::Lane;
use crate::lane_address::LaneAddress;
use crate::notification::{Notifications, SpawnedPut};
use crate::numbers::{LaneNumber, Rank};
use crate::sender::Sender;
use crate::slot::{MemorySlot, Registrable, RemoteRegion, Use};
use crate::sync::{SyncBuilder, SyncMode};
use crate::window::TicketCounts;
use crate::world::World;

/// The context of one rank, through which its program registers memory and communicates. Clones
/// are handles of the same rank.
///
/// A context dereferences to [`Lane`] 0, whose rounds are supersteps: puts, gets, atomics and syncs
/// are methods of the lane.
pub struct Context {
    world: Arc<World>,
    lane: Lane,
    /// Made when they are first used.
    notifications: Arc<OnceLock<Notifications>>,
}

impl Context {
    pub(crate) fn new(world: &Arc<World>, rank: Rank) -> Self {
        let number = LaneNumber::default();
        let at = LaneAddress { receiver: Arc::clone(world.rank(rank)), number };
        let lane = Lane::new(at, Arc::default());
        Context { world: Arc::clone(world), lane, notifications: Arc::default() }
    }

    pub(crate) fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Returns the address of lane 0.
    pub(crate) fn at(&self) -> &LaneAddress {
        &self.lane.at
    }

    pub(crate) fn sender(&self) -> &Arc<Sender> {
        self.lane.at.sender()
    }

    /// Returns the number of this rank.
    pub fn rank(&self) -> Rank {
        self.lane.at.rank()
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.world().size()
    }

    /// Returns the rank with a number.
    ///
    /// **Errors**: no such rank.
    pub fn peer(&self, number: u32) -> Result<Rank, Error> {
        let (rank, ranks) = (Rank(number), self.size());
        if number < ranks { Ok(rank) } else { Err(Error::NoSuchRank { rank, ranks }) }
    }

    /// Registers an array that peers reach inside windows.
    ///
    /// Collective: every rank calls it, in the same order among its collective calls. The arrays of
    /// the ranks have elements of one type, and may have different sizes.
    ///
    /// **Completion**: all ranks have registered their arrays.
    /// **Errors**: at a rank that cannot register, the cause: no room
    /// ([`Context::resize_memory_register`]), or an array that is too large for the device; at all
    /// other ranks [`Error::CallFailed`], which names that rank. Elements of different sizes.
    /// Another collective call at another rank. After any of these nothing is registered at any
    /// rank, and the program may go on. A rank that has failed ends the run.
    /// **Cost**: an exchange between all ranks.
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
        self.register_if(Ok(()), array, usage, call).await
    }

    /// As `register`, for an array that was checked. If it was refused here the call fails at every
    /// rank.
    pub(crate) async fn register_if<A: Registrable>(
        &self,
        checked: Result<(), Error>,
        array: &A,
        usage: Use,
        call: Call,
    ) -> Result<MemorySlot<A::Element>, Error> {
        let sender = self.sender();
        let prepare = |()| sender.slots.prepare_global(&sender.own.endpoint.domain, array, usage);
        let prepared = checked.and_then(prepare);
        let own = prepared.map(|slot| (slot.descriptor(), slot));
        let (slot, gathered) = self.world().all_gather(self.rank(), call, own).await?;
        Ok(MemorySlot::new(slot.publish(&gathered)?))
    }

    /// Registers an array for this rank's own operations only, as the source of puts and the
    /// destination of gets. Not collective.
    ///
    /// **Errors**: no room ([`Context::resize_memory_register`]); an array that is too large for
    /// the device.
    /// **Cost**: saves the registration of each operation on the array, which one of more than 256
    /// bytes otherwise needs.
    /// **Source**: thesis, chapter 2.3.3.
    pub fn register_local<A: Registrable>(
        &self,
        array: &A,
    ) -> Result<MemorySlot<A::Element>, Error> {
        let sender = self.sender();
        Ok(MemorySlot::new(sender.slots.add_local(&sender.own.endpoint.domain, array)?))
    }

    /// Takes a slot out of the register of this rank, which then has room for another one. Not
    /// collective: peers must not use the slot any more, and an operation that does may fail.
    ///
    /// **Completion**: returns at once. The array is kept until the last handle of the slot is
    /// dropped.
    /// **Errors**: a slot that was deregistered before, or is of another run.
    pub fn deregister<T>(&self, slot: MemorySlot<T>) -> Result<(), Error> {
        self.sender().slots.remove(&slot.slot)
    }

    /// Makes a [`DoubleBufferedChannel`] of `links`, which keeps `lane` for the rest of the run.
    /// Collective: every rank calls it, those without links too. The n-th link of one rank to
    /// another matches the n-th link of that one back. The buffers are of arrays registered with
    /// [`Context::register_global`], and no two of them overlap.
    ///
    /// **Completion**: all ranks have made theirs, and each has the buffers of its first round as
    /// `inout`. **Errors**: links that do not match, which name the rank and both values; a lane
    /// that was used before, or is of another rank; buffers that overlap or are not registered; a
    /// rank that failed. Each of them fails the run.
    pub async fn double_buffered_channel<T: bytemuck::Pod + Send + Sync>(
        &self,
        lane: Lane,
        links: &[Link<'_, T>],
    ) -> Result<DoubleBufferedChannel<T>, Error> {
        let made = DoubleBufferedChannel::new(self, lane, links).await;
        if let Err(error) = &made {
            self.sender().fail(error);
        }
        made
    }

    /// Sets how many slots this rank may have. The default is 64.
    ///
    /// **Errors**: fewer than are in use.
    /// **Source**: thesis, chapter 2.3.3.
    pub fn resize_memory_register(&self, slots: usize) -> Result<(), Error> {
        self.sender().slots.set_limit(slots)
    }

    /// Sets how many operations this rank may issue in one round of one lane. The default is
    /// 1,048,576.
    ///
    /// **Errors**: zero, or more than 2^31.
    /// **Source**: thesis, chapter 2.3.2.
    pub fn resize_message_queue(&self, operations: usize) -> Result<(), Error> {
        self.sender().open_rounds.set_limit(operations)
    }

    /// Returns how many tickets this rank has given to ranks of other processes so far.
    ///
    /// A long put between processes asks for its window and waits for the answer. A window that opens with elements to
    /// which a rank has put before gives it a ticket, by which the next such put lands without a question. A ticket that is not
    /// used costs two messages, and delays the end of its round until the source gives it back, which that does
    /// when it makes progress. In runs that [check for conflicts](crate::Config::check_conflicts) there are none.
    pub fn ticket_counts(&self) -> TicketCounts {
        self.sender().own.windows.ticket_counts()
    }

    /// Takes lane `number`, which has one owner at a rank: until the returned [`Lane`] is dropped,
    /// no other call gets it. Lane 0 is that of the context, of which every call returns a handle.
    ///
    /// Not collective, but ranks that communicate on a lane all take it.
    ///
    /// **Errors**: a lane that has an owner, that an iteration uses, or that was given to a
    /// [`DoubleBufferedChannel`].
    pub fn lane(&self, number: u8) -> Result<Lane, Error> {
        if number == 0 {
            return Ok(self.lane.handle());
        }
        let at = LaneAddress { number: LaneNumber(number), ..self.lane.at.clone() };
        let order = self.sender().open_rounds.take(at.number)?;
        Ok(Lane::new(at, order))
    }

    /// Declares the sync that ends the open superstep: [`Lane::sync`] of lane 0.
    #[inline]
    pub fn sync<'r>(&self, mode: SyncMode) -> SyncBuilder<'_, 'r> {
        self.lane.sync(mode)
    }

    /// Ends the recording of the communication of this rank, for what follows the program, such as the
    /// gathering of results. All ranks call it, after a sync that no operation of theirs needs, and before a
    /// collective call that is no sync, such as [`register_global`](Context::register_global): otherwise
    /// messages have one half in the trace.
    pub fn stop_trace(&self) {
        self.sender().tracer.stop();
    }

    /// Returns the handle by which this rank notifies others, and waits for their notifications,
    /// outside rounds.
    pub fn notifications(&self) -> &Notifications {
        self.notifications.get_or_init(|| Notifications::new(&self.lane.at.receiver))
    }

    /// Sets how many notification ids this rank has. The default is 65,536.
    ///
    /// **Errors**: fewer than have been used.
    /// **Cost**: some 128 bytes for each id up to the largest one that is used.
    pub fn resize_notifications(&self, ids: u32) -> Result<(), Error> {
        self.sender().own.notifications.set_ids(ids)
    }

    /// Spawns a task that writes the elements of `from` to `to`, and then notifies the rank of `to`
    /// of `id`, with a value: [`Notifications::put`].
    ///
    /// **Completion**: returns at once. The task has `from` as input until it may be reused
    /// (*local*); when the notification is received the data is *delivered*.
    /// **Ordering**: as [`Notifications::put`]. **Errors**: those of a spawn; those of
    /// [`Notifications::put`] fail the run, and so does a task before this one that fails.
    /// **Source**: `gaspi_write_notify` of GASPI, `tagaspi_write_notify` of TAGASPI.
    pub fn put_notify<T, D>(
        &self,
        from: &Region<'_, T, D>,
        to: RemoteRegion<'_, T>,
        id: u32,
        value: u32,
    ) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + 'static,
    {
        let put = SpawnedPut::new(self.notifications(), &to, (id, value));
        let task = self.group().task("put_notify").communicates().inline().input(from);
        Ok(task.spawn(move |from: In<T, D>| put.issue(from))?)
    }

    /// Spawns a task that writes the elements of `from` to each of `to`, and then notifies the rank of
    /// each of `id`, with a value: [`Notifications::multicast`].
    ///
    /// **Completion**: returns at once. The task has `from` as input until all puts have used it
    /// (*local*).
    /// **Ordering**, **Errors**: as [`Context::put_notify`], for each of the puts.
    pub fn multicast_notify<'r, T, D>(
        &self,
        from: &Region<'_, T, D>,
        to: impl IntoIterator<Item = RemoteRegion<'r, T>>,
        id: u32,
        value: u32,
    ) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + Sync + 'static,
    {
        let put = |to| SpawnedPut::new(self.notifications(), &to, (id, value));
        let puts: Vec<_> = to.into_iter().map(put).collect();
        let task = self.group().task("multicast").communicates().inline().input(from);
        Ok(task.spawn(move |from: In<T, D>| {
            let from = Arc::new(from);
            puts.into_iter().for_each(|put| put.issue(Arc::clone(&from)));
        })?)
    }

    /// Begins supersteps in which puts and gets are only queued, and whose syncs open every slot.
    pub fn bsp<'r>(&self) -> Bsp<'r> {
        Bsp::new(self.lane.handle())
    }

    /// Runs the tasks, operations and syncs that `declare` declares in every step from 0 to
    /// `steps`, as if they were spawned anew each time: [`Group::iterate`] with operations.
    ///
    /// **Completion**, **Cost**: as [`Group::iterate`].
    /// **Ordering**: as [`Group::iterate`]. The operations of a step may be issued once the sync of
    /// their lane in the step before has closed its round.
    /// **Errors**: those of `declare`; an operation that no sync of its lane follows in the step.
    /// Until its last sync has run, which a wait for the group says, the iteration owns its lanes:
    /// other operations and syncs on them are refused. A task that fails stops the steps and fails
    /// the run.
    ///
    /// [`OneSided`](crate::OneSided) has an example.
    ///
    /// [`Group::iterate`]: talpf_runtime::Group::iterate
    pub fn iterate<'r, E: From<Error>>(
        &'r self,
        steps: usize,
        declare: impl FnOnce(&Iteration<'_, 'r>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut declare = Some(declare);
        self.iterate_unrolled(steps, 1, |iteration, _| match declare.take() {
            Some(declare) => declare(iteration),
            None => Ok(()),
        })
    }

    /// As [`Context::iterate`], for graphs in which the steps alternate:
    /// [`Group::iterate_unrolled`] with operations.
    ///
    /// **Errors**: as [`Context::iterate`]; an `unroll` of 0.
    ///
    /// [`Group::iterate_unrolled`]: talpf_runtime::Group::iterate_unrolled
    pub fn iterate_unrolled<'r, E: From<Error>>(
        &'r self,
        steps: usize,
        unroll: usize,
        mut declare: impl FnMut(&Iteration<'_, 'r>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let (lane, order) = (&self.lane.at, self.lane.order()?);
        let mut lent = Vec::new();
        let iterated = self.group().iterate_unrolled(steps, unroll, |tasks, step| {
            if step == 0 {
                // The rounds of the steps that do not run would never end.
                let lane = lane.clone();
                tasks.on_failure(move |failure| lane.sender().fail_soon(Error::Runtime(failure)));
            }
            let rounds = RoundsOfStep::new((steps - step).div_ceil(unroll) as u64);
            let declared = declare(&Iteration::new(tasks, lane, order, &rounds), step);
            let checked = declared.and_then(|()| Ok(rounds.check()?));
            lent.extend(rounds.lent());
            checked.map_err(Declared)
        });
        iterated.map_err(|Declared(error)| {
            // Nothing of the iteration runs.
            for (lane, rounds) in lent {
                self.sender().open_rounds.take_back(lane, rounds);
            }
            error
        })
    }
}

/// An error of a declaration.
struct Declared<E>(E);

impl<E: From<Error>> From<talpf_runtime::Error> for Declared<E> {
    fn from(error: talpf_runtime::Error) -> Self {
        Declared(E::from(Error::Runtime(error)))
    }
}

impl Deref for Context {
    type Target = Lane;

    /// Returns lane 0.
    fn deref(&self) -> &Lane {
        &self.lane
    }
}

impl Clone for Context {
    fn clone(&self) -> Self {
        let (world, notifications) = (Arc::clone(&self.world), Arc::clone(&self.notifications));
        Context { world, lane: self.lane.handle(), notifications }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context ({} of {})", self.rank(), self.size())
    }
}
