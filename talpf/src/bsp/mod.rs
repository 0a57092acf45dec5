//! Plain BSP: supersteps in which operations are only queued, and whose end opens every slot.
//!
//! Short puts between ranks that share memory go in batches (`superstep_exchange.rs`): a superstep that has nothing
//! else takes one phase of a barrier. Few bytes are read and written at once if no task uses them at that moment, else
//! by tasks. All other operations take two rounds of lane 0, which all ranks make if one of them needs them: in the
//! first one every slot is exposed to gets, in the second one every slot is a window for puts. So gets read what was
//! there before any put. One task holds the array of a slot during both rounds (`sync/successive.rs`), and those that
//! write batches come after it. What a put reads is copied before, and what a get reads is copied to its place after:
//! no operation holds a region while a window waits for it, and ranks may put whole arrays in a circle.
//!
//! The rounds exchange counts and have no barrier. A rank that ends the first round knows that all ranks are in
//! the superstep, and none of them is in the next one before all have ended the first round of this one. Puts are
//! issued once the first round has ended here: then the slots of most ranks are open, and short puts go out
//! together; the others are parked.

mod get;
mod long_put;
mod outgoing;
mod queued;
mod short_puts;

use std::any::TypeId;
use std::future::poll_fn;
use std::mem::take;
use std::task::{Context, Poll, Waker};

use bytemuck::Pod;
use talpf_runtime::{In, Region, service};

use self::get::Get;
use self::long_put::LongPut;
use self::outgoing::{Outgoing, Writes, write_batches};
use self::queued::Queued;
use self::short_puts::{Puts, ShortPut, ShortPuts};
use crate::endpoint::INLINE_BYTES;
use crate::error::Error;
use crate::lane::Lane;
use crate::slot::{KeptRemote, RemoteRegion, Use};
use crate::superstep_exchange::{PutBatches, SuperstepExchange};
use crate::sync::{SyncMode, spawn_successive};

/// The mode of the rounds: no rank ends one before all have begun it, and windows order the
/// operations of the next.
const COUNTED: SyncMode = SyncMode { barrier: false, ..SyncMode::DEFAULT };

/// Most bytes that are read or written without a task.
const AT_ONCE: usize = 1024;

/// Largest number of entries of the queue that a short put may join.
const LAST: usize = 4;

/// Operations that need rounds.
type Queue<'r> = Vec<Box<dyn Queued + 'r>>;

/// Supersteps of the context of a rank, as in LPF: [`put`](Bsp::put) and [`get`](Bsp::get) queue, and
/// [`sync`](Bsp::sync) carries out. Made by
/// [`Context::bsp`](crate::Context::bsp). Arrays live for `'r`.
///
/// Operations of the context itself belong to the rounds of lane 0 that a superstep takes.
///
/// ```
/// use talpf::{Config, Error, exec};
/// use talpf_runtime::Array;
///
/// // Every rank passes its array on to the next one, and keeps what its own was.
/// let ends = exec(Config { ranks: 3, ..Config::default() }, async |ctx| {
///     let numbers = Array::new(ctx.group(), vec![ctx.rank().0; 1000], 1000)?;
///     let before = Array::new(ctx.group(), vec![0; 1000], 1000)?;
///     let slot = ctx.register_global(&numbers).await?;
///     let mut bsp = ctx.bsp();
///     bsp.put(&numbers.all(), slot.at((ctx.rank().0 + 1) % ctx.size(), 0))?;
///     bsp.get(slot.at(ctx.rank(), 0), &before.all())?;
///     bsp.sync().await?;
///     let read = ctx.group().task("read").input(&numbers.all()).input(&before.all());
///     Ok::<_, Error>(read.run(|numbers, before| (numbers[999], before[0]))?.await?)
/// })?;
/// assert_eq!(ends, [(2, 0), (0, 1), (1, 2)]);
/// # Ok::<(), Error>(())
/// ```
#[must_use = "operations are carried out by a sync"]
pub struct Bsp<'r> {
    lane: Lane,
    short_puts: Vec<Box<dyn Puts<'r> + 'r>>,
    long_puts: Queue<'r>,
    gets: Queue<'r>,
    /// Number of queued operations.
    count: usize,
    /// Most bytes of a short put.
    longest: usize,
}

impl<'r> Bsp<'r> {
    pub(crate) fn new(lane: Lane) -> Self {
        let longest = INLINE_BYTES.min(lane.at.sender().own.endpoint.max_transfer);
        let (long_puts, gets) = (Vec::new(), Vec::new());
        Bsp { lane, short_puts: Vec::new(), long_puts, gets, count: 0, longest }
    }

    /// Queues a put of `from` to a region of a slot of
    /// [`register_global`](crate::Context::register_global).
    ///
    /// **Completion**: the next sync, which reads `from`.
    /// **Errors**: a full queue, which has room for as many operations as
    /// [`Context::resize_message_queue`](crate::Context::resize_message_queue) says; then nothing
    /// has changed, and the program may resize it.
    #[inline]
    pub fn put<T, D>(
        &mut self,
        from: &Region<'r, T, D>,
        to: RemoteRegion<'_, T>,
    ) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + Sync + 'static,
    {
        self.count_one()?;
        let longest = self.longest;
        let is_long = from.len().saturating_mul(size_of::<T>()) > longest;
        if is_long || to.slot.usage == Use::Raw {
            self.push_long(from, &to);
            return Ok(());
        }
        let RemoteRegion { slot, rank, part, .. } = to;
        let (guard, region) = (TypeId::of::<In<T, D>>(), from.without_data());
        let put = ShortPut { guard, from: &region, slot, rank, part, longest };
        let mut last = self.short_puts.iter_mut().rev().take(LAST);
        if !last.any(|queued| queued.add(&put)) {
            self.push_short(from, &to);
        }
        Ok(())
    }

    #[inline(never)]
    fn push_short<T, D>(&mut self, from: &Region<'r, T, D>, to: &RemoteRegion<'_, T>)
    where
        T: Pod + Send + Sync,
        D: Send + Sync + 'static,
    {
        self.short_puts.push(Box::new(ShortPuts::new(from, to)));
    }

    #[inline(never)]
    fn push_long<T, D>(&mut self, from: &Region<'r, T, D>, to: &RemoteRegion<'_, T>)
    where
        T: Pod + Send + Sync,
        D: Send + Sync + 'static,
    {
        self.long_puts.push(Box::new(LongPut::new(*from, KeptRemote::new(to))));
    }

    /// Queues a get of a region of a slot of [`register_global`](crate::Context::register_global) into `to`.
    ///
    /// **Completion**, **Errors**: as [`Bsp::put`].
    pub fn get<T, D>(
        &mut self,
        from: RemoteRegion<'_, T>,
        to: &Region<'r, T, D>,
    ) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + Sync + 'static,
    {
        self.count_one()?;
        self.gets.push(Box::new(Get::new(KeptRemote::new(&from), *to)));
        Ok(())
    }

    /// Counts an operation that is about to be queued.
    #[inline]
    fn count_one(&mut self) -> Result<(), Error> {
        let limit = self.lane.at.sender().open_rounds.limit();
        if self.count >= limit as usize {
            return Err(self.full(limit));
        }
        self.count += 1;
        Ok(())
    }

    #[cold]
    fn full(&self, limit: u32) -> Error {
        let (value, limit) = (self.count as u64 + 1, u64::from(limit));
        Error::Limit { what: "number of queued operations", value, limit }
    }

    /// Returns the number of queued operations.
    pub fn queued(&self) -> usize {
        self.count
    }

    /// Ends the superstep: carries out what all ranks have queued. All ranks call it.
    ///
    /// **Ordering**: gets read what was there before the puts; puts that overlap leave what some order of them
    /// leaves.
    /// **Completion**: all operations of this rank, and all that reach its slots; the queue is empty.
    /// **Errors**: an operation on elements that do not exist, a rank that failed. Each of them fails the run.
    /// **Cost**: with short puts only, between ranks of one process, a barrier, and a task for each slot to which more
    /// than 1 KiB is put or which tasks use; with other operations two exchanges of counts, a task for each slot, and a
    /// copy of each operation. Short puts to one slot, out of elements side by side in one array, are read together.
    pub async fn sync(&mut self) -> Result<(), Error> {
        self.count = 0;
        let mut short_puts = take(&mut self.short_puts);
        let (mut others, gets) = (take(&mut self.long_puts), take(&mut self.gets));
        others.extend(gets);
        let ended = end_superstep(&self.lane, &mut short_puts, others).await;
        ended.inspect_err(|error| self.lane.at.sender().fail(error))?;
        // The next superstep may have puts that are like those of this one.
        short_puts.retain_mut(|puts| puts.clear());
        self.short_puts = short_puts;
        Ok(())
    }
}

async fn end_superstep<'r>(
    lane: &Lane,
    short_puts: &mut [Box<dyn Puts<'r> + 'r>],
    others: Queue<'r>,
) -> Result<(), Error> {
    short_puts.iter_mut().try_for_each(|puts| puts.begin(lane))?;
    match &lane.at.sender().supersteps {
        Some(exchange) => share(lane, exchange, short_puts, others).await,
        None => make_rounds(lane, others, short_puts, PutBatches::new()).await,
    }
}

/// Ends a superstep of ranks that share memory.
async fn share<'r>(
    lane: &Lane,
    exchange: &SuperstepExchange,
    short_puts: &mut [Box<dyn Puts<'r> + 'r>],
    others: Queue<'r>,
) -> Result<(), Error> {
    let (sender, rank) = (lane.at.sender(), lane.at.rank());
    let _one = exchange.begin_sync(rank).await;
    let mut outgoing = Outgoing::default();
    for puts in short_puts {
        poll_fn(|cx| puts.poll_read(cx)).await?;
        puts.gather(sender.run, &mut outgoing)?;
    }
    let phase = loop {
        match exchange.open_phase(rank) {
            Ok(phase) => break phase,
            // A sync that was dropped has come to it.
            Err(before) => drop(end_of_phase(lane, exchange, before).await?),
        }
    };
    let needs_rounds = !others.is_empty() || sender.open_rounds.is_in_use(lane.at.number);
    exchange.arrive(rank, phase, outgoing.batches.into_iter(), needs_rounds);
    let makes_rounds = end_of_phase(lane, exchange, phase).await?;
    let batches = exchange.take(rank, phase);
    match makes_rounds {
        true => make_rounds(lane, others, &mut [], batches).await,
        false => end_writes(write_batches(lane, batches)?).await,
    }
}

/// Waits for tasks that write.
async fn end_writes(writes: Writes) -> Result<(), Error> {
    for write in writes {
        write.await??;
    }
    Ok(())
}

/// Waits for the end of a phase. Returns `true` if all ranks make rounds then.
async fn end_of_phase(
    lane: &Lane,
    exchange: &SuperstepExchange,
    phase: u64,
) -> Result<bool, Error> {
    let mut known = None;
    poll_fn(|cx| poll_end(lane, exchange, (phase, &mut known), cx)).await
}

fn poll_end(
    lane: &Lane,
    exchange: &SuperstepExchange,
    (phase, known): (u64, &mut Option<Waker>),
    cx: &Context<'_>,
) -> Poll<Result<bool, Error>> {
    let (sender, receiver) = (lane.at.sender(), &lane.at.receiver);
    let ended = || exchange.makes_rounds(phase);
    let spare_polls = sender.own.spare_polls();
    if let Some(makes_rounds) = ended() {
        return Poll::Ready(Ok(makes_rounds));
    }
    sender.batches.post_all();
    let poll = || {
        receiver.poll();
    };
    if let Some(makes_rounds) = service::poll_while_spare(spare_polls, poll, ended) {
        return Poll::Ready(Ok(makes_rounds));
    }
    if !known.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
        *known = Some(cx.waker().clone());
        exchange.wake_at_end(phase, cx.waker().clone());
    }
    // After the announcement: a failure wakes those that it finds.
    match (ended(), sender.error()) {
        (Some(makes_rounds), _) => Poll::Ready(Ok(makes_rounds)),
        (None, Some(error)) => Poll::Ready(Err(error)),
        (None, None) => {
            talpf_runtime::note_wait("the end of a superstep");
            Poll::Pending
        }
    }
}

/// Ends a superstep by two rounds, and then writes batches.
async fn make_rounds<'r>(
    lane: &Lane,
    mut others: Queue<'r>,
    short_puts: &mut [Box<dyn Puts<'r> + 'r>],
    batches: PutBatches,
) -> Result<(), Error> {
    others.iter_mut().try_for_each(|operation| operation.begin(lane))?;
    let (first, round) = (lane.at.close(), lane.round());
    let slots = lane.at.sender().slots.windows();
    let rounds = (&first, &lane.at.close());
    let (read, written) = spawn_successive(&lane.at.receiver, COUNTED, rounds, &slots)?;
    let writes = write_batches(lane, batches)?;
    read.await?;
    for puts in short_puts {
        poll_fn(|cx| puts.poll_read(cx)).await?;
        puts.issue(&round);
    }
    others.into_iter().try_for_each(|operation| operation.end(lane, &round))?;
    drop(round);
    written.await?;
    end_writes(writes).await
}
