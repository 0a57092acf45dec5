//! Declaration of syncs.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use bytemuck::Pod;
use smallvec::SmallVec;
use talpf_runtime::{ArrayLabel, In, InOut, PendingEvent, Rect, Region};
use talpf_traces::Event;

use super::SyncMode;
use super::active_sync::{ActiveSync, Stage};
use crate::context::Context;
use crate::double_buffered_channel::BufferGuards;
use crate::error::Error;
use crate::held_guard::HeldGuard;
use crate::numbers::{LaneNumber, Round};
use crate::round::{RoundState, User};
use crate::window::{Area, Areas, Kind};

/// A builder of a sync, with its mode and the windows in which operations of peers may land.
///
/// Nothing happens before [`SyncBuilder::spawn`] or an `await`, which close the open round of the
/// lane: operations that are issued while a sync is being declared are of its round. Tasks that use
/// a region of a window wait for the end of the round by their dependencies.
#[must_use = "a sync does nothing, and its round stays open, until it is spawned or awaited"]
pub struct SyncBuilder<'a> {
    context: &'a Context,
    mode: SyncMode,
    lane: LaneNumber,
    windows: SmallVec<[Window<'a>; 2]>,
    /// Guards of the double-buffered channel that the sync belongs to, if any.
    buffer_guards: Option<&'a Arc<BufferGuards>>,
}

/// A declared window.
struct Window<'a> {
    kind: Kind,
    opens: Opens<'a>,
}

/// The source of the guard with which a window opens.
enum Opens<'a> {
    /// A task on the region, to be spawned.
    Task(Region<'a, ()>),
    /// A guard that the caller has given.
    Now { guard: Box<dyn HeldGuard>, array: u64, rect: Rect },
}

impl Opens<'_> {
    /// Returns the array of the window, and its part of the array.
    #[inline]
    fn part(&self) -> (u64, Rect) {
        match self {
            Opens::Task(region) => (region.array_id(), region.rect()),
            Opens::Now { array, rect, .. } => (*array, *rect),
        }
    }
}

impl<'a> SyncBuilder<'a> {
    pub(crate) fn new(context: &'a Context, mode: SyncMode, lane: LaneNumber) -> Self {
        SyncBuilder { context, mode, lane, windows: SmallVec::new(), buffer_guards: None }
    }

    /// Declares the sync of a double-buffered channel, at whose end `buffer_guards` are released.
    pub(crate) fn of_channel(
        context: &'a Context,
        mode: SyncMode,
        lane: LaneNumber,
        buffer_guards: &'a Arc<BufferGuards>,
    ) -> Self {
        SyncBuilder { buffer_guards: Some(buffer_guards), ..SyncBuilder::new(context, mode, lane) }
    }

    /// Lets puts and atomics of this round land in `region`, which must be of a slot registered
    /// with `register_global`. A task has the region as `inout` until the round has ended.
    #[inline]
    pub fn window<T: Pod + Send + Sync, D: Send + 'static>(
        self,
        region: &Region<'a, T, D>,
    ) -> Self {
        self.push(Kind::Write, Opens::Task(region.without_data()))
    }

    /// Lets gets of this round read `region`. A task has it as `input` until the round has ended.
    #[inline]
    pub fn expose<T: Pod + Send + Sync, D: Send + 'static>(
        self,
        region: &Region<'a, T, D>,
    ) -> Self {
        self.push(Kind::Read, Opens::Task(region.without_data()))
    }

    /// As [`SyncBuilder::window`], for a body that has the guard of the region already: the window
    /// opens as the sync is spawned.
    pub fn window_with<T: Pod + Send + Sync, D: Send + 'static>(self, guard: InOut<T, D>) -> Self {
        let (array, rect) = (guard.array_id(), guard.rect());
        self.push(Kind::Write, Opens::Now { guard: Box::new(guard), array, rect })
    }

    /// As [`SyncBuilder::expose`], for a body that has the guard of the region already.
    pub fn expose_with<T: Pod + Send + Sync, D: Send + 'static>(self, guard: In<T, D>) -> Self {
        let (array, rect) = (guard.array_id(), guard.rect());
        self.push(Kind::Read, Opens::Now { guard: Box::new(guard), array, rect })
    }

    #[inline]
    fn push(mut self, kind: Kind, opens: Opens<'a>) -> Self {
        self.windows.push(Window { kind, opens });
        self
    }

    /// Closes the open round of the lane and spawns its sync, which the group waits for as for a
    /// task.
    ///
    /// **Completion**: returns at once; the handle ends with the round.
    /// **Errors**: a window on a region that is not of a windowed slot, or outside its array; a
    /// window that overlaps another window or exposed region of this sync, for which it would wait;
    /// a lane that a [`DoubleBufferedChannel`](crate::DoubleBufferedChannel) has taken.
    pub fn spawn(mut self) -> Result<SyncHandle, Error> {
        let round = self.close();
        self.spawn_of(&round)?;
        Ok(SyncHandle { round })
    }

    /// Closes the open round.
    fn close(&self) -> Arc<RoundState> {
        let (world, rank) = (self.context.world(), self.context.rank());
        let user = if self.buffer_guards.is_some() { User::Channel } else { User::Program };
        world.rank(rank).open_rounds.close(world, rank, self.lane, user)
    }

    /// Spawns the sync of the closed round.
    fn spawn_of(&mut self, round: &Arc<RoundState>) -> Result<(), Error> {
        let RoundState { world, rank, lane, number, .. } = &**round;
        let (state, mode, buffer_guards) = (round.state(), self.mode, self.buffer_guards.cloned());
        let fails = |error: &Error| world.fail(&[*rank], error);
        let mut areas = Areas::default();
        self.check(round, &mut areas).inspect_err(fails)?;
        let declare = |areas: &mut Areas| {
            let freed = state.windows.declare(*lane, *number, areas);
            world.resume_sources(freed);
        };
        // A few windows open before they are declared: puts that arrive earlier are parked, at a
        // cost to their posters. Operations find one of many windows only once all are declared.
        let many = areas.are_many();
        if many {
            declare(&mut areas);
        }
        let is_held = self.open_windows(round, areas.as_slice()).inspect_err(fails)?;
        if !many && !round.is_declared() {
            declare(&mut areas);
        }
        let event = (!is_held).then(|| PendingEvent::of_group(&state.group, "sync"));
        let event = event.transpose().map_err(Error::from).inspect_err(fails)?;
        if state.tracer.is_traced() {
            let (rank, round, traced) = (rank.0, number.0, mode.traced());
            let expected = state.engine.expected(mode, *lane);
            let lane = u32::from(lane.0);
            state.group.trace(|_| Event::SyncBegin { rank, lane, round, mode: traced, expected });
        }
        let (stage, expected) = (Stage::Posting, 0);
        let sync =
            ActiveSync { round: Arc::clone(round), mode, stage, expected, event, buffer_guards };
        state.begin(sync, world);
        state.wake_poller();
        Ok(())
    }

    /// Opens the windows, or spawns the tasks that do. Returns `true` if a task of a window that is
    /// written to holds the group.
    fn open_windows(&mut self, round: &Arc<RoundState>, areas: &[Area]) -> Result<bool, Error> {
        let mut is_held = false;
        let is_only = areas.len() == 1;
        for (window, area) in self.windows.drain(..).zip(areas.iter().copied().enumerate()) {
            match window.opens {
                Opens::Now { guard, .. } => open(round, area, is_only, guard),
                Opens::Task(region) => {
                    spawn_opening(round, area, is_only, &region)?;
                    is_held |= window.kind != Kind::Read;
                }
            }
        }
        Ok(is_held)
    }

    /// Checks all windows before the first one opens, and finds their `areas`. After an error the
    /// guards of all windows are given up.
    fn check(&mut self, round: &RoundState, areas: &mut Areas) -> Result<(), Error> {
        let checked = self.find_areas(round, areas);
        if let Err(error) = &checked {
            for window in self.windows.drain(..) {
                if let Opens::Now { guard, .. } = window.opens {
                    guard.poison(&error.to_string());
                }
            }
        }
        checked
    }

    #[inline]
    fn find_areas(&self, round: &RoundState, areas: &mut Areas) -> Result<(), Error> {
        round.check()?;
        for Window { kind, opens } in &self.windows {
            if let Opens::Task(region) = opens {
                region.check()?;
            }
            let (array, rect) = opens.part();
            areas.push(round.state().slots.windowed(array, |slot| Area {
                slot: slot.number,
                rect,
                cols: slot.cols,
                kind: *kind,
            })?);
        }
        areas.sort().map_err(|number| {
            let (array, _) = self.windows[number].opens.part();
            let (lane, round, array) = (round.lane, round.number, ArrayLabel::of_id(array));
            Error::WindowsOverlap { lane, round, array }
        })
    }
}

/// Spawns the task that opens a window, perhaps the only one, once its region is free.
fn spawn_opening(
    round: &Arc<RoundState>,
    window: (usize, Area),
    is_only: bool,
    region: &Region<'_, ()>,
) -> Result<(), Error> {
    let task = round.state().group.task("expose").communicates().inline();
    let mut unopened = Unopened { round: Arc::clone(round), failed: true };
    let mut open = move |guard| {
        unopened.failed = false;
        open(&unopened.round, window, is_only, guard);
    };
    match window.1.kind {
        Kind::Update | Kind::Write => {
            task.inout(region).spawn(move |guard| open(Box::new(guard)))?;
        }
        Kind::Read => task.input(region).spawn(move |guard| open(Box::new(guard)))?,
    }
    Ok(())
}

/// Opens a window of `round`, perhaps the only one, with the guard of its region.
fn open(round: &RoundState, window: (usize, Area), is_only: bool, guard: Box<dyn HeldGuard>) {
    let RoundState { world, rank, lane, number, .. } = round;
    let state = round.state();
    let has_landed = |source| world.has_landed(source, *rank);
    let (freed, is_declared) =
        state.windows.open(*lane, *number, window, is_only, guard, &has_landed);
    if is_declared {
        round.note_declared();
    }
    world.resume_sources(freed);
    state.progress_if_rung(world);
    // Parked operations have landed.
    world.notify(*rank);
}

/// A window whose task has not run yet, and does not run if a task before it fails.
struct Unopened {
    round: Arc<RoundState>,
    failed: bool,
}

impl Drop for Unopened {
    fn drop(&mut self) {
        if self.failed {
            let RoundState { world, rank, lane, number, .. } = &*self.round;
            world.fail(&[*rank], &Error::NotOpened { lane: *lane, round: *number });
        }
    }
}

impl IntoFuture for SyncBuilder<'_> {
    type Output = Result<(), Error>;
    type IntoFuture = SyncHandle;

    /// Spawns the sync. The future returns the errors of [`SyncBuilder::spawn`].
    fn into_future(mut self) -> SyncHandle {
        let round = self.close();
        if let Err(error) = self.spawn_of(&round) {
            // No waker is registered yet.
            let _ = round.outcome.set(Err(error));
        }
        SyncHandle { round }
    }
}

/// A handle of a sync, to be awaited for the end of its round.
///
/// **Completion**: *round ended*: operations that this rank issued in the round are posted, those
/// that others issued for it are delivered, and the mode may wait for more.
/// **Errors**: arrivals that are not as expected; a target outside every window (R7); if the run
/// checks for it, a location that the round reads and writes (R6); a rank that failed.
#[derive(Clone)]
pub struct SyncHandle {
    round: Arc<RoundState>,
}

impl SyncHandle {
    /// Returns the number of the round that the sync ends.
    pub fn round(&self) -> Round {
        self.round.number
    }
}

impl Future for SyncHandle {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let RoundState { world, outcome, .. } = &*self.round;
        let state = self.round.state();
        state.batches.post_all();
        if outcome.result().is_none() {
            state.poll_while_spare(world, || outcome.result());
        }
        let last_poll = || {
            state.poll(world);
        };
        match state.wait_flag.wait(outcome, cx.waker(), last_poll) {
            Some(result) => Poll::Ready(result),
            None => {
                talpf_runtime::note_wait("a sync");
                Poll::Pending
            }
        }
    }
}
