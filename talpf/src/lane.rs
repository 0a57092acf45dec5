//! Lanes: where a rank issues operations and ends rounds.

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use talpf_runtime::{Group, In, Out, Region, Token};

use crate::error::Error;
use crate::iteration::Iteration;
use crate::lane_address::LaneAddress;
use crate::numbers::LaneNumber;
use crate::open_rounds::LaneOrder;
use crate::operation::{OpenRound, Spawned};
use crate::slot::{KeptRemote, RemoteRegion};
use crate::sync::{SyncBuilder, SyncMode};

/// A lane of a rank: an independent sequence of rounds, in which operations are issued and which
/// syncs end. The rounds of a lane are counted alike on all ranks.
///
/// A [`Context`](crate::Context) is lane 0, whose rounds are supersteps, and hands out each other
/// lane ([`Context::lane`](crate::Context::lane)) to one owner at a time. Operations are tasks of
/// the rank's group.
pub struct Lane {
    pub(crate) at: LaneAddress,
    /// Token that orders the rounds of iterations, made when the first of them is declared. Shared
    /// by the handles of lane 0. As long as there is one, the lane has an owner.
    order: Arc<LaneOrder>,
}

impl Lane {
    pub(crate) fn new(at: LaneAddress, order: Arc<LaneOrder>) -> Self {
        Lane { at, order }
    }

    /// Returns a second handle of the lane.
    pub(crate) fn handle(&self) -> Lane {
        Lane::new(self.at.clone(), Arc::clone(&self.order))
    }

    /// Returns the token that orders the rounds of iterations.
    pub(crate) fn order(&self) -> Result<&Token, Error> {
        if let Some(order) = self.order.get() {
            return Ok(order);
        }
        let order = Token::new(self.group())?;
        // Of two tokens made at the same time one stays.
        Ok(self.order.get_or_init(|| order))
    }

    /// Returns the group of the rank, which arrays are made in and tasks are spawned into.
    pub fn group(&self) -> &Group {
        &self.at.sender().group
    }

    /// Returns the number of the lane.
    pub fn lane_number(&self) -> LaneNumber {
        self.at.number
    }

    /// Returns a handle of the open round, by which tasks issue operations of that round in their
    /// bodies.
    ///
    /// **Completion**: the sync that ends the round waits until the handle and its clones are
    /// dropped.
    /// **Errors**: none here; while an iteration uses the lane, operations of the handle are refused.
    #[inline]
    pub fn round(&self) -> OpenRound {
        self.at.round()
    }

    /// Spawns a task that writes the elements of `from` to `to`, in the round that is open now.
    ///
    /// **Completion**: returns at once. The task has `from` as input until it may be reused
    /// (*local*); the data is *delivered* when the target's sync of the round has ended.
    /// **Ordering**: as [`OpenRound::put`].
    /// **Errors**: those of a spawn; those of [`OpenRound::put`], at the sync of the round.
    /// **Cost**: of an inline task and of [`OpenRound::put`].
    /// **Source**: thesis, chapters 5.1.1 and 6.1.
    pub fn put<T, D>(&self, from: &Region<'_, T, D>, to: RemoteRegion<'_, T>) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + 'static,
    {
        let (spawned, to) = (Spawned::new(self.round()), KeptRemote::new(&to));
        let task = self.group().task("put").communicates().inline().input(from);
        Ok(task.spawn(move |from: In<T, D>| {
            drop(spawned.issue(|round| round.put(from, to.region())))
        })?)
    }

    /// Spawns a task that reads the elements of `from` into `to`, in the round that is open now.
    ///
    /// **Completion**: returns at once. The task has `to` as output until it holds the data, so
    /// tasks that read `to` wait for it.
    /// **Ordering**: as [`OpenRound::get`].
    /// **Errors**: those of a spawn; those of [`OpenRound::get`], at the sync of the round.
    /// **Source**: thesis, chapters 5.1.1 and 6.1.
    pub fn get<T, D>(&self, from: RemoteRegion<'_, T>, to: &Region<'_, T, D>) -> Result<(), Error>
    where
        T: Pod + Send + Sync,
        D: Send + 'static,
    {
        let (spawned, from) = (Spawned::new(self.round()), KeptRemote::new(&from));
        let task = self.group().task("get").communicates().inline().output(to);
        Ok(task.spawn(move |to: Out<T, D>| {
            drop(spawned.issue(|round| round.get(from.region(), to)))
        })?)
    }

    /// Spawns a task that adds `add` to the number at `target`, and writes the number that was
    /// there before to `result`.
    ///
    /// **Completion**: returns at once, and no task is suspended: the body issues the operation and
    /// ends, and the task has `result` as output until it holds the value.
    /// **Ordering**: as [`OpenRound::fetch_and_add`].
    /// **Errors**: those of a spawn; those of [`OpenRound::fetch_and_add`], at the sync of the
    /// round.
    /// **Source**: thesis, chapter 5.2.
    pub fn fetch_and_add(
        &self,
        target: RemoteRegion<'_, u64>,
        add: u64,
        result: &Region<'_, u64>,
    ) -> Result<(), Error> {
        let (spawned, target) = (Spawned::new(self.round()), KeptRemote::new(&target));
        let task = self.group().task("fetch_and_add").communicates().inline().output(result);
        Ok(task.spawn(move |result: Out<u64>| {
            drop(spawned.issue(|round| round.fetch_and_add(target.region(), add, result)));
        })?)
    }

    /// Spawns a task that replaces the number at `target` by `swap` if it is `compare`, and writes
    /// the number that was there before to `result`.
    ///
    /// **Completion**, **Ordering**, **Errors**, **Source**: as [`Lane::fetch_and_add`].
    pub fn compare_and_swap(
        &self,
        target: RemoteRegion<'_, u64>,
        compare: u64,
        swap: u64,
        result: &Region<'_, u64>,
    ) -> Result<(), Error> {
        let (spawned, target) = (Spawned::new(self.round()), KeptRemote::new(&target));
        let task = self.group().task("compare_and_swap").communicates().inline().output(result);
        Ok(task.spawn(move |result: Out<u64>| {
            let target = target.region();
            drop(spawned.issue(|round| round.compare_and_swap(target, compare, swap, result)));
        })?)
    }

    /// Polls for arrivals instead of waiting for the polling task, and returns the number of
    /// operations that have arrived for the oldest round that has not ended.
    ///
    /// For programs that have a worker to spare and need the lowest latency of a notification.
    ///
    /// **Completion**: the operations counted are *delivered*. The round has not ended: its windows
    /// still hold their regions.
    /// **Cost**: some loads if nothing has arrived; otherwise a pass of the rank's engine, unless
    /// another thread makes one.
    pub fn arrivals(&self) -> u32 {
        let receiver = &self.at.receiver;
        receiver.sender.batches.post_all();
        receiver.poll();
        receiver.arrivals(self.at.number)
    }

    /// Declares a sync of this lane. It closes the round that is open when the sync is spawned or
    /// awaited; the round ends at this rank as `mode` says.
    ///
    /// **Completion**, **Errors**: of a declaration none; see [`SyncBuilder::spawn`] and
    /// [`SyncHandle`](crate::SyncHandle).
    /// **Cost**: the table in [`SyncMode`].
    /// **Source**: thesis, chapters 5.1.2 and 5.3.
    #[inline]
    pub fn sync<'r>(&self, mode: SyncMode) -> SyncBuilder<'_, 'r> {
        SyncBuilder::new(&self.at, mode)
    }
}

impl<'i, 'r> Iteration<'i, 'r> {
    /// Returns the same step, with operations on `lane`.
    ///
    /// **Errors**: a lane of another rank or run; as [`Token::new`].
    pub fn on(&self, lane: &'r Lane) -> Result<Iteration<'i, 'r>, Error> {
        self.lane.check_same_rank(&lane.at)?;
        Ok(self.on_lane(&lane.at, lane.order()?))
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lane {} of {}", self.at.number.0, self.at.rank())
    }
}
