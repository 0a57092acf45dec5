//! Iterations: steps of tasks, operations and syncs that are declared once and replayed.
//!
//! The graph of an iteration orders the rounds of each of its lanes by a token. Tasks that issue an
//! operation or open a window have the token as `concurrent`, a sync has it as `inout`: so the
//! operations of a step are issued in any order, after the sync of the step before has closed its
//! round and before that of their own step does. The end of a round orders nothing but the tasks
//! that use its windows.
//!
//! Program order decides the rounds: an iteration has those that follow the last sync spawned
//! before it, as many as its syncs close. From the declaration of its first sync until its last one
//! has run, the lane belongs to the iteration, and operations and syncs of the program on that lane
//! are refused.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;

use talpf_runtime::{Each, Iteration as Tasks, Region, TaskBuilder, Token};

use crate::error::Error;
use crate::lane_address::LaneAddress;
use crate::numbers::LaneNumber;

/// The tasks, operations and syncs of a step, while they are declared by
/// [`Context::iterate`](crate::Context::iterate): the [`Iteration`](talpf_runtime::Iteration) of
/// the runtime, to which it dereferences, with operations ([`OneSided`](crate::OneSided)) on lane 0
/// or [another lane](Iteration::on).
///
/// A sync of the same lane in the same step follows every operation.
#[derive(Clone, Copy)]
pub struct Iteration<'i, 'r> {
    tasks: &'i Tasks<'r>,
    pub(crate) lane: &'r LaneAddress,
    order: &'r Token,
    rounds: &'i RoundsOfStep,
}

impl<'i, 'r> Iteration<'i, 'r> {
    pub(crate) fn new(
        tasks: &'i Tasks<'r>,
        lane: &'r LaneAddress,
        order: &'r Token,
        rounds: &'i RoundsOfStep,
    ) -> Self {
        Iteration { tasks, lane, order, rounds }
    }

    /// Returns the same step, with operations on another lane.
    pub(crate) fn on_lane(&self, lane: &'r LaneAddress, order: &'r Token) -> Self {
        Iteration { lane, order, ..*self }
    }

    /// Begins the declaration of a task that issues operations of the open round or opens a window,
    /// which has the [order](Self::order) of the lane as `concurrent`.
    pub(crate) fn task_of_round(
        &self,
        label: &'static str,
    ) -> TaskBuilder<'_, (), (), Each<'_, 'r>> {
        self.rounds.open(self.lane.number);
        self.tasks.task(label).communicates().inline()
    }

    /// Begins the declaration of a task that closes the open round, which has the order of the lane
    /// as `inout`. Lends the iteration a round for each run of the step.
    pub(crate) fn sync_task(&self) -> TaskBuilder<'_, (), (), Each<'_, 'r>> {
        self.lane.lend(self.rounds.close(self.lane.number));
        self.tasks.task("sync").communicates().inline()
    }

    /// Returns the token that orders the rounds of the lane.
    pub(crate) fn order(&self) -> Region<'r, ()> {
        self.order.region()
    }
}

impl<'r> Deref for Iteration<'_, 'r> {
    type Target = Tasks<'r>;

    fn deref(&self) -> &Tasks<'r> {
        self.tasks
    }
}

impl fmt::Debug for Iteration<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Iteration ({} of {})", self.lane.number, self.lane.rank())
    }
}

/// The use that the step being declared makes of lanes.
pub(crate) struct RoundsOfStep {
    /// Number of times that the step runs.
    times: u64,
    lanes: RefCell<Vec<LaneOfStep>>,
}

struct LaneOfStep {
    lane: LaneNumber,
    /// Number of rounds that the lane has lent to the step.
    lent: u64,
    /// `true` while an operation is declared that no sync follows yet.
    is_open: bool,
}

impl RoundsOfStep {
    pub(crate) fn new(times: u64) -> Self {
        RoundsOfStep { times, lanes: RefCell::default() }
    }

    fn open(&self, lane: LaneNumber) {
        self.with(lane, |used| used.is_open = true);
    }

    fn close(&self, lane: LaneNumber) -> u64 {
        self.with(lane, |used| {
            used.is_open = false;
            used.lent += self.times;
        });
        self.times
    }

    fn with(&self, lane: LaneNumber, change: impl FnOnce(&mut LaneOfStep)) {
        let mut lanes = self.lanes.borrow_mut();
        let known = lanes.iter().position(|used| used.lane == lane);
        let at = known.unwrap_or_else(|| {
            lanes.push(LaneOfStep { lane, lent: 0, is_open: false });
            lanes.len() - 1
        });
        change(&mut lanes[at]);
    }

    /// Checks that a sync follows every operation of the step.
    ///
    /// **Errors**: an operation without one.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.lanes.borrow().iter().find(|used| used.is_open) {
            Some(LaneOfStep { lane, .. }) => Err(Error::StepNotClosed { lane: *lane }),
            None => Ok(()),
        }
    }

    /// Iterates over the lanes with the number of rounds that each has lent to the step.
    pub(crate) fn lent(self) -> impl Iterator<Item = (LaneNumber, u64)> {
        self.lanes.into_inner().into_iter().map(|used| (used.lane, used.lent))
    }
}
