//! The open rounds of one rank, by lane, and the owners of lanes.
//!
//! A round is the program's, or lent to the iterations that use its lane: then the program has no
//! open round there until the last of the lent ones is closed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use talpf_primitives::Mutex;
use talpf_runtime::Token;

use crate::double_buffered_channel::BufferGuards;
use crate::error::Error;
use crate::numbers::{LaneNumber, Round};
use crate::round::{RoundOf, RoundOwner};
use crate::rounds::MOST_AHEAD;

/// The open rounds of one rank, by lane.
pub(crate) struct OpenRounds<S> {
    lanes: Mutex<Vec<LaneRounds<S>>>,
    limit: AtomicU32,
}

struct LaneRounds<S> {
    /// The open round of the program. `None` before the first one, and while iterations use the
    /// lane.
    open: Option<Arc<RoundOf<S>>>,
    /// The rounds of the iterations that use the lane.
    lent: Option<Lent<S>>,
    /// Memory of a round that has ended, for the next to be opened.
    spare: Option<Arc<RoundOf<S>>>,
    /// Order of the rounds of iterations, which the owner of the lane keeps.
    order: Weak<LaneOrder>,
    /// Guards of the double-buffered channel that the lane belongs to.
    buffer_guards: Option<Arc<BufferGuards>>,
    /// Number of rounds that have ended.
    ended: u64,
}

/// Rounds that a lane has lent to iterations.
struct Lent<S> {
    /// The first of them that is not closed.
    open: Arc<RoundOf<S>>,
    /// Number of rounds that are not closed.
    rounds: u64,
}

/// The source of the round that follows an open one.
struct Follows<'a, S> {
    spare: &'a mut Option<Arc<RoundOf<S>>>,
    /// Number of rounds that have ended.
    ended: u64,
}

impl<S> Default for LaneRounds<S> {
    fn default() -> Self {
        LaneRounds {
            open: None,
            lent: None,
            spare: None,
            order: Weak::new(),
            buffer_guards: None,
            ended: 0,
        }
    }
}

impl<S: RoundOwner> LaneRounds<S> {
    /// Returns the program's open round.
    ///
    /// **Errors**: iterations use the lane.
    #[inline]
    fn open(
        &mut self,
        sender: &S,
        lane: LaneNumber,
    ) -> Result<(&mut Arc<RoundOf<S>>, Follows<'_, S>), Error> {
        let LaneRounds { open, lent, spare, ended, .. } = self;
        let open = match open {
            Some(open) => open,
            None if lent.is_some() => return Err(refused(lane, OF_ITERATION)),
            none => none.insert(RoundOf::new(sender, lane, Round(0))),
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

    fn any_open(&self) -> Option<&Arc<RoundOf<S>>> {
        self.open.as_ref().or(self.lent.as_ref().map(|lent| &lent.open))
    }
}

impl<S: RoundOwner> Follows<'_, S> {
    /// Closes an open round, and opens the next in its place.
    ///
    /// **Errors**: too many rounds have not ended.
    fn close(self, open: &mut Arc<RoundOf<S>>) -> Result<Arc<RoundOf<S>>, Error> {
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
        let next = || RoundOf::new(&open.sender, open.lane, number);
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

impl<S: RoundOwner> OpenRounds<S> {
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
        Err(refused(lane, why))
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
    pub(crate) fn enter(&self, sender: &S, lane: LaneNumber) -> Arc<RoundOf<S>> {
        match lane_of(&mut self.lanes.lock(), lane).open(sender, lane) {
            Ok((open, _)) => open.enter(),
            Err(error) => RoundOf::refusing(sender, lane, error),
        }
    }

    /// Closes the program's open round of a lane, opens the next, and returns the closed one, which
    /// the caller `leave`s, or a stand-in that refuses its sync.
    pub(crate) fn close(&self, sender: &S, lane: LaneNumber) -> Arc<RoundOf<S>> {
        let mut lanes = self.lanes.lock();
        let opened = lane_of(&mut lanes, lane).open(sender, lane);
        let closed = opened.and_then(|(open, follows)| follows.close(open));
        closed.unwrap_or_else(|error| RoundOf::refusing(sender, lane, error))
    }

    /// Returns `true` if the program's open round of a lane has operations or handles, or if iterations use the lane.
    pub(crate) fn is_in_use(&self, lane: LaneNumber) -> bool {
        let mut lanes = self.lanes.lock();
        let LaneRounds { open, lent, .. } = lane_of(&mut lanes, lane);
        lent.is_some() || open.as_ref().is_some_and(|open| open.is_in_use())
    }

    /// Returns the number of the open round of a lane.
    pub(crate) fn number(&self, lane: LaneNumber) -> Round {
        let mut lanes = self.lanes.lock();
        lane_of(&mut lanes, lane).any_open().map_or(Round(0), |open| open.number)
    }

    /// Lends rounds of a lane, from the open one on, to the iterations that use the lane.
    pub(crate) fn lend(&self, sender: &S, lane: LaneNumber, rounds: u64) {
        let mut lanes = self.lanes.lock();
        let LaneRounds { open, lent, .. } = lane_of(&mut lanes, lane);
        let first = || RoundOf::new(sender, lane, Round(0));
        let new = || Lent { open: open.take().unwrap_or_else(first), rounds: 0 };
        lent.get_or_insert_with(new).rounds += rounds;
    }

    /// Takes back rounds that were lent to an iteration that does not run.
    pub(crate) fn take_back(&self, lane: LaneNumber, rounds: u64) {
        lane_of(&mut self.lanes.lock(), lane).take_back(rounds);
    }

    /// Returns the open round of the iterations that use a lane.
    pub(crate) fn of_iteration(&self, sender: &S, lane: LaneNumber) -> Arc<RoundOf<S>> {
        match &lane_of(&mut self.lanes.lock(), lane).lent {
            Some(lent) => Arc::clone(&lent.open),
            None => RoundOf::refusing(sender, lane, refused(lane, NOT_LENT)),
        }
    }

    /// Closes the open round of the iterations that use a lane, as [`OpenRounds::close`].
    pub(crate) fn close_of_iteration(&self, sender: &S, lane: LaneNumber) -> Arc<RoundOf<S>> {
        let mut lanes = self.lanes.lock();
        let rounds = lane_of(&mut lanes, lane);
        let LaneRounds { lent, spare, ended, .. } = rounds;
        let open = lent.as_mut().map(|lent| &mut lent.open).ok_or_else(|| refused(lane, NOT_LENT));
        let closed = open.and_then(|open| Follows { spare, ended: *ended }.close(open));
        if closed.is_ok() {
            rounds.take_back(1);
        }
        closed.unwrap_or_else(|error| RoundOf::refusing(sender, lane, error))
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
            let operations = open.sent_in_all();
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
    pub(crate) fn recycle(&self, round: Arc<RoundOf<S>>) {
        let mut lanes = self.lanes.lock();
        let lane = lane_of(&mut lanes, round.lane);
        // Rounds of a lane end in order.
        lane.ended = round.number.0 + 1;
        let before = lane.spare.replace(round);
        drop(lanes);
        drop(before);
    }

    /// Drops the rounds, and so breaks their reference cycle with the sender.
    pub(crate) fn clear(&self) {
        let rounds = std::mem::take(&mut *self.lanes.lock());
        drop(rounds);
    }
}

fn lane_of<S>(lanes: &mut Vec<LaneRounds<S>>, lane: LaneNumber) -> &mut LaneRounds<S> {
    if lanes.len() <= lane.index() {
        lanes.resize_with(lane.index() + 1, LaneRounds::default);
    }
    &mut lanes[lane.index()]
}
