//! Syncs of two successive rounds that open the same slots: to gets in the first one, to puts in
//! the second one.
//!
//! A slot has one task for both rounds, with the whole array as `inout`: as the first round ends,
//! its window passes the guard on to the window of the second one. So what waits for the array is
//! written after both rounds, and no task runs between them.

use std::sync::Arc;

use talpf_runtime::Region;

use super::builder::begin;
use super::opening::{Unopened, open};
use super::receiver::Receiver;
use super::{SyncHandle, SyncMode};
use crate::error::Error;
use crate::held_guard::{HeldGuard, OtherGuard};
use crate::sender::RoundState;
use crate::slot::Slot;
use crate::window::{Area, Areas, Kind};

/// Spawns the syncs of two closed rounds, of which `first` comes before `second`. Returns their
/// handles.
///
/// **Errors**: as [`SyncBuilder::spawn`](super::SyncBuilder::spawn).
pub(crate) fn spawn_successive(
    receiver: &Receiver,
    mode: SyncMode,
    (first, second): (&Arc<RoundState>, &Arc<RoundState>),
    slots: &[Arc<Slot>],
) -> Result<(SyncHandle, SyncHandle), Error> {
    let fails = |error: &Error| receiver.sender.fail(error);
    first.check().and_then(|()| second.check()).inspect_err(fails)?;
    for (round, kind) in [(first, Kind::Read), (second, Kind::Write)] {
        declare(round, kind, slots);
    }
    for (number, slot) in slots.iter().enumerate() {
        let windows = [Kind::Read, Kind::Write].map(|kind| (number, area_of(slot, kind)));
        spawn_opening(first, second, windows, &slot.whole()).inspect_err(fails)?;
    }
    for round in [first, second] {
        begin(receiver, round, mode, !slots.is_empty(), None).inspect_err(fails)?;
    }
    Ok((SyncHandle { round: Arc::clone(first) }, SyncHandle { round: Arc::clone(second) }))
}

fn area_of(slot: &Slot, kind: Kind) -> Area {
    Area { slot: slot.number, rect: slot.whole().rect(), cols: slot.cols(), kind }
}

/// Declares the windows of a round, which do not overlap.
fn declare(round: &RoundState, kind: Kind, slots: &[Arc<Slot>]) {
    let mut areas = Areas::default();
    slots.iter().for_each(|slot| areas.push(area_of(slot, kind)));
    let _ = areas.sort();
    round.declare(&mut areas);
}

/// Spawns the task that opens a window of the first round, and then that of the second one.
fn spawn_opening(
    first: &Arc<RoundState>,
    second: &Arc<RoundState>,
    [of_first, of_second]: [(usize, Area); 2],
    region: &Region<'_, ()>,
) -> Result<(), Error> {
    let task = first.sender.group.task("expose").communicates().inline().inout(region);
    let mut unopened = Unopened::new(first);
    let round = Arc::clone(second);
    Ok(task.spawn(move |guard| {
        let passed_on = PassedOn { guard: Some(guard.into()), round, window: of_second };
        let guard = HeldGuard::Other(Box::new(passed_on));
        open(unopened.opened(), false, [(of_first, guard)]);
    })?)
}

/// Guard of a window that opens a window of the next round as it is dropped.
struct PassedOn {
    guard: Option<HeldGuard>,
    round: Arc<RoundState>,
    window: (usize, Area),
}

impl OtherGuard for PassedOn {
    fn poison(mut self: Box<Self>, reason: &str) {
        if let Some(guard) = self.guard.take() {
            guard.poison(reason);
        }
    }
}

impl Drop for PassedOn {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            open(&self.round, false, [(self.window, guard)]);
        }
    }
}
