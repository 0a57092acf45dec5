//! The polling task: one a rank, an ordinary task that polls the completion queues, advances syncs,
//! and suspends itself in between.
//!
//! An adaptive polling task lets workers that have nothing else to do poll in its place; when none
//! is idle, it polls from time to time. While a task of the rank is suspended until a sync ends,
//! which its peers advance (`peer/notify.rs`), it polls seldom: every poll takes cache lines away
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

use crate::config::{Config, PollingFrequency};
use crate::error::Error;
use crate::processes::Processes;
use crate::sync::Receiver;

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
    receiver: Arc<Receiver>,
    frequency: PollingFrequency,
    /// `true` if the link has timers, for lost packets.
    has_timers: bool,
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
    pub(crate) fn new(receiver: &Arc<Receiver>, config: &Config) -> Arc<Self> {
        Arc::new(Poller {
            receiver: Arc::clone(receiver),
            frequency: config.polling,
            // Only a link with faults has timers.
            has_timers: config.device.fault.is_some(),
            passes: AtomicU32::new(0),
            empty: EmptyPolls::new(),
        })
    }

    /// Runs the polling task, which ends when the program and all its operations have ended.
    pub(crate) async fn poll(self: Arc<Self>) {
        let (receiver, sender) = (&*self.receiver, &self.receiver.sender);
        loop {
            let this = Arc::clone(&self);
            match sender.group.idle_until(LATEST, move || this.pass()).await {
                Next::Pause(period) => sender.group.wait_for(period).await,
                Next::Sleep => {
                    self.empty.end();
                    sender.batches.post_all();
                    if let Err(error) = sleep(receiver, self.has_timers).await {
                        sender.fail(&error);
                    }
                }
                Next::End => return,
            }
        }
    }

    /// Polls once. Returns the next action; `None` to poll again as soon as a worker is idle.
    fn pass(&self) -> Option<Next> {
        let (receiver, sender, own) = (&*self.receiver, &self.receiver.sender, self.receiver.own());
        let has_timers = self.has_timers;
        // No completion announces packets that have come over a wire.
        let has_wire = receiver.processes().is_some();
        if receiver.stop.load(Ordering::SeqCst) && receiver.is_quiet(has_timers) {
            return Some(Next::End);
        }
        if has_timers {
            own.endpoint.context.advance(sender.group.clock().now_ns());
        }
        let found = receiver.poll() > 0;
        let passes = self.passes.load(Ordering::Relaxed).wrapping_add(1);
        self.passes.store(passes, Ordering::Relaxed);
        if passes.is_multiple_of(PASSES) {
            sender.batches.post_unchanged();
        }
        let works = receiver.syncs() > 0 || sender.outstanding() > 0;
        let peers_poll = !has_wire && own.wait_flag.is_set() && !receiver.has_unannounced();
        let yields = receiver.processes().is_some_and(Processes::are_oversubscribed);
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
            let now_ns = || sender.group.clock().now_ns();
            self.empty.last(patience, peers_poll || yields, now_ns)
        };
        match self.frequency {
            PollingFrequency::Every(period) if works => {
                sender.batches.post_all();
                Some(Next::Pause(period))
            }
            PollingFrequency::Adaptive if !is_over && peers_poll => Some(Next::Pause(LATEST)),
            PollingFrequency::Adaptive if !is_over => {
                if yields && !found {
                    std::thread::yield_now();
                }
                None
            }
            _ if has_timers || has_wire || receiver.has_unannounced() => {
                Some(Next::Pause(RETRY_PERIOD))
            }
            _ => Some(Next::Sleep),
        }
    }
}

/// Sleeps until a completion or a wake. Arms the channel first and polls once more after that, so
/// that no event in between is missed.
async fn sleep(receiver: &Receiver, has_timers: bool) -> Result<(), Error> {
    let own = receiver.own();
    own.poller.fall_asleep();
    own.endpoint.arrived.request_notify(false)?;
    own.endpoint.sent.request_notify(false)?;
    let found = receiver.progress().unwrap_or(1) > 0;
    let over = || receiver.stop.load(Ordering::SeqCst) && receiver.is_quiet(has_timers);
    if !found
        && !over()
        && !receiver.has_unannounced()
        && !receiver.sender.batches.is_filled_at_last()
    {
        let mut notified = pin!(own.endpoint.channel.notified());
        poll_fn(|cx| {
            let is_woken = own.poller.register(cx.waker());
            if is_woken || notified.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            talpf_runtime::note_wait("a completion");
            Poll::Pending
        })
        .await;
    }
    own.poller.get_up();
    Ok(())
}
