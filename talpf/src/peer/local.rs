//! A rank of this process, as other threads reach it.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use crossbeam_utils::CachePadded;
use ibverbs_sim::{Error as DeviceError, PostError};
use talpf_primitives::{Ordering, fence};
use talpf_runtime::service::{SPARE_POLLS_BESIDE_TASKS, Sleeper};

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::failure::Failure;
use crate::notification::NotificationTable;
use crate::numbers::{LaneNumber, Rank, Round};
use crate::operation::Pending;
use crate::sync::{Doorbell, ResponseFlag, WaitFlag};
use crate::window::{Post, WindowTable};

/// The part of a rank that threads of its own and of its peers share.
pub(crate) struct LocalPeer {
    pub(crate) rank: Rank,
    pub(crate) endpoint: Endpoint,
    /// On a cache line of its own, as the peers change it.
    pub(crate) windows: CachePadded<WindowTable>,
    /// On cache lines of its own, as the peers change it.
    pub(crate) notifications: CachePadded<NotificationTable>,
    /// On a cache line of its own, as the peers read it with every post.
    pub(crate) wait_flag: CachePadded<WaitFlag>,
    /// Rung after a change that a sync may wait for.
    pub(crate) doorbell: Doorbell,
    pub(crate) poller: Sleeper,
    /// Set before a sync waits for responses of other processes.
    pub(crate) awaits_responses: ResponseFlag,
    /// Set before operations are retried, which may wait for credit of other processes then.
    pub(crate) awaits_credit: ResponseFlag,
    /// `true` if other ranks are in other processes.
    pub(crate) has_wire: bool,
    /// `true` if what is posted to the rank arrives later, in virtual time: posters do not advance
    /// its syncs then.
    is_distant: bool,
    /// Read with every notification by peers, for which a count of references, which all would
    /// change, is too slow.
    engine: ArcSwapOption<BoundEngine>,
}

/// The engine of a rank while the run lasts.
struct BoundEngine(Arc<dyn Engine>);

/// The engine of a rank, which any thread may ask for progress.
pub(crate) trait Engine: Send + Sync {
    /// Makes a pass, or leaves that to the thread inside.
    fn progress(&self);
    /// Makes a pass if the doorbell was rung since the last one.
    fn progress_if_rung(&self);
    /// Makes a pass if there is anything to do.
    fn poll(&self);
    /// Retries operations, as a target of this process has credit again.
    fn resume(&self);
    /// Returns `true` if the rank has ended a round with a sync.
    fn has_ended(&self, lane: LaneNumber, round: Round) -> bool;
    /// Returns the operations that wait for a completion.
    fn pending(&self) -> &Pending;
}

impl LocalPeer {
    pub(crate) fn new(
        rank: Rank,
        endpoint: Endpoint,
        windows: WindowTable,
        notifications: NotificationTable,
        has_wire: bool,
    ) -> Self {
        let is_distant = endpoint.context.has_priced_link();
        LocalPeer {
            rank,
            endpoint,
            windows: CachePadded::new(windows),
            notifications: CachePadded::new(notifications),
            wait_flag: CachePadded::new(WaitFlag::new()),
            doorbell: Doorbell::new(),
            poller: Sleeper::default(),
            awaits_responses: ResponseFlag::default(),
            awaits_credit: ResponseFlag::default(),
            has_wire,
            is_distant,
            engine: ArcSwapOption::empty(),
        }
    }

    /// Returns `true` if what is posted to the rank arrives later, in virtual time.
    pub(crate) fn is_distant(&self) -> bool {
        self.is_distant
    }

    /// Returns the largest number of polls of a task that waits.
    #[inline]
    pub(crate) fn spare_polls(&self) -> u32 {
        // A poll of a wire takes about as long as all polls of memory.
        if self.has_wire { 1 } else { SPARE_POLLS_BESIDE_TASKS }
    }

    /// Sets the engine of the rank, until [`LocalPeer::clear_engine`].
    pub(crate) fn set_engine(&self, engine: Arc<dyn Engine>) {
        self.engine.store(Some(Arc::new(BoundEngine(engine))));
    }

    /// Gives up the engine, which keeps this peer, at the end of the run.
    pub(crate) fn clear_engine(&self) {
        self.engine.store(None);
    }

    /// Returns the engine of the rank, as long as the run lasts. Its own rounds keep it.
    pub(crate) fn engine(&self) -> Option<Arc<dyn Engine>> {
        self.engine.load().as_ref().map(|bound| Arc::clone(&bound.0))
    }

    /// Makes a pass of the engine, or leaves that to the thread inside, for a peer that has posted
    /// something.
    pub(super) fn progress(&self) {
        if self.is_distant {
            // What has arrived the polling task finds in its own time.
            if self.doorbell.is_rung() {
                self.wake_poller();
            }
            return;
        }
        if let Some(engine) = &*self.engine.load() {
            engine.0.progress();
        }
    }

    /// Retries the operations of the rank, which has credit again.
    #[cold]
    pub(crate) fn resume(&self) {
        if let Some(engine) = &*self.engine.load() {
            engine.0.resume();
        }
    }

    /// Rings the doorbell if operations of the rank wait for credit of other processes, for a thread that has taken in
    /// messages and fenced since.
    #[inline]
    pub(crate) fn ring_for_credit(&self) {
        if self.awaits_credit.take() {
            // Before the pass that takes the operations (`operation/retry_queue.rs`).
            fence(Ordering::SeqCst);
            self.ring_doorbell();
        }
    }

    /// Returns `true` if the rank has ended a round with a sync.
    #[cold]
    pub(crate) fn has_ended(&self, lane: LaneNumber, round: Round) -> bool {
        self.engine.load().as_ref().is_some_and(|engine| engine.0.has_ended(lane, round))
    }

    /// Rings the doorbell of the engine: something has changed that a sync may wait for.
    #[inline]
    pub(crate) fn ring_doorbell(&self) {
        self.doorbell.ring();
    }

    /// Rings the doorbell for the next poll. With a link model that has to be woken, as in virtual time no
    /// idle worker polls.
    #[inline]
    pub(crate) fn ring_for_poll(&self) {
        self.ring_doorbell();
        if self.is_distant {
            self.wake_poller();
        }
    }

    /// Makes the next pass of the engine fail the run, for callers that hold a lock. `failure` is that
    /// of the rank.
    #[cold]
    pub(crate) fn fail_soon(&self, failure: &Failure, error: &Error) {
        failure.begin(error);
        self.ring_doorbell();
        self.wake_poller();
    }

    /// Returns the outcome of requests that were not posted: they are tried again, or the next pass of the
    /// engine fails the run. `failure` is that of the rank.
    #[cold]
    pub(crate) fn not_posted(&self, failure: &Failure, error: PostError) -> Post {
        if matches!(error.reason, DeviceError::QueueFull { .. }) {
            return Post::Nothing;
        }
        self.fail_soon(failure, &Error::Device(error.reason));
        Post::All
    }

    /// Wakes the polling task, if it sleeps.
    pub(crate) fn wake_poller(&self) {
        self.poller.wake();
    }

    /// Wakes the polling task, if it sleeps and a parked operation waits for something that nothing
    /// announces: for another one to land, or for room to be posted. For a thread that has parked one.
    #[cold]
    pub(crate) fn wake_poller_if_delayed(&self) {
        if self.windows.has_delayed() || self.notifications.has_delayed() {
            self.wake_poller();
        }
    }
}
