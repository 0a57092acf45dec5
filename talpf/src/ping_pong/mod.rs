//! Ping-pong: links on which neighbours put in turn into two places of each other, without windows
//! and without acknowledgements.
//!
//! A link joins two ranks. Each end has two places; round n puts into place n % 2 of the other
//! end, once. A put of round n
//!
//! 1. waits, as its task has it as `inout`, for the place of round n + 1 at its *own* end, and
//!    leaves the guard with [`Places`], which keeps it until the sync of round n + 1 has ended;
//! 2. is posted after that.
//!
//! The guards of round 0 are there before any rank has made its exchange.
//!
//! The race that this prevents: a put of round n + 1 that lands while the target's tasks use the
//! place. For ends A and B of a link, with `hold(A, n)` for A's guard of the place of round n:
//!
//! ```text
//! B posts n + 1 ◄── after ── hold(B, n + 2) ◄── after ── B lets go of hold(B, n), same place
//!               ◄── after ── B's sync of n has ended ◄── after ── A's put of n has arrived
//!               ◄── after ── A's put of n was posted ◄── after ── hold(A, n + 1)
//! hold(A, n + 1) lasts until A's sync of n + 1 has ended ◄── after ── B's put of n + 1 has landed
//! ```
//!
//! So a put lands between the two ends of a guard at its target, and nobody has to look there. It
//! takes that a sync ends only with the one put of every link: the lane is used by nothing else,
//! links are symmetric, every link has one put before the sync is spawned, and a put whose task
//! fails before that makes the sync fail.
//!
//! When the run fails, [`Places`] takes the memory from the device before it releases guards, and
//! no put is posted on the strength of a guard released in that way. An exchange that is dropped
//! closes with a round of no puts and a barrier: its places are released once every rank is there.
#![allow(unsafe_code, reason = "puts without a check at the target")]

mod offer;
mod places;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bytemuck::Pod;
use ibverbs_sim::RemoteAddress;
use talpf_runtime::{In, InOut, Rect, Region};
use talpf_traces::counted;

use self::offer::Offer;
use crate::context::Context;
use crate::error::Error;
use crate::exchange::Call;
use crate::numbers::{Lane, Rank, Round};
use crate::operation::{OpenRound, Spawned};
use crate::round::User;
use crate::sync::{SyncBuilder, SyncHandle, SyncMode};

pub(crate) use self::places::Places;

/// One end of a link.
#[derive(Debug)]
pub struct Link<'a, T> {
    /// The rank at the other end; this rank itself is fine.
    pub peer: Rank,
    /// Where that one puts, in even and in odd rounds. As long as its own places.
    pub places: [Region<'a, T>; 2],
}

/// Links on which this rank and its neighbours put in every round, made by
/// [`Context::ping_pong`](crate::Context::ping_pong): double-buffered channels.
///
/// The cheapest way to exchange the same pieces again and again: a put is not checked at its
/// target, and rounds end with cached syncs, without other messages.
///
/// **Ordering**: tasks spawned between the sync of round n and the puts of round n + 1 see the data
/// of round n in places n % 2. Those places are in use, as `inout` of a task, from the put of round
/// n - 1 on its link, or the making of the exchange, until round n has ended.
/// **Completion**: dropping it closes it: its places are free once all ranks have dropped theirs.
/// Until then the puts of the last round hold them, so a wait for the whole group does not end.
/// Dropped in the middle of a round, with puts spawned and no sync, it keeps them, and the run
/// fails when the main of this rank ends.
/// **Source**: the double buffers of the thesis, chapters 5.2 and 7.
///
/// ```
/// use talpf::{Config, Lane, Link, exec};
/// use talpf_runtime::Array;
///
/// // The larger number of every pair of neighbours, three times: all ranks have the largest.
/// let ends = exec(Config { ranks: 4, ..Config::default() }, async |ctx| {
///     let (rank, ranks) = (ctx.rank().0, ctx.ranks());
///     let mine = Array::new(ctx.group(), vec![rank; 1], 1)?;
///     let inbox = Array::new(ctx.group(), vec![0u32; 4], 1)?;
///     ctx.register_global(&inbox).await?;
///     let places = |n| [inbox.tile(2 * n), inbox.tile(2 * n + 1)];
///     let (below, above) = (ctx.peer((rank + ranks - 1) % ranks)?, ctx.peer((rank + 1) % ranks)?);
///     let links = [Link { peer: below, places: places(0) }, Link { peer: above, places: places(1) }];
///     let mut exchange = ctx.ping_pong(Lane(1), &links).await?;
///     for round in 0..3 {
///         let next = (round + 1) % 2;
///         for link in 0..2 {
///             exchange.put(link, &mine.all(), &places(link)[next])?;
///         }
///         exchange.sync()?;
///         let come = [places(0)[round % 2], places(1)[round % 2]];
///         let task = ctx.group().task("larger").inputs(come).inout(&mine.all());
///         task.spawn(|come, mut mine| mine[0] = mine[0].max(come[0][0]).max(come[1][0]))?;
///     }
///     Ok::<_, talpf::Error>(ctx.group().task("read").input(&mine.all()).run(|mine| mine[0])?.await?)
/// })?;
/// assert_eq!(ends, [3; 4]);
/// # Ok::<(), talpf::Error>(())
/// ```
pub struct PingPong<T> {
    context: Context,
    lane: Lane,
    /// The round that is open.
    round: Round,
    ends: Vec<End>,
    places: Arc<Places>,
    marker: PhantomData<fn(T) -> T>,
}

/// What is known of a link.
struct End {
    peer: Rank,
    elements: usize,
    own: [(u64, Rect); 2],
    remote: [RemoteAddress; 2],
    /// Whether it has its put of the open round.
    put: bool,
}

impl<T: Pod + Send + Sync> PingPong<T> {
    pub(crate) async fn new(
        context: &Context,
        lane: Lane,
        links: &[Link<'_, T>],
    ) -> Result<Self, Error> {
        let (state, rank) = (context.state(), context.rank());
        check_places(links)?;
        let (mut slots, mut offers) = (Vec::new(), Vec::new());
        for link in links {
            context.peer(link.peer.0)?;
            let [even, odd] = [&link.places[0], &link.places[1]].map(Region::array_id);
            let slot = |array| state.slots.windowed(array, Arc::clone);
            let (even, odd) = (slot(even)?, slot(odd)?);
            offers.push(Offer::new(rank, link, [&even, &odd])?);
            slots.extend([even, odd]);
        }
        let places = Places::new(slots);
        state.open_rounds.take(lane, &places)?;
        // From here on its drop gives the places back.
        let (round, marker) = (Round(0), PhantomData);
        let context = context.clone();
        let mut made = PingPong { context, lane, round, ends: Vec::new(), places, marker };

        let task = made.context.group().task("places").inouts(links.iter().map(|l| l.places[0]));
        for guard in task.run(|guards| guards)?.await? {
            // After a failure there is no exchange.
            made.places.hold(round, Box::new(guard));
        }
        let own = Ok((offer::to_bytes(lane, &offers), ()));
        let ((), all) = made.context.world().all_gather(rank, Call::PingPong, own).await?;
        let remote = offer::connect(rank, lane, &offers, &all)?;
        let ends = links.iter().zip(remote).map(|(link, remote)| End {
            peer: link.peer,
            elements: link.places[0].len(),
            own: link.places.map(|place| (place.array_id(), place.rect())),
            remote,
            put: false,
        });
        made.ends = ends.collect();
        Ok(made)
    }

    /// Spawns a task that puts `from` to the other end of a link. `next` is the place of this end
    /// for the round after this one: tasks that use what it holds now come before the put.
    ///
    /// A `from` that lies in a place of this round waits for the end of the round, and so for
    /// itself: the hang watch reports it.
    ///
    /// **Completion**: returns at once. The task has `from` as input until it may be reused
    /// (*local*), and `next` as inout until the next round has ended.
    /// **Errors**: no such link; a second put of this round on it; `next` is not its place for the
    /// next round; `from` has not as many elements as the place; as a spawn. Later, those of
    /// [`OpenRound::put`] at the sync.
    pub fn put<D: Send + 'static>(
        &mut self,
        link: usize,
        from: &Region<'_, T, D>,
        next: &Region<'_, T>,
    ) -> Result<(), Error> {
        let (round, lane, links) = (self.round, self.lane, self.ends.len());
        let after = Round(round.0 + 1);
        let end = self.ends.get_mut(link).ok_or(Error::NoSuchLink { link, links })?;
        if end.put {
            return Err(Error::NotOnePut { lane, round, link, puts: 2 });
        }
        if (next.array_id(), next.rect()) != end.own[place_of(after)] {
            let (array, why) = (next.array_label(), "is not its place for the next round");
            return Err(Error::WrongPlace { link, array, why });
        }
        if from.len() != end.elements {
            let (what, limit) = ("number of elements to put on a link", end.elements as u64);
            return Err(Error::Limit { what, value: from.len() as u64, limit });
        }
        let context = &self.context;
        let (world, rank) = (context.world(), context.rank());
        let open = context.state().open_rounds.enter(world, rank, lane, User::Exchange);
        let spawned = Spawned::new(OpenRound::new(open));
        let (peer, remote, places) = (end.peer, end.remote[place_of(round)], self.places.clone());
        let task = context.group().task("put").communicates().inline().input(from).inout(next);
        task.spawn(move |from: In<T, D>, next: InOut<T>| {
            if !places.hold(after, Box::new(next)) {
                return;
            }
            // SAFETY: the target holds its guard of that place until its sync of this round has
            // ended, which waits for this put, or its memory is taken from the device. If this is
            // round 0, all ranks have the guards of it since before `ping_pong` returned. If not,
            // `hold` has said that the sync of the round before has ended here. That sync counted
            // the put of the other end, which was posted after that end's guard for this round was
            // held. Links are symmetric and their lane is used by nothing else, so it was that
            // put; a link's place is known to its other end only, which puts once a round.
            let put = spawned.issue(|round| unsafe { round.put_unchecked(from, peer, remote) });
            // Nobody awaits it: the task holds its guard.
            drop(put);
        })?;
        end.put = true;
        Ok(())
    }

    /// Ends the round with a cached sync. The next round is open after that.
    ///
    /// **Completion**: returns at once; the handle ends with the round, when the puts of this rank
    /// are posted and those of its peers are *delivered*. It need not be awaited.
    /// **Errors**: a link without a put in this round, which fails the run; as a spawn.
    pub fn sync(&mut self) -> Result<SyncHandle, Error> {
        if let Some(link) = self.ends.iter().position(|end| !end.put) {
            let error = Error::NotOnePut { lane: self.lane, round: self.round, link, puts: 0 };
            self.context.world().fail(&[self.context.rank()], &error);
            return Err(error);
        }
        self.round = Round(self.round.0 + 1);
        self.ends.iter_mut().for_each(|end| end.put = false);
        SyncBuilder::of_exchange(&self.context, SyncMode::CACHED, self.lane, &self.places).spawn()
    }
}

impl<T> PingPong<T> {
    /// The lane that it has taken.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// The round that is open.
    pub fn round(&self) -> Round {
        self.round
    }
}

impl<T> Drop for PingPong<T> {
    fn drop(&mut self) {
        if std::thread::panicking() || self.ends.iter().any(|end| end.put) {
            return self.places.abandon();
        }
        self.places.close_after(self.round);
        // Puts that come all the same are no error here: this rank may be failing, and its main
        // knows why. The barrier of the others is missing then.
        let mode = SyncMode::DEFAULT;
        let sync = SyncBuilder::of_exchange(&self.context, mode, self.lane, &self.places);
        // Without a runtime there is nobody to wait for the places.
        let _ = sync.spawn();
    }
}

impl<T> fmt::Debug for PingPong<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PingPong { lane, round, ends, .. } = self;
        let links = counted(ends.len(), "link");
        write!(f, "PingPong ({links} on {lane}, {round} is open)")
    }
}

fn place_of(round: Round) -> usize {
    (round.0 % 2) as usize
}

/// Checks that the two places of a link are as long as each other, and that none overlaps another.
fn check_places<T>(links: &[Link<'_, T>]) -> Result<(), Error> {
    for (link, Link { places: [even, odd], .. }) in links.iter().enumerate() {
        if even.len() != odd.len() {
            let (array, why) = (odd.array_label(), "has not as many elements as the other place");
            return Err(Error::WrongPlace { link, array, why });
        }
    }
    let places = || links.iter().enumerate().flat_map(|(n, link)| link.places.map(|p| (n, p)));
    for (number, (link, place)) in places().enumerate() {
        let array = place.array_id();
        let overlaps = |other: &Region<'_, T>| {
            other.array_id() == array && other.rect().overlaps(&place.rect())
        };
        if places().take(number).any(|(_, other)| overlaps(&other)) {
            let (array, why) = (place.array_label(), "overlaps another place");
            return Err(Error::WrongPlace { link, array, why });
        }
    }
    Ok(())
}
