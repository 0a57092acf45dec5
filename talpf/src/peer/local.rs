//! A rank of this process, as other threads reach it.

use std::sync::{Arc, OnceLock, Weak};

use crossbeam_utils::CachePadded;

use crate::endpoint::Endpoint;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::polling::Sleeper;
use crate::sync::{Doorbell, WaitFlag};
use crate::window::WindowTable;

/// The part of a rank that threads of its own and of its peers share.
pub(crate) struct LocalPeer {
    pub(crate) rank: Rank,
    pub(crate) endpoint: Endpoint,
    /// On a cache line of its own, as the peers change it.
    pub(crate) windows: CachePadded<WindowTable>,
    /// On a cache line of its own, as the peers read it with every post.
    pub(crate) wait_flag: CachePadded<WaitFlag>,
    /// Rung after a change that a sync may wait for.
    pub(crate) doorbell: Doorbell,
    pub(crate) poller: Sleeper,
    /// `true` if other ranks are in other processes.
    pub(super) has_wire: bool,
    engine: OnceLock<Weak<dyn Engine>>,
}

/// The engine of a rank, which any thread may ask for progress.
pub(crate) trait Engine: Send + Sync {
    /// Makes a pass, or leaves that to the thread inside.
    fn progress(&self);
    /// Makes a pass if the doorbell was rung since the last one.
    fn progress_if_rung(&self);
    /// Makes a pass if there is anything to do, a step of `poll_while_spare`.
    fn poll(&self);
    /// Retries the operations of the rank, which has credit again.
    fn resume(&self);
    /// Returns `true` if the rank has ended a round with a sync.
    fn has_ended(&self, lane: LaneNumber, round: Round) -> bool;
}

impl LocalPeer {
    pub(crate) fn new(
        rank: Rank,
        endpoint: Endpoint,
        windows: WindowTable,
        has_wire: bool,
    ) -> Self {
        LocalPeer {
            rank,
            endpoint,
            windows: CachePadded::new(windows),
            wait_flag: CachePadded::new(WaitFlag::new()),
            doorbell: Doorbell::new(),
            poller: Sleeper::default(),
            has_wire,
            engine: OnceLock::new(),
        }
    }

    /// Sets the engine of the rank.
    pub(crate) fn set_engine(&self, engine: Weak<dyn Engine>) {
        let _ = self.engine.set(engine);
    }

    /// Returns the engine of the rank, as long as the run lasts.
    #[inline]
    pub(super) fn engine(&self) -> Option<Arc<dyn Engine>> {
        self.engine.get().and_then(Weak::upgrade)
    }

    /// Makes a pass of the engine, or leaves that to the thread inside.
    pub(crate) fn progress(&self) {
        if let Some(engine) = self.engine() {
            engine.progress();
        }
    }

    /// Makes a pass of the engine if the doorbell was rung since the last one.
    #[inline]
    pub(crate) fn progress_if_rung(&self) {
        if self.doorbell.is_rung()
            && let Some(engine) = self.engine()
        {
            engine.progress_if_rung();
        }
    }

    /// Makes a pass of the engine if there is anything to do.
    pub(crate) fn poll(&self) {
        if let Some(engine) = self.engine() {
            engine.poll();
        }
    }

    /// Retries the operations of the rank, which has credit again.
    #[cold]
    pub(crate) fn resume(&self) {
        if let Some(engine) = self.engine() {
            engine.resume();
        }
    }

    /// Returns `true` if the rank has ended a round with a sync.
    #[cold]
    pub(crate) fn has_ended(&self, lane: LaneNumber, round: Round) -> bool {
        self.engine().is_some_and(|engine| engine.has_ended(lane, round))
    }

    /// Rings the doorbell of the engine: something has changed that a sync may wait for.
    #[inline]
    pub(crate) fn ring_doorbell(&self) {
        self.doorbell.ring();
    }

    /// Wakes the polling task, if it sleeps.
    pub(crate) fn wake_poller(&self) {
        self.poller.wake();
    }
}
