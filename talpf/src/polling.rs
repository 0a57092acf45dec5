//! The polling task: one a rank, an ordinary task that looks at the completion queues, carries
//! syncs on, and suspends itself in between.
//!
//! Adaptive, workers that have nothing else to do look in its place; when none has, it looks a few
//! times in a while. While a task of the rank is suspended until a sync ends, which those who put
//! carry on (`sync/notify.rs`), it looks seldom: every look takes cache lines away from them. After
//! it has looked in vain for long enough it arms the completion channel and sleeps: a completion, a
//! new sync or a failure wakes it.
//!
//! **Source**: thesis, chapter 6.3.

mod empty_polls;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use talpf_primitives::{AtomicBool, AtomicU32, Mutex, Ordering};

use crate::config::PollingFrequency;
use crate::error::Error;
use crate::numbers::Rank;
use crate::world::{RankState, World};

use self::empty_polls::EmptyPolls;

/// Patience of a rank that waits for nothing.
const PATIENCE_WITHOUT_WORK: Duration = Duration::from_micros(10);
/// Patience while peers take in what they bring, in polls that are apart.
const PATIENCE_WHILE_PEERS_POLL: Duration = Duration::from_millis(1);
/// Passes between looks at puts that are collected: every look takes their cache line away.
const PASSES: u32 = 32;
/// How often the task looks at the timers of a link with faults, and at what nobody announces.
const RETRY_PERIOD: Duration = Duration::from_micros(100);
/// How long the task waits for an idle worker before it looks all the same.
const LATEST: Duration = Duration::from_micros(20);

/// Wakes a polling task that sleeps.
#[derive(Default)]
pub(crate) struct Sleeper {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Sleeper {
    /// Whether it sleeps or is about to: then it looks at everything once more.
    #[inline]
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }

    /// From here on it is woken. The task looks at everything once more before it sleeps.
    pub(crate) fn fall_asleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// **Cost**: a load when the task does not sleep.
    pub(crate) fn wake(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            // First, for a task that is about to leave its waker.
            self.asleep.store(false, Ordering::SeqCst);
            let waker = self.waker.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// What the polling task does, and idle workers in its place.
pub(crate) struct Poller {
    world: Arc<World>,
    rank: Rank,
    passes: AtomicU32,
    empty: EmptyPolls,
}

/// What the task does next.
enum Next {
    Pause(Duration),
    /// Sleeps until something happens.
    Sleep,
    End,
}

impl Poller {
    pub(crate) fn new(world: &Arc<World>, rank: Rank) -> Arc<Self> {
        let world = Arc::clone(world);
        Arc::new(Poller { world, rank, passes: AtomicU32::new(0), empty: EmptyPolls::new() })
    }

    /// The body of the polling task. It ends when the program has, and what was under way with it.
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

    /// Looks. What to do next, but to look again as soon as a worker has nothing else to do.
    fn pass(&self) -> Option<Next> {
        let (world, state) = (&*self.world, self.world.rank(self.rank));
        // Only a link with faults has timers: what it lost is asked for again after a time.
        let has_timers = world.config.device.fault.is_some();
        // Nothing says that something has come over a wire.
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
        let peers_poll = !has_wire && state.waits.is_set() && !state.has_unannounced();
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

/// Sleeps until something happens. Arms first and looks again after that, so that nothing which
/// happens in between is slept through.
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
            *state.poller.waker.lock() = Some(cx.waker().clone());
            let woken = !state.poller.asleep.load(Ordering::SeqCst);
            if woken || notified.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            talpf_runtime::note_wait("a completion");
            Poll::Pending
        })
        .await;
    }
    state.poller.asleep.store(false, Ordering::SeqCst);
    state.poller.waker.lock().take();
    Ok(())
}
