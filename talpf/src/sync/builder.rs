//! Declaring a sync.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use bytemuck::Pod;
use smallvec::SmallVec;
use talpf_runtime::{In, InOut, PendingEvent, Rect, Region};
use talpf_traces::Event;

use super::SyncMode;
use super::request::{Request, Stage};
use crate::context::Context;
use crate::error::Error;
use crate::held::Held;
use crate::numbers::{Lane, Round};
use crate::ping_pong::Places;
use crate::round::{RoundState, User};
use crate::window::{Area, Kind};

/// A sync being declared: it has closed its round, and says where operations of peers may land.
///
/// Await it to spawn it and wait for its end, or spawn it and go on: tasks that use a region of a
/// window wait for the end of the round by their dependencies.
#[must_use = "a closed round ends when its sync is spawned or awaited"]
pub struct Sync {
    mode: SyncMode,
    closed: Closed,
    error: Option<Error>,
    /// Its windows, by number.
    areas: SmallVec<[Area; 2]>,
    /// Whether the task of a window that is written to holds the group.
    is_held: bool,
    /// Of the exchange that it is of.
    places: Option<Arc<Places>>,
}

impl Sync {
    pub(crate) fn new(context: &Context, mode: SyncMode, lane: Lane) -> Self {
        Sync::closing(context, mode, lane, None)
    }

    /// The sync of an exchange, with whose end it releases places.
    pub(crate) fn of_exchange(
        context: &Context,
        mode: SyncMode,
        lane: Lane,
        places: &Arc<Places>,
    ) -> Self {
        Sync::closing(context, mode, lane, Some(Arc::clone(places)))
    }

    fn closing(context: &Context, mode: SyncMode, lane: Lane, places: Option<Arc<Places>>) -> Self {
        let (world, rank) = (context.world(), context.rank());
        let user = if places.is_some() { User::Exchange } else { User::Program };
        let round = world.rank(rank).open_rounds.close(world, rank, lane, user);
        let error = round.check_lane().err();
        let closed = Closed { round, spawned: false };
        Sync { mode, closed, error, areas: SmallVec::new(), is_held: false, places }
    }

    /// The round it ends.
    pub fn round(&self) -> Round {
        self.closed.round.number
    }

    /// Lets puts and atomics of this round land in `region`, which must be of a slot registered
    /// with `register_global`. A task has the region as `inout` from when it is free until the
    /// round has ended.
    pub fn window<T: Pod + Send + std::marker::Sync, D: Send + 'static>(
        self,
        region: &Region<'_, T, D>,
    ) -> Self {
        self.add(region, Kind::Write)
    }

    /// Lets gets of this round read `region`. A task has it as `input` until the round has ended.
    pub fn expose<T: Pod + Send + std::marker::Sync, D: Send + 'static>(
        self,
        region: &Region<'_, T, D>,
    ) -> Self {
        self.add(region, Kind::Read)
    }

    /// As [`Sync::window`], for a body that has the guard of the region already: the window opens
    /// at once.
    pub fn window_with<T: Pod + Send + std::marker::Sync, D: Send + 'static>(
        self,
        guard: InOut<T, D>,
    ) -> Self {
        let (array, rect) = (guard.array_id(), guard.rect());
        self.open_at_once(array, rect, Kind::Write, Box::new(guard))
    }

    /// As [`Sync::expose`], for a body that has the guard of the region already.
    pub fn expose_with<T: Pod + Send + std::marker::Sync, D: Send + 'static>(
        self,
        guard: In<T, D>,
    ) -> Self {
        let (array, rect) = (guard.array_id(), guard.rect());
        self.open_at_once(array, rect, Kind::Read, Box::new(guard))
    }

    fn open_at_once(mut self, array: u64, rect: Rect, kind: Kind, guard: Box<dyn Held>) -> Self {
        let window = match self.error.take() {
            None => self.number(array, rect, kind),
            Some(error) => Err(error),
        };
        match window {
            Ok(window) => open(&self.closed.round, window, guard),
            Err(error) => {
                guard.give_up(&error.to_string());
                self.error = Some(error);
            }
        }
        self
    }

    fn add<T: Pod + Send + std::marker::Sync, D: Send + 'static>(
        mut self,
        region: &Region<'_, T, D>,
        kind: Kind,
    ) -> Self {
        if self.error.is_none() {
            self.error = self.declare(region, kind).err();
        }
        self
    }

    fn declare<T: Pod + Send + std::marker::Sync, D: Send + 'static>(
        &mut self,
        region: &Region<'_, T, D>,
        kind: Kind,
    ) -> Result<(), Error> {
        // Before there is a task: one that is dropped says that its window has not opened.
        region.check()?;
        let window = self.number(region.array_id(), region.rect(), kind)?;
        let round = &self.closed.round;
        let mut unopened = Unopened { round: Arc::clone(round), failed: true };
        let mut open = move |guard| {
            unopened.failed = false;
            open(&unopened.round, window, guard);
        };
        let task = round.state().group.task("expose").communicates().inline();
        match kind {
            Kind::Update | Kind::Write => {
                task.inout(region).spawn(move |guard| open(Box::new(guard)))?;
                self.is_held = true;
            }
            Kind::Read => task.input(region).spawn(move |guard| open(Box::new(guard)))?,
        }
        Ok(())
    }

    /// Notes a window and gives it its number.
    fn number(&mut self, array: u64, rect: Rect, kind: Kind) -> Result<(usize, Area), Error> {
        let round = &self.closed.round;
        let slots = &round.state().slots;
        let area = slots.windowed(array, |slot| Area {
            slot: slot.number,
            rect,
            cols: slot.cols,
            kind,
        })?;
        if self.areas.iter().any(|earlier| area.conflicts(earlier)) {
            return Err(Error::WindowsOverlap { lane: round.lane, round: round.number, array });
        }
        let window = (self.areas.len(), area);
        self.areas.push(area);
        Ok(window)
    }

    /// Spawns the sync. The group waits for it as for a task.
    ///
    /// **Completion**: returns at once; the handle ends with the round.
    /// **Errors**: a window on a region that is not of a windowed slot, or outside its array; one
    /// that overlaps another window or exposed region of this sync, for which it would wait; a lane
    /// that a [`PingPong`](crate::PingPong) has taken.
    pub fn spawn(mut self) -> Result<SyncHandle, Error> {
        let round = Arc::clone(&self.closed.round);
        let RoundState { world, rank, lane, number, .. } = &*round;
        let (rank, lane, number, mode) = (*rank, *lane, *number, self.mode);
        let state = round.state();
        if let Some(error) = self.error {
            world.fail(&[rank], &error);
            return Err(error);
        }
        let freed = state.windows.complete(lane, number, &self.areas);
        world.follow(freed);
        let event =
            (!self.is_held).then(|| PendingEvent::of_group(&state.group, "sync")).transpose()?;
        if state.tracer.is_traced() {
            let (rank, lane, round, mode) = (rank.0, u32::from(lane.0), number.0, mode.traced());
            let expected = state.engine.expected(self.mode, self.closed.round.lane);
            state.group.trace(|_| Event::SyncBegin { rank, lane, round, mode, expected });
        }
        let (stage, expected, places) = (Stage::Posting, 0, self.places);
        let request = Request { round: Arc::clone(&round), mode, stage, expected, event, places };
        state.engine.request(request);
        self.closed.spawned = true;
        state.wake_poller();
        round.leave();
        state.progress_if_kicked(world);
        Ok(SyncHandle { round })
    }
}

/// Opens a window of `round` with the guard of its region.
fn open(round: &RoundState, window: (usize, Area), guard: Box<dyn Held>) {
    let RoundState { world, rank, lane, number, .. } = round;
    let state = round.state();
    let has_landed = |source| world.has_landed(source, *rank);
    let freed = state.windows.open(*lane, *number, window, guard, &has_landed);
    world.follow(freed);
    state.progress_if_kicked(world);
    // What was parked has landed.
    world.tell(*rank);
}

/// A round that was closed, and has to be ended.
struct Closed {
    round: Arc<RoundState>,
    spawned: bool,
}

impl Drop for Closed {
    fn drop(&mut self) {
        if !self.spawned {
            let RoundState { world, rank, lane, number, .. } = &*self.round;
            world.fail(&[*rank], &Error::SyncDropped { lane: *lane, round: *number });
        }
    }
}

/// A window whose task may not come to run, because one before it failed.
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

impl IntoFuture for Sync {
    type Output = Result<(), Error>;
    type IntoFuture = SyncHandle;

    fn into_future(self) -> SyncHandle {
        let round = Arc::clone(&self.closed.round);
        self.spawn().unwrap_or_else(|error| {
            round.outcome.set(Err(error));
            SyncHandle { round }
        })
    }
}

/// Await it for the end of a round.
///
/// **Completion**: *round ended*: what this rank issued in the round is posted, what others issued
/// for it is delivered, and what the mode adds.
/// **Errors**: arrivals that are not as expected; a target outside every window (R7); if the run
/// looks for it, a location that the round reads and writes (R6); a rank that failed.
#[derive(Clone)]
pub struct SyncHandle {
    round: Arc<RoundState>,
}

impl Future for SyncHandle {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let RoundState { world, outcome, .. } = &*self.round;
        let state = self.round.state();
        state.collectors.post_all();
        if outcome.result().is_none() {
            state.look_while_spare(world, || outcome.result());
        }
        let last_look = || {
            state.look(world);
        };
        match state.waits.wait(outcome, cx.waker(), last_look) {
            Some(result) => Poll::Ready(result),
            None => {
                talpf_runtime::note_wait("a sync");
                Poll::Pending
            }
        }
    }
}
