//! Rounds at their sender: the number of operations by target, and of those not posted yet.
//!
//! Program order decides: an operation is of the round that was open where its handle was taken,
//! whenever it runs. A sync closes the round; it advances once every handle is dropped, that is,
//! once every operation has been posted.

mod handles;
mod parked_count;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use self::handles::Handles;
use self::parked_count::ParkedCount;
use crate::by_rank::ByRank;
use crate::error::Error;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::peer::Engine;
use crate::processes::WindowRequest;
use crate::sync::Outcome;

/// A round of a lane at its sender, of which it keeps a handle `S`. Operations keep their round and
/// not the sender, as the workers of a rank would contend for its reference count.
pub(crate) struct RoundOf<S> {
    pub(crate) sender: S,
    /// The engine of the rank, which its own rounds reach without a count of references. `None` in a
    /// round that was made after the end of the run.
    engine: Option<Arc<dyn Engine>>,
    pub(crate) rank: Rank,
    pub(crate) lane: LaneNumber,
    pub(crate) number: Round,
    open: Handles,
    /// Time at which the last handle was given back, in a run that is traced; 0 before.
    posted_ns: AtomicU64,
    /// Number of operations by target.
    sent: ByRank<AtomicU32>,
    pub(crate) parked: ParkedCount,
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

/// The handle of a sender that rounds keep.
pub(crate) trait RoundOwner: Clone {
    fn rank(&self) -> Rank;
    /// Returns the engine of the rank, as long as the run lasts.
    fn engine(&self) -> Option<Arc<dyn Engine>>;
    /// Returns the number of ranks of the run.
    fn ranks(&self) -> u32;
    /// Returns the largest number of operations of a round.
    fn limit(&self) -> u32;
    /// Returns the time; 0 if the run is not traced.
    fn trace_clock(&self) -> u64;
    /// Makes the next pass of the engine fail the run, for callers that hold a lock.
    fn fail_soon(&self, error: Error);
}

impl<S: RoundOwner> RoundOf<S> {
    pub(crate) fn new(sender: &S, lane: LaneNumber, number: Round) -> Arc<Self> {
        Arc::new(RoundOf {
            sender: sender.clone(),
            engine: sender.engine(),
            rank: sender.rank(),
            lane,
            number,
            open: Handles::new(),
            posted_ns: AtomicU64::new(0),
            sent: ByRank::new(sender.ranks()),
            parked: ParkedCount::new(),
            uneven: AtomicBool::new(false),
            missing: AtomicBool::new(false),
            declared: AtomicBool::new(false),
            refuses: None,
            outcome: Outcome::default(),
        })
    }

    /// Makes the round of operations outside rounds, which is never closed and counts none of them.
    pub(crate) fn outside_rounds(sender: &S) -> Arc<Self> {
        let mut round = RoundOf::new(sender, LaneNumber::default(), Round(0));
        Arc::get_mut(&mut round).into_iter().for_each(|round| round.sent = ByRank::new(0));
        round
    }

    /// Makes the stand-in of a round that the program cannot have.
    #[cold]
    pub(crate) fn refusing(sender: &S, lane: LaneNumber, why: Error) -> Arc<Self> {
        let mut round = RoundOf::new(sender, lane, Round(0));
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

    /// Returns the engine of the rank. `None` for a round that was made after the end of the run.
    #[inline]
    pub(crate) fn engine(&self) -> Option<&dyn Engine> {
        self.engine.as_deref()
    }

    /// Returns the windows of the round at one rank.
    #[inline]
    pub(crate) fn request(&self, target: Rank) -> WindowRequest {
        WindowRequest { target, lane: self.lane, round: self.number }
    }

    /// Makes a round without other references the round `number` of its lane.
    pub(crate) fn renew(&mut self, number: Round) {
        self.number = number;
        self.open = Handles::new();
        *self.posted_ns.get_mut() = 0;
        self.sent.iter_mut().for_each(|count| *count.get_mut() = 0);
        self.parked = ParkedCount::new();
        *self.uneven.get_mut() = false;
        *self.missing.get_mut() = false;
        *self.declared.get_mut() = false;
        self.outcome = Outcome::default();
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Arc<Self> {
        if let Err(error) = self.open.enter() {
            // The caller may hold a lock.
            self.sender.fail_soon(error);
        }
        Arc::clone(self)
    }

    /// Gives a handle back. Returns `true` for the last one of a closed round, whose sync advances
    /// when its rank makes progress.
    #[inline]
    pub(crate) fn leave(&self) -> bool {
        let is_last = self.open.leave();
        if is_last {
            let now_ns = self.sender.trace_clock();
            if now_ns > 0 {
                self.posted_ns.store(now_ns, Ordering::Relaxed);
            }
        }
        is_last
    }

    /// Returns the time at which the last handle was given back; 0 if the run is not traced, or
    /// the thread that gave it back has not noted it yet.
    pub(crate) fn posted_ns(&self) -> u64 {
        self.posted_ns.load(Ordering::Relaxed)
    }

    /// Counts operations to a target.
    ///
    /// **Errors**: more than the limit of `resize_message_queue`; iterations use the lane.
    #[inline]
    pub(crate) fn count(&self, target: Rank, operations: u32) -> Result<(), Error> {
        self.check()?;
        let sent = self.sent.of(target);
        let to_target = sent.fetch_add(operations, Ordering::Relaxed).saturating_add(operations);
        // As long as no target has more than its share, the sum is within the limit.
        let limit = u64::from(self.sender.limit());
        let is_uneven = u64::from(to_target) * u64::from(self.sent.ranks()) > limit;
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
        if self.sent_in_all() > limit {
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

    /// Returns `true` if the round is closed and all its operations are posted.
    pub(crate) fn is_posted(&self) -> bool {
        self.open.is_none()
    }

    /// Returns the number of handles.
    pub(crate) fn unposted(&self) -> u32 {
        self.open.count()
    }

    /// Returns `true` if the round, which is open, has operations or handles.
    pub(crate) fn is_in_use(&self) -> bool {
        self.unposted() > 1 || self.sent().next().is_some()
    }

    /// Returns the number of operations for one target. Final once the round is posted.
    #[inline]
    pub(crate) fn sent_to(&self, target: Rank) -> u32 {
        self.sent.get(target).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Iterates over the targets of operations and the numbers of these, in the order of the targets. Final
    /// once the round is posted.
    pub(crate) fn sent(&self) -> impl Iterator<Item = (Rank, u32)> {
        let counts =
            self.sent.iter().map(|(target, count)| (target, count.load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0)
    }

    /// Returns the number of operations. Final once the round is posted.
    pub(crate) fn sent_in_all(&self) -> u64 {
        self.sent().map(|(_, count)| u64::from(count)).sum()
    }
}

#[cold]
#[inline(never)]
fn stand_in(why: &Error) -> Result<(), Error> {
    Err(why.clone())
}
