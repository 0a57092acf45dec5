//! Declaration of syncs.

use std::future::IntoFuture;
use std::sync::Arc;

use bytemuck::Pod;
use talpf_runtime::{In, InOut, Once, PendingEvent, Region};
use talpf_traces::Event;

use super::active_sync::{ActiveSync, Stage};
use super::declared_windows::{DeclaredWindow, DeclaredWindows, Opens, add_areas_of};
use super::opening::{Gathering, open, spawn_opening};
use super::receiver::Receiver;
use super::{SyncHandle, SyncMode};
use crate::double_buffered_channel::BufferGuards;
use crate::error::Error;
use crate::iteration::Iteration;
use crate::lane_address::LaneAddress;
use crate::sender::RoundState;
use crate::window::{Area, Areas, Kind};

/// Number of windows for which room is made beside each one that there is, if there is none for another one.
const GROWTH: usize = 3;

/// A builder of a sync, with its mode and the windows in which operations of peers may land.
///
/// Nothing happens before [`SyncBuilder::spawn`] or an `await`, which close the open round of the
/// lane: operations that are issued while a sync is being declared are of its round. Tasks that use
/// a region of a window wait for the end of the round by their dependencies.
///
/// A sync declared in a [`OneSided`](crate::OneSided) scope may run in every step of an iteration
/// ([`EachStep`]), and has no handle.
#[must_use = "a sync does nothing, and its round stays open, until it is spawned or awaited"]
pub struct SyncBuilder<'s, 'r, S = Once> {
    pub(super) lane: &'s LaneAddress,
    pub(super) mode: SyncMode,
    pub(super) windows: DeclaredWindows<'r>,
    /// Guards of the double-buffered channel that the sync belongs to, if any.
    buffer_guards: Option<&'s Arc<BufferGuards>>,
    pub(super) runs: S,
}

/// Said of a sync that may run in each step of an iteration.
#[derive(Clone, Copy, Debug)]
pub struct EachStep<'s, 'r>(pub(crate) Option<Iteration<'s, 'r>>);

impl<'s, 'r> SyncBuilder<'s, 'r> {
    pub(crate) fn new(lane: &'s LaneAddress, mode: SyncMode) -> Self {
        let windows = DeclaredWindows::new();
        SyncBuilder { lane, mode, windows, buffer_guards: None, runs: Once }
    }

    /// Declares the sync of a double-buffered channel, at whose end `buffer_guards` are released.
    pub(crate) fn of_channel(
        lane: &'s LaneAddress,
        mode: SyncMode,
        buffer_guards: &'s Arc<BufferGuards>,
    ) -> Self {
        SyncBuilder { buffer_guards: Some(buffer_guards), ..SyncBuilder::new(lane, mode) }
    }
}

impl<'s, 'r, S> SyncBuilder<'s, 'r, S> {
    /// Changes how often the sync runs.
    pub(crate) fn running<R>(self, runs: R) -> SyncBuilder<'s, 'r, R> {
        let SyncBuilder { lane, mode, windows, buffer_guards, .. } = self;
        SyncBuilder { lane, mode, windows, buffer_guards, runs }
    }

    /// Lets puts and atomics of this round land in `region`, which is of an array registered with
    /// [`Context::register_global`](crate::Context::register_global).
    ///
    /// **Completion**: a task of the sync has the region as `inout`: the window opens when earlier
    /// tasks have released it, and later tasks get it when the round has ended.
    /// **Errors**: at [`SyncBuilder::spawn`].
    #[inline]
    pub fn window<T: Pod + Send + Sync, D: Send + 'static>(
        self,
        region: &Region<'r, T, D>,
    ) -> Self {
        self.push(Kind::Write, Opens::Task(region.without_data()))
    }

    /// Lets gets of this round read `region`, which is of an array registered with
    /// [`Context::register_global`](crate::Context::register_global).
    ///
    /// **Completion**: a task of the sync has the region as `input` until the round has ended, so
    /// other tasks may read it meanwhile.
    /// **Errors**: at [`SyncBuilder::spawn`].
    #[inline]
    pub fn expose<T: Pod + Send + Sync, D: Send + 'static>(
        self,
        region: &Region<'r, T, D>,
    ) -> Self {
        self.push(Kind::Read, Opens::Task(region.without_data()))
    }

    #[inline]
    fn push(mut self, kind: Kind, opens: Opens<'r>) -> Self {
        let windows = &mut self.windows;
        if windows.len() == windows.capacity() {
            windows.reserve_exact(GROWTH * windows.len());
        }
        windows.push(DeclaredWindow { kind, opens });
        self
    }
}

impl<'r> SyncBuilder<'_, 'r> {
    /// Opens a window as [`SyncBuilder::window`], for a body that has the guard of the region
    /// already: it opens as the sync is spawned, and drops the guard when the round has ended.
    pub fn window_with<T: Pod + Send + Sync, D: Send + 'static>(self, guard: InOut<T, D>) -> Self {
        let (array, rect) = (guard.array_id(), guard.rect());
        self.push(Kind::Write, Opens::Now { guard: guard.into(), array, rect })
    }

    /// Exposes a region as [`SyncBuilder::expose`], for a body that has its guard already, which is
    /// dropped when the round has ended.
    pub fn expose_with<T: Pod + Send + Sync, D: Send + 'static>(self, guard: In<T, D>) -> Self {
        let (array, rect) = (guard.array_id(), guard.rect());
        self.push(Kind::Read, Opens::Now { guard: guard.into(), array, rect })
    }

    /// Closes the open round of the lane and spawns its sync, which the group waits for as for a
    /// task.
    ///
    /// **Completion**: returns at once. The handle, if it is awaited, ends with the round; tasks
    /// that use the regions of windows wait for the round without it.
    /// **Errors**: a window on an array that was not registered with `register_global`, or outside
    /// its array; a window that overlaps another window or exposed region of this sync, for which it
    /// would wait; a lane that an iteration uses; too many syncs of the lane that have not ended.
    /// Each of them fails the run.
    pub fn spawn(mut self) -> Result<SyncHandle, Error> {
        let round = self.lane.close();
        self.spawn_of(&round)?;
        Ok(SyncHandle { round })
    }

    /// Spawns the sync of the closed round.
    fn spawn_of(&mut self, round: &Arc<RoundState>) -> Result<(), Error> {
        let fails = |error: &Error| round.sender.fail(error);
        let mut areas = Areas::with_capacity(self.windows.len());
        self.find_areas(round, &mut areas).inspect_err(fails)?;
        // A few windows open before they are declared: puts that arrive earlier are parked, at a
        // cost to their posters. Operations find one of many windows only once all are declared.
        let many = areas.are_many();
        if many {
            round.declare(&mut areas);
        }
        let is_held = self.open_windows(round, areas.as_slice(), many).inspect_err(fails)?;
        if !many && !round.is_declared() {
            round.declare(&mut areas);
        }
        let buffer_guards = self.buffer_guards.cloned();
        begin(&self.lane.receiver, round, self.mode, is_held, buffer_guards).inspect_err(fails)
    }

    /// Opens the windows, or spawns the tasks that do: `many` together. Returns `true` if a task of a window that is
    /// written to holds the group.
    fn open_windows(
        &mut self,
        round: &Arc<RoundState>,
        areas: &[Area],
        many: bool,
    ) -> Result<bool, Error> {
        if !many {
            return self.open_each(round, areas, None);
        }
        let gathering = Gathering::begin(round, areas.len());
        let is_held = self.open_each(round, areas, Some(&gathering));
        gathering.end();
        is_held
    }

    fn open_each(
        &mut self,
        round: &Arc<RoundState>,
        areas: &[Area],
        gathering: Option<&Arc<Gathering>>,
    ) -> Result<bool, Error> {
        let mut is_held = false;
        let is_only = areas.len() == 1;
        for (window, area) in self.windows.drain(..).zip(areas.iter().copied().enumerate()) {
            match (window.opens, gathering) {
                (Opens::Now { guard, .. }, None) => open(round, is_only, [(area, guard)]),
                (Opens::Now { guard, .. }, Some(gathering)) => gathering.open((area, guard)),
                (Opens::Task(region), gathering) => {
                    match gathering {
                        None => spawn_opening(round, area, is_only, &region)?,
                        Some(gathering) => gathering.spawn_opening(area, &region)?,
                    }
                    is_held |= window.kind != Kind::Read;
                }
            }
        }
        Ok(is_held)
    }

    /// Finds the areas of all windows before the first one opens. After an error the guards of all
    /// windows are given up.
    fn find_areas(&mut self, round: &RoundState, areas: &mut Areas) -> Result<(), Error> {
        let (slots, of) = (&round.sender.slots, (round.lane, round.number));
        let found = round.check().and_then(|()| add_areas_of(&self.windows, slots, of, areas));
        if let Err(error) = &found {
            for window in self.windows.drain(..) {
                if let Opens::Now { guard, .. } = window.opens {
                    guard.poison(&error.to_string());
                }
            }
        }
        found
    }
}

/// Begins the sync of a closed round whose windows are declared. If no task of a window that is
/// written to holds the group, an event does.
pub(super) fn begin(
    receiver: &Receiver,
    round: &Arc<RoundState>,
    mode: SyncMode,
    is_held: bool,
    buffer_guards: Option<Arc<BufferGuards>>,
) -> Result<(), Error> {
    let RoundState { sender, rank, lane, number, .. } = &**round;
    let event = (!is_held).then(|| PendingEvent::of_group(&sender.group, "sync")).transpose()?;
    if sender.tracer.is_traced() {
        let (rank, round, traced) = (rank.0, number.0, mode.traced());
        let expected = receiver.expected(mode, *lane);
        let lane = u32::from(lane.0);
        sender.group.trace(|_| Event::SyncBegin { rank, lane, round, mode: traced, expected });
    }
    let (round, stage) = (Arc::clone(round), Stage::Posting);
    receiver.begin(ActiveSync { round, mode, stage, expected: 0, event, buffer_guards });
    let own = receiver.own();
    // Checked first, as this costs no fence.
    if own.poller.is_asleep() {
        own.wake_poller();
    }
    Ok(())
}

impl IntoFuture for SyncBuilder<'_, '_> {
    type Output = Result<(), Error>;
    type IntoFuture = SyncHandle;

    /// Spawns the sync. The future returns the errors of [`SyncBuilder::spawn`].
    fn into_future(mut self) -> SyncHandle {
        let round = self.lane.close();
        if let Err(error) = self.spawn_of(&round) {
            // No waker is registered yet.
            let _ = round.outcome.set(Err(error));
        }
        SyncHandle { round }
    }
}
