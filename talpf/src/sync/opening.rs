//! The opening of windows, once their regions are free.

use std::sync::Arc;

use talpf_primitives::Mutex;
use talpf_runtime::Region;

use crate::error::Error;
use crate::held_guard::HeldGuard;
use crate::sender::RoundState;
use crate::window::{Area, HasLanded, Kind, SendTicket, Ticket};

/// A window to be opened: its number, its area, and the guard of its region.
type Opening = ((usize, Area), HeldGuard);

/// Most windows that wait to be opened together.
const GATHERED: usize = 128;

/// Windows of one sync that open together, as their regions are free while the tasks of the others are spawned. Peers
/// that put into them meanwhile would fight for the lock of the windows.
pub(super) struct Gathering {
    round: Arc<RoundState>,
    /// `None` once all tasks are spawned.
    gathered: Mutex<Option<Vec<Opening>>>,
}

impl Gathering {
    /// Gathers windows of a round, which has so many.
    pub(super) fn begin(round: &Arc<RoundState>, windows: usize) -> Arc<Self> {
        let gathered = Mutex::new(Some(Vec::with_capacity(windows.min(GATHERED))));
        Arc::new(Gathering { round: Arc::clone(round), gathered })
    }

    /// Spawns the task that opens a window, alone or together with others, once its region is free.
    pub(super) fn spawn_opening(
        self: &Arc<Self>,
        window: (usize, Area),
        region: &Region<'_, ()>,
    ) -> Result<(), Error> {
        let (gathering, mut unopened) = (Arc::clone(self), Unopened::new(&self.round));
        spawn_with_guard(&self.round, window.1.kind, region, move |guard| {
            unopened.opened();
            gathering.open((window, guard));
        })
    }

    /// Opens a window, alone or together with others.
    pub(super) fn open(&self, window: Opening) {
        let mut gathered = self.gathered.lock();
        let Some(windows) = &mut *gathered else {
            drop(gathered);
            return open(&self.round, false, [window]);
        };
        windows.push(window);
        if windows.len() == GATHERED {
            let windows = std::mem::replace(windows, Vec::with_capacity(GATHERED));
            drop(gathered);
            open(&self.round, false, windows);
        }
    }

    /// Opens the windows that are gathered, and gathers no more.
    pub(super) fn end(&self) {
        let gathered = self.gathered.lock().take().unwrap_or_default();
        if !gathered.is_empty() {
            open(&self.round, false, gathered);
        }
    }
}

/// Spawns the task that opens a window, perhaps the only one, once its region is free.
pub(super) fn spawn_opening(
    round: &Arc<RoundState>,
    window: (usize, Area),
    is_only: bool,
    region: &Region<'_, ()>,
) -> Result<(), Error> {
    let mut unopened = Unopened::new(round);
    spawn_with_guard(round, window.1.kind, region, move |guard| {
        open(unopened.opened(), is_only, [(window, guard)]);
    })
}

/// Spawns a task that takes the guard of the region of a window.
fn spawn_with_guard(
    round: &RoundState,
    kind: Kind,
    region: &Region<'_, ()>,
    mut take: impl FnMut(HeldGuard) + Send + 'static,
) -> Result<(), Error> {
    let task = round.sender.group.task("expose").communicates().inline();
    match kind {
        Kind::Update | Kind::Write => {
            task.inout(region).spawn(move |guard| take(guard.into()))?;
        }
        Kind::Read => task.input(region).spawn(move |guard| take(guard.into()))?,
    }
    Ok(())
}

/// Opens windows of `round`, perhaps the only one.
pub(super) fn open(round: &RoundState, is_only: bool, windows: impl IntoIterator<Item = Opening>) {
    let RoundState { sender, rank, lane, number, .. } = round;
    let (own, peers) = (&sender.own, &sender.peers);
    let has_landed = |source| peers.has_landed(source, *rank);
    let send_ticket = |ticket: Ticket| {
        let source = peers.remote(ticket.claim.source);
        source.is_some_and(|source| source.give_ticket(*rank, ticket))
    };
    let links = (&has_landed as HasLanded<'_>, &send_ticket as SendTicket<'_>);
    let (freed, is_declared) = own.windows.open((*lane, *number), windows, is_only, links);
    if is_declared {
        round.note_declared();
    }
    peers.run_deferred(*rank, freed);
    round.progress_if_rung();
    // Parked operations have landed.
    peers.notify(*rank);
}

/// A window whose task has not run yet, and does not run if a task before it fails.
pub(super) struct Unopened {
    round: Arc<RoundState>,
    failed: bool,
}

impl Unopened {
    pub(super) fn new(round: &Arc<RoundState>) -> Self {
        Unopened { round: Arc::clone(round), failed: true }
    }

    /// Returns the round, whose window is about to open.
    #[inline]
    pub(super) fn opened(&mut self) -> &RoundState {
        self.failed = false;
        &self.round
    }
}

impl Drop for Unopened {
    fn drop(&mut self) {
        if self.failed {
            let RoundState { sender, lane, number, .. } = &*self.round;
            sender.fail(&Error::NotOpened { lane: *lane, round: *number });
        }
    }
}
