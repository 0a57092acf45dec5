//! The polling task: one a rank, a [`Service`] that polls the completion queues and advances syncs.
//!
//! While a task of the rank is suspended until a sync ends, which its peers advance
//! (`peer/notify.rs`), it polls seldom: every poll takes cache lines away from them. It sleeps on the
//! completion channel: a completion, a new sync or a failure wakes it, and so does the event of a rail
//! to other processes. Nothing announces the packets of a rail without an event, the timers of a link
//! with faults or with a model in real time, and changes such as new room in a send queue: it naps then instead.
//!
//! **Source**: thesis, chapter 6.3.

use std::future::Future;
use std::sync::Arc;

use talpf_primitives::{AtomicBool, AtomicU32, Ordering};
use talpf_runtime::service::{Demand, Pace, Polled, Service, Sleeper, serve};

use crate::config::{Config, PollingFrequency};
use crate::error::Error;
use crate::processes::{Processes, Sleep};
use crate::sender::Sender;
use crate::sync::Receiver;

/// Number of passes between polls of batches: every poll takes their cache line away.
const PASSES: u32 = 32;
/// Number of naps after which a task that something has kept awake finds out whether it may sleep again, as
/// that costs as much as a sleep: 3 ms, or up to 16 after a tenth of a second.
const NAPS: u32 = 16;

/// The poller of a rank, run by the polling task and by idle workers in its place.
struct Poller {
    receiver: Arc<Receiver>,
    /// `true` if the link has timers: for lost packets, or for messages that it holds in real time.
    has_timers: bool,
    /// `true` if the program asks for a pace.
    is_paced: bool,
    passes: AtomicU32,
    /// `true` after a sleep that something has prevented which the event of the rail does not announce,
    /// until a poll finds something or a nap begins without it.
    is_kept_awake: AtomicBool,
    /// Number of naps.
    naps: AtomicU32,
}

/// Runs the polling task of a rank, which ends when the program and all its operations have ended.
pub(crate) fn poll(
    receiver: &Arc<Receiver>,
    config: &Config,
) -> impl Future<Output = ()> + Send + use<> {
    let pace = match config.polling {
        PollingFrequency::Adaptive => Pace::Adaptive,
        PollingFrequency::Every(period) => Pace::Naps { least: period, most: period },
    };
    let poller = Poller {
        receiver: Arc::clone(receiver),
        has_timers: config.device.fault.is_some() || config.has_link_in_real_time(),
        is_paced: config.polling != PollingFrequency::Adaptive,
        passes: AtomicU32::new(0),
        is_kept_awake: AtomicBool::new(false),
        naps: AtomicU32::new(0),
    };
    serve(receiver.sender.group.clone(), poller, pace)
}

impl Service for Poller {
    const EVENT: &'static str = "a completion";

    fn poll(&self) -> Option<Polled> {
        let (receiver, sender, own) = (&*self.receiver, &self.receiver.sender, self.receiver.own());
        if self.is_over() {
            return None;
        }
        if self.has_timers {
            own.endpoint.context.advance(sender.group.clock().now_ns());
        }
        let found = receiver.poll();
        if !found && let Some(others) = receiver.processes() {
            others.leave_to_thread();
        }
        let passes = self.passes.load(Ordering::Relaxed).wrapping_add(1);
        self.passes.store(passes, Ordering::Relaxed);
        if passes.is_multiple_of(PASSES) {
            sender.batches.post_unchanged();
        }
        let processes = receiver.served_processes();
        let announced = processes.is_none_or(|others| self.are_announced(others, found))
            && !self.has_timers
            && !receiver.has_unannounced()
            && !self.awaits_control();
        let waits_for_notifications = own.notifications.is_waiting();
        let demand = match () {
            () if processes.is_some() && !self.is_paced => Demand::Processes,
            () if announced && (own.wait_flag.is_set() || waits_for_notifications) => {
                Demand::Others
            }
            () if receiver.syncs() > 0 || sender.outstanding() > 0 => Demand::Polls,
            () if waits_for_notifications => Demand::Polls,
            () => Demand::Nothing,
        };
        Some(Polled { found, demand, announced })
    }

    fn sleeper(&self) -> &Sleeper {
        &self.receiver.own().poller
    }

    fn is_oversubscribed(&self) -> bool {
        self.receiver.processes().is_some_and(Processes::are_oversubscribed)
    }

    fn follows_others(&self) -> bool {
        // A doorbell that is rung after a poll is for requests that the device has not carried out.
        self.receiver.own().is_distant()
    }

    fn flush(&self) {
        self.receiver.sender.batches.post_all();
        let naps = self.naps.load(Ordering::Relaxed).wrapping_add(1);
        self.naps.store(naps, Ordering::Relaxed);
        // Nothing sleeps, and the next poll takes back what is armed.
        if naps.is_multiple_of(NAPS)
            && self.is_kept_awake.load(Ordering::Relaxed)
            && let Some(others) = self.receiver.served_processes()
            && others.prepare_sleep() != Sleep::Naps
        {
            self.is_kept_awake.store(false, Ordering::Relaxed);
        }
    }

    fn prepare_sleep(&self) -> bool {
        let (receiver, sender) = (&*self.receiver, &self.receiver.sender);
        sender.batches.post_all();
        if let Err(error) = self.arm() {
            sender.fail(&error);
            return false;
        }
        let has_come = receiver.served_processes().is_some_and(Processes::progress);
        let found = receiver.progress().unwrap_or(1) > 0 || has_come;
        !found
            && !self.is_over()
            && !self.awaits_control()
            && !receiver.has_unannounced()
            && !sender.batches.is_filled_at_last()
            && receiver.served_processes().is_none_or(|others| self.may_sleep(others))
    }

    fn event(&self) -> impl Future<Output = ()> + Send {
        self.receiver.own().endpoint.channel.notified()
    }
}

impl Poller {
    /// Returns `true` if the program and all its operations have ended.
    fn is_over(&self) -> bool {
        self.receiver.is_stopped()
            && self.receiver.is_quiet(self.has_timers)
            && !self.awaits_control()
    }

    /// Returns `true` if the program has ended and control messages may still come, which the trace is to
    /// have: acknowledgements of the last rounds. No event announces that none is under way any more.
    fn awaits_control(&self) -> bool {
        let Sender { tracer, peers, own, .. } = &*self.receiver.sender;
        let may_come = || {
            let mut peers = peers.locals();
            !peers.all(|peer| peer.endpoint.is_idle())
                || !self.receiver.has_all_answers()
                || !own.endpoint.arrived.is_empty()
        };
        self.receiver.is_stopped()
            && tracer.keeps_control()
            && !self.receiver.sender.has_failed()
            && may_come()
    }

    /// Returns `true` if an event announces what other processes do.
    fn are_announced(&self, others: &Processes, found: bool) -> bool {
        if found && self.is_kept_awake.load(Ordering::Relaxed) {
            self.is_kept_awake.store(false, Ordering::Relaxed);
        }
        others.has_event() && !self.is_kept_awake.load(Ordering::Relaxed)
    }

    /// Arms the event of other processes. Returns `true` if the task may sleep.
    fn may_sleep(&self, others: &Processes) -> bool {
        let sleep = others.prepare_sleep();
        if sleep == Sleep::Naps {
            self.is_kept_awake.store(true, Ordering::Relaxed);
        }
        sleep == Sleep::UntilEvent
    }

    /// Arms the completion channel.
    fn arm(&self) -> Result<(), Error> {
        let endpoint = &self.receiver.own().endpoint;
        endpoint.arrived.request_notify(false)?;
        endpoint.sent.request_notify()?;
        Ok(())
    }
}
