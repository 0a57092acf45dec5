//! Double-buffered channels: links on which neighbours put alternately into two buffers of each
//! other, without windows and without acknowledgements.
//!
//! A link joins two ranks. Each end has two buffers; round n puts into buffer n % 2 of the other
//! end, once. A put of round n
//!
//! 1. waits, as its task has it as `inout`, for the buffer of round n + 1 at its *own* end, and
//!    leaves the guard with [`BufferGuards`], which keeps it until the sync of round n + 1 has ended;
//! 2. is posted after that.
//!
//! Every rank holds the guards of round 0 before any rank has its channel.
//!
//! The race that this prevents: a put of round n + 1 that lands while the target's tasks use the
//! buffer. For ends A and B of a link, with `hold(A, n)` for A's guard of the buffer of round n:
//!
//! ```text
//! B posts n + 1 ◄── after ── hold(B, n + 2) ◄── after ── B lets go of hold(B, n), same buffer
//!               ◄── after ── B's sync of n has ended ◄── after ── A's put of n has arrived
//!               ◄── after ── A's put of n was posted ◄── after ── hold(A, n + 1)
//! hold(A, n + 1) lasts until A's sync of n + 1 has ended ◄── after ── B's put of n + 1 has landed
//! ```
//!
//! So a put lands while its target holds the guard of the buffer, and nobody has to check there.
//! This relies on a sync that ends only with the one put of every link: the lane is used by nothing
//! else, links are symmetric, every link has one put before the sync is spawned, and a put whose
//! task fails before that makes the sync fail.
//!
//! When the run fails, [`BufferGuards`] takes the memory from the device before it releases guards,
//! and no put is posted on the strength of a guard released in that way. A channel that is dropped
//! closes with a round of no puts and a barrier: its buffers are released once every rank is there.
#![allow(unsafe_code, reason = "puts without a check at the target")]

mod buffer_guards;
mod link_descriptor;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use ibverbs_sim::RemoteAddress;
use talpf_runtime::{In, InOut, Rect, Region};
use talpf_traces::counted;

use self::link_descriptor::LinkDescriptor;
use crate::all_gather::Call;
use crate::context::Context;
use crate::error::Error;
use crate::lane::Lane;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::operation::Spawned;
use crate::sync::{SyncBuilder, SyncHandle, SyncMode};

pub(crate) use self::buffer_guards::BufferGuards;

/// The end of a link at one rank.
#[derive(Debug)]
pub struct Link<'a, T> {
    /// The rank at the other end; this rank itself is fine.
    pub peer: Rank,
    /// The regions that the peer puts to, in even and in odd rounds. As long as its own buffers.
    pub buffers: [Region<'a, T>; 2],
}

/// Links on which this rank and its neighbours put in every round, each end with two buffers. Made
/// by [`Context::double_buffered_channel`](crate::Context::double_buffered_channel).
///
/// The cheapest way to exchange the same pieces repeatedly: a put is not checked at its
/// target, and rounds end with cached syncs, without other messages.
///
/// **Ordering**: tasks spawned between the sync of round n and the puts of round n + 1 see the data
/// of round n in buffers n % 2. Those buffers are in use, as `inout` of a task, from the put of
/// round n - 1 on its link, or the making of the channel, until round n has ended.
/// **Completion**: dropping the channel closes it: its buffers are free once all ranks have dropped
/// theirs. Until then the puts of the last round hold them, so a wait for the whole group does not
/// end. A channel that is dropped in the middle of a round, with puts spawned and no sync, keeps
/// its buffers, and the run fails when the main of this rank ends.
/// **Source**: the double buffers of the thesis, chapters 5.2 and 7.
///
/// ```
/// use talpf::{Config, Link, exec};
/// use talpf_runtime::Array;
///
/// // The larger number of every pair of neighbours, three times: all ranks have the largest.
/// let ends = exec(Config { ranks: 4, ..Config::default() }, async |ctx| {
///     let (rank, ranks) = (ctx.rank().0, ctx.size());
///     let mine = Array::new(ctx.group(), vec![rank; 1], 1)?;
///     let inbox = Array::new(ctx.group(), vec![0u32; 4], 1)?;
///     ctx.register_global(&inbox).await?;
///     let buffers = |n| [inbox.tile(2 * n), inbox.tile(2 * n + 1)];
///     let (below, above) = (ctx.peer((rank + ranks - 1) % ranks)?, ctx.peer((rank + 1) % ranks)?);
///     let links = [(below, 0), (above, 1)].map(|(peer, n)| Link { peer, buffers: buffers(n) });
///     let mut channel = ctx.double_buffered_channel(ctx.lane(1)?, &links).await?;
///     for round in 0..3 {
///         let next = (round + 1) % 2;
///         for link in 0..2 {
///             channel.put(link, &mine.all(), &buffers(link)[next])?;
///         }
///         channel.sync()?;
///         let received = [buffers(0)[round % 2], buffers(1)[round % 2]];
///         let task = ctx.group().task("larger").input(received).inout(&mine.all());
///         task.spawn(|received, mut mine| {
///             mine[0] = mine[0].max(received[0][0]).max(received[1][0]);
///         })?;
///     }
///     Ok::<_, talpf::Error>(ctx.group().task("read").input(&mine.all()).run(|mine| mine[0])?.await?)
/// })?;
/// assert_eq!(ends, [3; 4]);
/// # Ok::<(), talpf::Error>(())
/// ```
pub struct DoubleBufferedChannel<T> {
    lane: Lane,
    /// Number of the open round.
    round: Round,
    ends: Vec<End>,
    guards: Arc<BufferGuards>,
    marker: PhantomData<fn(T) -> T>,
}

/// The end of a link at this rank, once it is connected.
struct End {
    peer: Rank,
    elements: usize,
    own: [(u64, Rect); 2],
    remote: [RemoteAddress; 2],
    /// `true` once the link has its put of the open round.
    put: bool,
}

impl<T: Pod + Send + Sync> DoubleBufferedChannel<T> {
    pub(crate) async fn new(
        context: &Context,
        lane: Lane,
        links: &[Link<'_, T>],
    ) -> Result<Self, Error> {
        let (sender, rank) = (context.sender(), context.rank());
        context.at().check_same_rank(&lane.at)?;
        check_buffers(links)?;
        let (mut slots, mut descriptors) = (Vec::new(), Vec::new());
        for link in links {
            context.peer(link.peer.0)?;
            let [even, odd] = [&link.buffers[0], &link.buffers[1]].map(Region::array_id);
            let slot = |array| sender.slots.windowed(array, Arc::clone);
            let (even, odd) = (slot(even)?, slot(odd)?);
            descriptors.push(LinkDescriptor::new(rank, link, [&even, &odd])?);
            slots.extend([even, odd]);
        }
        let guards = BufferGuards::new(slots);
        let number = lane.lane_number();
        sender.open_rounds.give(number, &guards)?;
        // From here on the drop of the channel gives the buffers back.
        let (round, ends, marker) = (Round(0), Vec::new(), PhantomData);
        let mut made = DoubleBufferedChannel { lane, round, ends, guards, marker };

        let task = context.group().task("buffers").inout(links.iter().map(|l| l.buffers[0]));
        for guard in task.run(|guards| guards)?.await? {
            // Refused after a failure; then the all-gather below fails, too.
            made.guards.hold(round, guard.into());
        }
        let own = Ok((link_descriptor::to_bytes(number, &descriptors), ()));
        let call = Call::DoubleBufferedChannel;
        let ((), all) = context.world().all_gather(rank, call, own).await?;
        let remote = link_descriptor::connect(rank, number, &descriptors, &all)?;
        let ends = links.iter().zip(remote).map(|(link, remote)| End {
            peer: link.peer,
            elements: link.buffers[0].len(),
            own: link.buffers.map(|buffer| (buffer.array_id(), buffer.rect())),
            remote,
            put: false,
        });
        made.ends = ends.collect();
        Ok(made)
    }

    /// Spawns a task that puts `from` to the other end of a link. `next` is the buffer of this end
    /// for the round after this one: tasks that use its present contents come before the put.
    ///
    /// A put whose `from` lies in a buffer of this round waits for the end of the round, and so for
    /// itself: the hang watch reports it.
    ///
    /// **Completion**: returns at once. The task has `from` as input until it may be reused
    /// (*local*), and `next` as inout until the next round has ended.
    /// **Errors**: no such link; a second put of this round on it; `next` is not its buffer for the
    /// next round; `from` has not as many elements as the buffer; as a spawn. Later, those of
    /// [`OpenRound::put`](crate::OpenRound::put) at the sync.
    pub fn put<D: Send + 'static>(
        &mut self,
        link: usize,
        from: &Region<'_, T, D>,
        next: &Region<'_, T>,
    ) -> Result<(), Error> {
        let (round, lane, links) = (self.round, self.lane.lane_number(), self.ends.len());
        let after = Round(round.0 + 1);
        let end = self.ends.get_mut(link).ok_or(Error::NoSuchLink { link, links })?;
        if end.put {
            return Err(Error::NotOnePut { lane, round, link, puts: 2 });
        }
        if (next.array_id(), next.rect()) != end.own[parity(after)] {
            let (array, why) = (next.array_label(), "is not its buffer for the next round");
            return Err(Error::WrongBuffer { link, array, why });
        }
        if from.len() != end.elements {
            let (what, limit) = ("number of elements to put on a link", end.elements as u64);
            return Err(Error::Limit { what, value: from.len() as u64, limit });
        }
        let spawned = Spawned::new(self.lane.round());
        let (peer, remote, guards) = (end.peer, end.remote[parity(round)], self.guards.clone());
        let task = self.lane.group().task("put").communicates().inline().input(from).inout(next);
        task.spawn(move |from: In<T, D>, next: InOut<T>| {
            if !guards.hold(after, next.into()) {
                return;
            }
            // SAFETY: the target holds its guard of that buffer until its sync of this round has
            // ended, which waits for this put, or its memory is taken from the device. If this is
            // round 0, all ranks have the guards of it since before `double_buffered_channel`
            // returned. If not, `hold` has said that the sync of the round before has ended here.
            // That sync counted the put of the other end, which was posted after that end's guard
            // for this round was held. Links are symmetric and their lane is used by nothing else,
            // so it was that put; a link's buffer is known to its other end only, which puts once a
            // round.
            let put = spawned.issue(|round| unsafe { round.put_unchecked(from, peer, remote) });
            // Nobody awaits the operation: the task holds its guard.
            drop(put);
        })?;
        end.put = true;
        Ok(())
    }

    /// Ends the round with a cached sync and opens the next round.
    ///
    /// **Completion**: returns at once; the handle ends with the round, when the puts of this rank
    /// are posted and those of its peers are *delivered*. The handle need not be awaited.
    /// **Errors**: a link without a put in this round, which fails the run; as a spawn.
    pub fn sync(&mut self) -> Result<SyncHandle, Error> {
        if let Some(link) = self.ends.iter().position(|end| !end.put) {
            let (lane, round) = (self.lane.lane_number(), self.round);
            let error = Error::NotOnePut { lane, round, link, puts: 0 };
            self.lane.at.sender().fail(&error);
            return Err(error);
        }
        self.round = Round(self.round.0 + 1);
        self.ends.iter_mut().for_each(|end| end.put = false);
        SyncBuilder::of_channel(&self.lane.at, SyncMode::CACHED, &self.guards).spawn()
    }
}

impl<T> DoubleBufferedChannel<T> {
    /// Returns the number of the channel's lane.
    pub fn lane_number(&self) -> LaneNumber {
        self.lane.lane_number()
    }

    /// Returns the number of the open round.
    pub fn round(&self) -> Round {
        self.round
    }
}

impl<T> Drop for DoubleBufferedChannel<T> {
    fn drop(&mut self) {
        if std::thread::panicking() || self.ends.iter().any(|end| end.put) {
            return self.guards.abandon();
        }
        self.guards.close_after(self.round);
        // Puts of a peer in this round are no error here: this rank may be failing, and its main
        // knows why. The others then miss its barrier.
        let sync = SyncBuilder::of_channel(&self.lane.at, SyncMode::DEFAULT, &self.guards);
        // Without a runtime nobody waits for the buffers.
        let _ = sync.spawn();
    }
}

impl<T> fmt::Debug for DoubleBufferedChannel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DoubleBufferedChannel { lane, round, ends, .. } = self;
        let links = counted(ends.len(), "link");
        let lane = lane.lane_number();
        write!(f, "DoubleBufferedChannel ({links} on {lane}, {round} is open)")
    }
}

fn parity(round: Round) -> usize {
    (round.0 % 2) as usize
}

/// Checks that the two buffers of a link are as long as each other, and that none overlaps another.
fn check_buffers<T>(links: &[Link<'_, T>]) -> Result<(), Error> {
    for (link, Link { buffers: [even, odd], .. }) in links.iter().enumerate() {
        if even.len() != odd.len() {
            let (array, why) = (odd.array_label(), "has not as many elements as the other buffer");
            return Err(Error::WrongBuffer { link, array, why });
        }
    }
    let buffers = || links.iter().enumerate().flat_map(|(n, link)| link.buffers.map(|p| (n, p)));
    for (number, (link, buffer)) in buffers().enumerate() {
        let array = buffer.array_id();
        let overlaps = |other: &Region<'_, T>| {
            other.array_id() == array && other.rect().overlaps(&buffer.rect())
        };
        if buffers().take(number).any(|(_, other)| overlaps(&other)) {
            let (array, why) = (buffer.array_label(), "overlaps another buffer");
            return Err(Error::WrongBuffer { link, array, why });
        }
    }
    Ok(())
}
