//! Plain BSP: supersteps in which operations are only queued, and whose end opens every slot.
//!
//! A superstep takes two rounds of lane 0: in the first one every slot is exposed to gets, in the second one every
//! slot is a window for puts. So gets read what was there before any put. One task holds the array of a slot
//! during both rounds (`sync/successive.rs`). What a put reads is copied before, and what a get reads is copied to
//! its place after: no operation holds a region while a window waits for it, and ranks may put whole arrays in a
//! circle.
//!
//! The rounds exchange counts and have no barrier. A rank that ends the first round knows that all ranks are in
//! the superstep, and none of them is in the next one before all have ended the first round of this one. Puts are
//! issued once the first round has ended here: then the slots of most ranks are open, and short puts go out
//! together; the others are parked.

mod get;
mod long_put;
mod queued;
mod short_puts;

use std::any::TypeId;
use std::future::poll_fn;
use std::mem::take;

use bytemuck::Pod;
use talpf_runtime::{In, Region};

use self::get::Get;
use self::long_put::LongPut;
use self::queued::{Queued, ShortPut};
use self::short_puts::ShortPuts;
use crate::endpoint::INLINE_BYTES;
use crate::error::Error;
use crate::lane::Lane;
use crate::slot::{KeptRemote, RemoteRegion};
use crate::sync::{SyncMode, spawn_successive};

/// The mode of the rounds: no rank ends one before all have begun it, and windows order the
/// operations of the next.
const COUNTED: SyncMode = SyncMode { barrier: false, ..SyncMode::DEFAULT };

/// Largest number of entries of the queue that a short put may join.
const LAST: usize = 4;

type Queue<'r> = Vec<Box<dyn Queued<'r> + 'r>>;

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
    puts: Queue<'r>,
    gets: Queue<'r>,
    /// Number of queued operations.
    count: usize,
}

impl<'r> Bsp<'r> {
    pub(crate) fn new(lane: Lane) -> Self {
        Bsp { lane, puts: Vec::new(), gets: Vec::new(), count: 0 }
    }

    /// Queues a put of `from` to a region of a slot of
    /// [`register_global`](crate::Context::register_global).
    ///
    /// **Completion**: the next sync, which reads `from`.
    /// **Errors**: a full queue, which has room for as many operations as
    /// [`Context::resize_message_queue`](crate::Context::resize_message_queue) says; then nothing
    /// has changed, and the program may resize it.
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
        let longest = INLINE_BYTES.min(self.lane.at.sender().own.endpoint.max_transfer);
        if from.len().saturating_mul(size_of::<T>()) > longest {
            self.puts.push(Box::new(LongPut::new(*from, KeptRemote::new(&to))));
            return Ok(());
        }
        let RemoteRegion { slot, rank, part, .. } = to;
        let (guard, region) = (TypeId::of::<In<T, D>>(), from.without_data());
        let put = ShortPut { guard, from: region, slot, rank, part };
        let mut last = self.puts.iter_mut().rev().take(LAST);
        if !last.any(|queued| queued.add(&put)) {
            self.puts.push(Box::new(ShortPuts::new(from, &to)));
        }
        Ok(())
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
    fn count_one(&mut self) -> Result<(), Error> {
        let limit = self.lane.at.sender().open_rounds.limit();
        if self.count >= limit as usize {
            let (value, limit) = (self.count as u64 + 1, u64::from(limit));
            return Err(Error::Limit { what: "number of queued operations", value, limit });
        }
        self.count += 1;
        Ok(())
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
    /// **Cost**: two exchanges of counts, a task for each slot, and a copy of each operation. Short puts to one
    /// slot, out of elements side by side in one array, share a task.
    pub async fn sync(&mut self) -> Result<(), Error> {
        let Bsp { lane, puts, gets, count } = self;
        let (mut puts, mut gets) = (take(puts), take(gets));
        *count = 0;
        puts.iter_mut().chain(&mut gets).try_for_each(|operation| operation.begin(lane))?;
        let (first, round) = (lane.at.close(), lane.round());
        let slots = lane.at.sender().slots.windows();
        let rounds = (&first, &lane.at.close());
        let (read, written) = spawn_successive(&lane.at.receiver, COUNTED, rounds, &slots)?;
        read.await?;
        for mut operation in puts.into_iter().chain(gets) {
            poll_fn(|cx| operation.poll_read(cx)).await?;
            operation.end(lane, &round)?;
        }
        drop(round);
        written.await
    }
}
