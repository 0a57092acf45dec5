//! Syncs of iterations: what a sync and its windows do in every step.

use std::sync::Arc;

use talpf_primitives::Mutex;
use talpf_runtime::fail_current_task;

use super::builder::{EachStep, SyncBuilder, begin};
use super::declared_windows::{Opens, add_areas_of};
use super::opening::open;
use super::{SyncHandle, SyncMode};
use crate::error::Error;
use crate::held_guard::HeldGuard;
use crate::iteration::Iteration;
use crate::lane_address::LaneAddress;
use crate::numbers::Round;
use crate::sender::RoundState;
use crate::window::{Areas, Kind};

impl<'r> SyncBuilder<'_, 'r, EachStep<'_, 'r>> {
    /// Closes the open round of the lane and spawns its sync, now or in every step of an iteration.
    ///
    /// **Completion**: returns at once. **Errors**: those of [`SyncBuilder::spawn`].
    pub fn spawn(self) -> Result<(), Error> {
        match self.runs.0 {
            None => self.running(talpf_runtime::Once).spawn().map(|_: SyncHandle| ()),
            Some(step) => self.replay(&step),
        }
    }

    /// Declares a task for every window, which opens it, and one that ends the round.
    fn replay(self, step: &Iteration<'_, 'r>) -> Result<(), Error> {
        let SyncBuilder { lane, mode, windows, .. } = self;
        let sender = lane.sender();
        let round = sender.open_rounds.number(lane.number);
        let mut areas = Areas::default();
        add_areas_of(&windows, &sender.slots, (lane.number, round), &mut areas)?;
        let sync = Arc::new(ReplayedSync {
            lane: lane.clone(),
            mode,
            areas,
            is_held: windows.iter().any(|window| window.kind != Kind::Read),
            declared: Mutex::default(),
        });
        for (number, window) in windows.into_iter().enumerate() {
            let Opens::Task(region) = window.opens else {
                continue;
            };
            let task = step.task_of_round("expose").concurrent(&step.order());
            let sync = Arc::clone(&sync);
            match window.kind {
                Kind::Update | Kind::Write => task
                    .inout(&region)
                    .spawn(move |_order, guard| sync.open(number, guard.into()))?,
                Kind::Read => task
                    .input(&region)
                    .spawn(move |_order, guard| sync.open(number, guard.into()))?,
            }
        }
        Ok(step.sync_task().inout(&step.order()).spawn(move |_order| sync.close())?)
    }
}

/// A sync that runs in every step.
struct ReplayedSync {
    lane: LaneAddress,
    mode: SyncMode,
    areas: Areas,
    /// `true` if the task of a window that is written to holds the group.
    is_held: bool,
    /// The last round in which many windows were declared.
    declared: Mutex<Option<Round>>,
}

impl ReplayedSync {
    /// Opens a window of the open round.
    fn open(&self, number: usize, guard: HeldGuard) {
        let round = self.lane.open_of_iteration();
        self.declare_many(&round);
        let areas = self.areas.as_slice();
        open(&round, areas.len() == 1, [((number, areas[number]), guard)]);
    }

    /// Closes the open round and begins its sync.
    fn close(&self) {
        let round = self.lane.close_of_iteration();
        let begun = round.check().and_then(|()| {
            self.declare_many(&round);
            if !self.areas.are_many() && !round.is_declared() {
                self.declare(&round);
            }
            begin(&self.lane.receiver, &round, self.mode, self.is_held, None)
        });
        if let Err(error) = begun {
            round.sender.fail(&error);
            // The body runs in a task.
            let _ = fail_current_task(error.to_string());
        }
    }

    /// Declares the windows of a round before the first of them opens, if they are many.
    fn declare_many(&self, round: &RoundState) {
        if self.areas.are_many() {
            let mut declared = self.declared.lock();
            if declared.replace(round.number) != Some(round.number) {
                self.declare(round);
            }
        }
    }

    fn declare(&self, round: &RoundState) {
        round.declare(&mut self.areas.clone());
    }
}
