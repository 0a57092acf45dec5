//! Rounds at their sender: the number of operations by target, and of those not posted yet.
//!
//! Program order decides: an operation is of the round that was open where its handle was taken,
//! whenever it runs. A sync closes the round; it advances once every handle is dropped, that is,
//! once every operation has been posted.

mod handles;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use talpf_primitives::Mutex;
use talpf_runtime::Token;

use self::handles::Handles;
use crate::double_buffered_channel::BufferGuards;
use crate::error::Error;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::rounds::MOST_AHEAD;
use crate::sync::Outcome;
use crate::world::{RankState, World};

/// A round of a lane at its sender.
pub(crate) struct RoundState {
    pub(crate) world: Arc<World>,
    pub(crate) rank: Rank,
    pub(crate) lane: LaneNumber,
    pub(crate) number: Round,
    open: Handles,
    /// Number of operations by target.
    sent: Box<[AtomicU32]>,
    /// Number of operations that are parked at their targets.
    parked: AtomicU32,
    /// Set once a target has had more than its share of the limit of the round.
    uneven: AtomicBool,
    /// Set once an operation is missing, which will never be posted.
    missing: AtomicBool,
    /// Set once its windows were declared as they opened.
    declared: AtomicBool,
    /// Error of all operations, for a round that stands in for one that the program cannot have.
    refuses: Option<Box<Error>>,
    /// Result of its sync.
    pub(crate) outcome: Outcome,
}

impl RoundState {
    fn new(world: &Arc<World>, rank: Rank, lane: LaneNumber, number: Round) -> Arc<Self> {
        Arc::new(RoundState {
            world: Arc::clone(world),
            rank,
            lane,
            number,
            open: Handles::new(),
            sent: (0..world.size()).map(|_| AtomicU32::new(0)).collect(),
            parked: AtomicU32::new(0),
            uneven: AtomicBool::new(false),
            missing: AtomicBool::new(false),
            declared: AtomicBool::new(false),
            refuses: None,
            outcome: Outcome::default(),
        })
    }

    /// Makes the stand-in of a round that the program cannot have.
    #[cold]
    fn refusing(world: &Arc<World>, rank: Rank, lane: LaneNumber, why: Error) -> Arc<Self> {
        let mut round = RoundState::new(world, rank, lane, Round(0));
        let refuses = Some(Box::new(why));
        Arc::get_mut(&mut round).into_iter().for_each(|round| round.refuses = refuses.clone());
        round
    }

    /// Checks that the program may use the round.
    ///
    /// **Errors**: iterations use its lane, or too many rounds have not ended.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.refuses {
            None => Ok(()),
            Some(why) => stand_in(why),
        }
    }

    /// Makes a round without other references the round `number` of its lane.
    fn renew(&mut self, number: Round) {
        self.number = number;
        self.open = Handles::new();
        self.sent.iter_mut().for_each(|count| *count.get_mut() = 0);
        *self.parked.get_mut() = 0;
        *self.uneven.get_mut() = false;
        *self.missing.get_mut() = false;
        *self.declared.get_mut() = false;
        self.outcome = Outcome::default();
    }

    /// Returns the state of its rank. Operations keep their round and not the world, as all ranks
    /// would contend for the cache line of its reference count, and for the fields beside it.
    #[inline]
    pub(crate) fn state(&self) -> &RankState {
        self.world.rank(self.rank)
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Arc<Self> {
        if let Err(error) = self.open.enter() {
            // The caller may hold a lock.
            self.state().fail_soon(error);
        }
        Arc::clone(self)
    }

    /// Gives a handle back. Returns `true` for the last one of a closed round, whose sync advances
    /// when its rank makes progress.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        self.open.leave()
    }

    /// Counts operations to a target.
    ///
    /// **Errors**: more than the limit of `resize_message_queue`; iterations use the lane.
    #[inline]
    pub(crate) fn count(&self, target: Rank, operations: u32) -> Result<(), Error> {
        self.check()?;
        let sent = &self.sent[target.index()];
        let to_target = sent.fetch_add(operations, Ordering::Relaxed).saturating_add(operations);
        // As long as no target has more than its share, the sum is within the limit.
        let limit = u64::from(self.state().open_rounds.limit());
        let is_uneven = u64::from(to_target) * self.sent.len() as u64 > limit;
        if is_uneven || self.uneven.load(Ordering::Relaxed) {
            self.check_limit(limit).inspect_err(|_| {
                sent.fetch_sub(operations, Ordering::Relaxed);
            })?;
        }
        Ok(())
    }

    #[inline(never)]
    fn check_limit(&self, limit: u64) -> Result<(), Error> {
        self.uneven.store(true, Ordering::Relaxed);
        if self.sent().map(u64::from).sum::<u64>() > limit {
            let what = "number of operations in a round";
            return Err(Error::Limit { what, value: limit + 1, limit });
        }
        Ok(())
    }

    /// Notes that an operation will never be posted.
    pub(crate) fn note_missing(&self) {
        self.missing.store(true, Ordering::Release);
    }

    pub(crate) fn has_missing(&self) -> bool {
        self.missing.load(Ordering::Acquire)
    }

    /// Notes that its windows are declared.
    pub(crate) fn note_declared(&self) {
        self.declared.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if its windows are declared. May miss a declaration by another thread.
    pub(crate) fn is_declared(&self) -> bool {
        self.declared.load(Ordering::Relaxed)
    }

    /// Fails the run with the panic of `code` of the program that was called for this rank.
    #[cold]
    pub(crate) fn fail_foreign(&self, code: &str, panic: &str) {
        self.world.fail_with_reason(self.rank, &format!("{code} has panicked: {panic}"));
    }

    /// Returns `true` if the round is closed and all its operations are posted.
    pub(crate) fn is_posted(&self) -> bool {
        self.open.is_none()
    }

    /// Notes that an operation, which still has a handle, is about to be parked.
    pub(crate) fn park(&self) {
        self.parked.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a parked operation was posted or refused. Returns `true` for the last one, after
    /// which the sync advances when its rank makes progress.
    pub(crate) fn unpark(&self) -> bool {
        self.parked.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns the number of operations parked at their targets, to which none is added once the
    /// round is posted.
    pub(crate) fn parked(&self) -> u32 {
        self.parked.load(Ordering::Acquire)
    }

    /// Returns the number of handles.
    pub(crate) fn unposted(&self) -> u32 {
        self.open.count()
    }

    /// Returns the number of operations for one target. Final once the round is posted.
    #[inline]
    pub(crate) fn sent_to(&self, target: Rank) -> u32 {
        self.sent[target.index()].load(Ordering::Relaxed)
    }

    /// Iterates over the numbers of operations by target. Final once the round is posted.
    pub(crate) fn sent(&self) -> impl Iterator<Item = u32> {
        self.sent.iter().map(|count| count.load(Ordering::Relaxed))
    }
}

#[cold]
#[inline(never)]
fn stand_in(why: &Error) -> Result<(), Error> {
    Err(why.clone())
}

/// The open rounds of one rank, by lane.
pub(crate) struct OpenRounds {
    lanes: Mutex<Vec<LaneRounds>>,
    limit: AtomicU32,
}

#[derive(Default)]
struct LaneRounds {
    /// The open round of the program. `None` before the first one, and while iterations use the
    /// lane.
    open: Option<Arc<RoundState>>,
    /// The rounds of the iterations that use the lane.
    lent: Option<Lent>,
    /// Memory of a round that has ended, for the next to be opened.
    spare: Option<Arc<RoundState>>,
    /// Order of the rounds of iterations, which the owner of the lane keeps.
    order: Weak<LaneOrder>,
    /// Guards of the double-buffered channel that the lane belongs to.
    buffer_guards: Option<Arc<BufferGuards>>,
    /// Number of rounds that have ended.
    ended: u64,
}

/// Rounds that a lane has lent to iterations.
struct Lent {
    /// The first of them that is not closed.
    open: Arc<RoundState>,
    /// Number of rounds that are not closed.
    rounds: u64,
}

/// The source of the round that follows an open one.
struct Follows<'a> {
    spare: &'a mut Option<Arc<RoundState>>,
    /// Number of rounds that have ended.
    ended: u64,
}

impl LaneRounds {
    /// Returns the program's open round.
    ///
    /// **Errors**: iterations use the lane.
    #[inline]
    fn open(
        &mut self,
        world: &Arc<World>,
        rank: Rank,
        lane: LaneNumber,
    ) -> Result<(&mut Arc<RoundState>, Follows<'_>), Error> {
        let LaneRounds { open, lent, spare, ended, .. } = self;
        let open = match open {
            Some(open) => open,
            None if lent.is_some() => return Err(refused(lane, OF_ITERATION)),
            none => none.insert(RoundState::new(world, rank, lane, Round(0))),
        };
        Ok((open, Follows { spare, ended: *ended }))
    }

    /// Takes back rounds that were lent. With the last of them the open round is the program's.
    fn take_back(&mut self, rounds: u64) {
        if let Some(lent) = &mut self.lent {
            lent.rounds -= rounds;
            if lent.rounds == 0 {
                self.open = self.lent.take().map(|lent| lent.open);
            }
        }
    }

    fn any_open(&self) -> Option<&Arc<RoundState>> {
        self.open.as_ref().or(self.lent.as_ref().map(|lent| &lent.open))
    }
}

impl Follows<'_> {
    /// Closes an open round, and opens the next in its place.
    ///
    /// **Errors**: too many rounds have not ended.
    fn close(self, open: &mut Arc<RoundState>) -> Result<Arc<RoundState>, Error> {
        let value = open.number.0 - self.ended + 1;
        if value > MOST_AHEAD {
            let (what, limit) = ("number of syncs of a lane that have not ended", MOST_AHEAD);
            return Err(Error::Limit { what, value, limit });
        }
        let number = Round(open.number.0 + 1);
        let renewed = self.spare.take().and_then(|mut round| {
            Arc::get_mut(&mut round)?.renew(number);
            Some(round)
        });
        let next = || RoundState::new(&open.world, open.rank, open.lane, number);
        Ok(std::mem::replace(open, renewed.unwrap_or_else(next)))
    }
}

#[cold]
fn refused(lane: LaneNumber, why: &'static str) -> Error {
    Error::LaneRefused { lane, why }
}

/// The token that orders the rounds of iterations on a lane, if it was needed yet. A lane has an
/// owner as long as this lives.
pub(crate) type LaneOrder = OnceLock<Token>;

/// Error texts for lanes that are not to be had.
const OF_ITERATION: &str = "is used by an iteration that has not ended: wait for the group first";
const OF_CHANNEL: &str = "is or was one of a double-buffered channel";
const NOT_LENT: &str = "has no round of an iteration";

/// Default limit of the operations of one round.
const OPERATIONS: u32 = 1 << 20;
/// The largest limit that `resize_message_queue` accepts.
const MAX_OPERATIONS: u32 = 1 << 31;

impl OpenRounds {
    pub(crate) fn new() -> Self {
        OpenRounds { lanes: Mutex::default(), limit: AtomicU32::new(OPERATIONS) }
    }

    pub(crate) fn set_limit(&self, operations: usize) -> Result<(), Error> {
        let limit = |limit| {
            let what = "message queue size";
            Error::Limit { what, value: operations as u64, limit }
        };
        match u32::try_from(operations) {
            Ok(0) => Err(limit(1)),
            Ok(operations) if operations <= MAX_OPERATIONS => {
                self.limit.store(operations, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(limit(u64::from(MAX_OPERATIONS))),
        }
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Takes a lane other than 0 for an owner.
    ///
    /// **Errors**: a lane that has an owner, or that belongs to iterations or a channel.
    pub(crate) fn take(&self, lane: LaneNumber) -> Result<Arc<LaneOrder>, Error> {
        let mut lanes = self.lanes.lock();
        let LaneRounds { lent, order, buffer_guards, .. } = lane_of(&mut lanes, lane);
        let why = if buffer_guards.is_some() {
            OF_CHANNEL
        } else if lent.is_some() {
            OF_ITERATION
        } else if order.strong_count() > 0 {
            "has an owner: drop that `Lane`, or pass it on"
        } else {
            let made = Arc::default();
            *order = Arc::downgrade(&made);
            return Ok(made);
        };
        Err(Error::LaneRefused { lane, why })
    }

    /// Gives a taken lane, which was not used, to a double-buffered channel for as long as the run
    /// lasts.
    ///
    /// **Errors**: lane 0, which has any number of owners; a lane that was used.
    pub(crate) fn give(&self, lane: LaneNumber, guards: &Arc<BufferGuards>) -> Result<(), Error> {
        let mut lanes = self.lanes.lock();
        let LaneRounds { open, lent, buffer_guards, .. } = lane_of(&mut lanes, lane);
        if lane == LaneNumber::default() || open.is_some() || lent.is_some() {
            return Err(refused(
                lane,
                "was used before: a double-buffered channel needs a new one",
            ));
        }
        *buffer_guards = Some(Arc::clone(guards));
        Ok(())
    }

    /// Takes a handle of the program's open round of a lane, or of a stand-in that refuses
    /// operations if iterations use the lane.
    #[inline]
    pub(crate) fn enter(
        &self,
        world: &Arc<World>,
        rank: Rank,
        lane: LaneNumber,
    ) -> Arc<RoundState> {
        match lane_of(&mut self.lanes.lock(), lane).open(world, rank, lane) {
            Ok((open, _)) => open.enter(),
            Err(error) => RoundState::refusing(world, rank, lane, error),
        }
    }

    /// Closes the program's open round of a lane, opens the next, and returns the closed one, which
    /// the caller `leave`s, or a stand-in that refuses its sync.
    pub(crate) fn close(
        &self,
        world: &Arc<World>,
        rank: Rank,
        lane: LaneNumber,
    ) -> Arc<RoundState> {
        let mut lanes = self.lanes.lock();
        let opened = lane_of(&mut lanes, lane).open(world, rank, lane);
        let closed = opened.and_then(|(open, follows)| follows.close(open));
        closed.unwrap_or_else(|error| RoundState::refusing(world, rank, lane, error))
    }

    /// Returns the number of the open round of a lane.
    pub(crate) fn number(&self, lane: LaneNumber) -> Round {
        let mut lanes = self.lanes.lock();
        lane_of(&mut lanes, lane).any_open().map_or(Round(0), |open| open.number)
    }

    /// Lends rounds of a lane, from the open one on, to the iterations that use the lane.
    pub(crate) fn lend(&self, world: &Arc<World>, rank: Rank, lane: LaneNumber, rounds: u64) {
        let mut lanes = self.lanes.lock();
        let LaneRounds { open, lent, .. } = lane_of(&mut lanes, lane);
        let first = || RoundState::new(world, rank, lane, Round(0));
        let new = || Lent { open: open.take().unwrap_or_else(first), rounds: 0 };
        lent.get_or_insert_with(new).rounds += rounds;
    }

    /// Takes back rounds that were lent to an iteration that does not run.
    pub(crate) fn take_back(&self, lane: LaneNumber, rounds: u64) {
        lane_of(&mut self.lanes.lock(), lane).take_back(rounds);
    }

    /// Returns the open round of the iterations that use a lane.
    pub(crate) fn of_iteration(
        &self,
        world: &Arc<World>,
        rank: Rank,
        lane: LaneNumber,
    ) -> Arc<RoundState> {
        match &lane_of(&mut self.lanes.lock(), lane).lent {
            Some(lent) => Arc::clone(&lent.open),
            None => RoundState::refusing(world, rank, lane, refused(lane, NOT_LENT)),
        }
    }

    /// Closes the open round of the iterations that use a lane, as [`OpenRounds::close`].
    pub(crate) fn close_of_iteration(
        &self,
        world: &Arc<World>,
        rank: Rank,
        lane: LaneNumber,
    ) -> Arc<RoundState> {
        let mut lanes = self.lanes.lock();
        let rounds = lane_of(&mut lanes, lane);
        let LaneRounds { lent, spare, ended, .. } = rounds;
        let open = lent.as_mut().map(|lent| &mut lent.open).ok_or(refused(lane, NOT_LENT));
        let closed = open.and_then(|open| Follows { spare, ended: *ended }.close(open));
        if closed.is_ok() {
            rounds.take_back(1);
        }
        closed.unwrap_or_else(|error| RoundState::refusing(world, rank, lane, error))
    }

    /// Checks, at the end of the main, that no channel was dropped in the middle of a round.
    ///
    /// **Errors**: one was.
    pub(crate) fn check_channels(&self) -> Result<(), Error> {
        let lanes = self.lanes.lock();
        let mut channels = lanes.iter().map(|lane| &lane.buffer_guards);
        match channels.position(|guards| guards.as_ref().is_some_and(|g| g.is_abandoned())) {
            Some(lane) => {
                let why = "belongs to a channel that was dropped in the middle of a round";
                Err(Error::LaneRefused { lane: LaneNumber(lane as u8), why })
            }
            None => Ok(()),
        }
    }

    /// Checks that a sync has closed every round that has operations.
    ///
    /// **Errors**: none has closed one of them.
    pub(crate) fn check_closed(&self) -> Result<(), Error> {
        for open in self.lanes.lock().iter().filter_map(LaneRounds::any_open) {
            let operations = open.sent().map(u64::from).sum();
            if operations > 0 {
                return Err(Error::NotClosed { lane: open.lane, round: open.number, operations });
            }
        }
        Ok(())
    }

    /// Releases the guards that channels hold, after a failure of the run.
    #[cold]
    pub(crate) fn fail(&self, reason: &Arc<str>) {
        let lanes = self.lanes.lock();
        let channels: Vec<_> = lanes.iter().filter_map(|lane| lane.buffer_guards.clone()).collect();
        drop(lanes);
        channels.iter().for_each(|guards| guards.fail(reason));
    }

    /// Keeps the memory of a round that has ended, for a later round of its lane.
    pub(crate) fn recycle(&self, round: Arc<RoundState>) {
        let mut lanes = self.lanes.lock();
        let lane = lane_of(&mut lanes, round.lane);
        // Rounds of a lane end in order.
        lane.ended = round.number.0 + 1;
        let before = lane.spare.replace(round);
        drop(lanes);
        drop(before);
    }

    /// Drops the rounds, and so breaks their reference cycle with the world.
    pub(crate) fn clear(&self) {
        let rounds = std::mem::take(&mut *self.lanes.lock());
        drop(rounds);
    }
}

fn lane_of(lanes: &mut Vec<LaneRounds>, lane: LaneNumber) -> &mut LaneRounds {
    if lanes.len() <= lane.index() {
        lanes.resize_with(lane.index() + 1, LaneRounds::default);
    }
    &mut lanes[lane.index()]
}
