//! The polling task: one a rank, an ordinary task that polls the completion queues, advances syncs,
//! and suspends itself in between.
//!
//! An adaptive polling task lets workers that have nothing else to do poll in its place; when none
//! is idle, it polls from time to time. While a task of the rank is suspended until a sync ends,
//! which its peers advance (`sync/notify.rs`), it polls seldom: every poll takes cache lines away
//! from them. After it has polled without success for long enough it arms the completion channel
//! and sleeps: a completion, a new sync or a failure wakes it.
//!
//! **Source**: thesis, chapter 6.3.

mod empty_polls;
mod sleeper;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use talpf_primitives::{AtomicU32, Ordering};

use crate::config::PollingFrequency;
use crate::error::Error;
use crate::numbers::Rank;
use crate::world::{RankState, World};

use self::empty_polls::EmptyPolls;
pub(crate) use self::sleeper::Sleeper;

/// Time of polls without success before the task sleeps, of a rank that waits for nothing.
const PATIENCE_WITHOUT_WORK: Duration = Duration::from_micros(10);
/// The same time while peers advance the syncs of the rank.
const PATIENCE_WHILE_PEERS_POLL: Duration = Duration::from_millis(1);
/// Number of passes between polls of batches: every poll takes their cache line away.
const PASSES: u32 = 32;
/// Period of polls of the timers of a link with faults, and of changes without a completion.
const RETRY_PERIOD: Duration = Duration::from_micros(100);
/// Longest wait for an idle worker to poll in place of the task.
const LATEST: Duration = Duration::from_micros(20);

/// The poller of a rank, run by the polling task and by idle workers in its place.
pub(crate) struct Poller {
    world: Arc<World>,
    rank: Rank,
    passes: AtomicU32,
    empty: EmptyPolls,
}

/// The next action of the polling task.
enum Next {
    Pause(Duration),
    /// Sleep until a completion or a wake.
    Sleep,
    End,
}

impl Poller {
    pub(crate) fn new(world: &Arc<World>, rank: Rank) -> Arc<Self> {
        let world = Arc::clone(world);
        Arc::new(Poller { world, rank, passes: AtomicU32::new(0), empty: EmptyPolls::new() })
    }

    /// Runs the polling task, which ends when the program and all its operations have ended.
    pub(crate) async fn poll(self: Arc<Self>) {
        let (world, state) = (&self.world, self.world.rank(self.rank));
        loop {
            let this = Arc::clone(&self);
            match state.group.idle_until(LATEST, move || this.pass()).await {
                Next::Pause(period) => state.group.wait_for(period).await,
                Next::Sleep => {
                    self.empty.end();
                    state.batches.post_all();
                    if let Err(error) = sleep(state, world).await {
                        world.fail(&[self.rank], &error);
                    }
                }
                Next::End => return,
            }
        }
    }

    /// Polls once. Returns the next action; `None` to poll again as soon as a worker is idle.
    fn pass(&self) -> Option<Next> {
        let (world, state) = (&*self.world, self.world.rank(self.rank));
        // Only a link with faults has timers, for lost packets.
        let has_timers = world.config.device.fault.is_some();
        // No completion announces packets that have come over a wire.
        let has_wire = world.processes().is_some();
        if state.stop.load(Ordering::SeqCst) && state.is_quiet(has_timers) {
            return Some(Next::End);
        }
        if has_timers {
            state.endpoint.context.advance(state.group.clock().now_ns());
        }
        let found = state.poll(world) > 0;
        let passes = self.passes.load(Ordering::Relaxed).wrapping_add(1);
        self.passes.store(passes, Ordering::Relaxed);
        if passes.is_multiple_of(PASSES) {
            state.batches.post_unchanged();
        }
        let works = state.engine.syncs() > 0 || state.outstanding() > 0;
        let peers_poll = !has_wire && state.wait_flag.is_set() && !state.has_unannounced();
        let yields = world.processes().is_some_and(|others| others.are_oversubscribed());
        let patience = match () {
            () if yields => PollingFrequency::PATIENCE_OVERSUBSCRIBED,
            () if has_wire => PollingFrequency::PATIENCE_WITH_WIRE,
            () if peers_poll => PATIENCE_WHILE_PEERS_POLL,
            () if works => PollingFrequency::PATIENCE,
            () => PATIENCE_WITHOUT_WORK,
        };
        let is_over = if found {
            self.empty.end();
            false
        } else {
            let now_ns = || state.group.clock().now_ns();
            self.empty.last(patience, peers_poll || yields, now_ns)
        };
        match world.config.polling {
            PollingFrequency::Every(period) if works => {
                state.batches.post_all();
                Some(Next::Pause(period))
            }
            PollingFrequency::Adaptive if !is_over && peers_poll => Some(Next::Pause(LATEST)),
            PollingFrequency::Adaptive if !is_over => {
                if yields && !found {
                    std::thread::yield_now();
                }
                None
            }
            _ if has_timers || has_wire || state.has_unannounced() => {
                Some(Next::Pause(RETRY_PERIOD))
            }
            _ => Some(Next::Sleep),
        }
    }
}

/// Sleeps until a completion or a wake. Arms the channel first and polls once more after that, so
/// that no event in between is missed.
async fn sleep(state: &RankState, world: &World) -> Result<(), Error> {
    state.poller.fall_asleep();
    state.endpoint.arrived.request_notify(false)?;
    state.endpoint.sent.request_notify(false)?;
    let found = state.progress(world).unwrap_or(1) > 0;
    let has_timers = world.config.device.fault.is_some();
    let over = || state.stop.load(Ordering::SeqCst) && state.is_quiet(has_timers);
    if !found && !over() && !state.has_unannounced() && !state.batches.is_filled_at_last() {
        let mut notified = pin!(state.endpoint.channel.notified());
        poll_fn(|cx| {
            let is_woken = state.poller.register(cx.waker());
            if is_woken || notified.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            talpf_runtime::note_wait("a completion");
            Poll::Pending
        })
        .await;
    }
    state.poller.get_up();
    Ok(())
}
