//! The polling task: one a rank, a [`Service`] that polls the completion queues and advances syncs.
//!
//! While a task of the rank is suspended until a sync ends, which its peers advance
//! (`peer/notify.rs`), it polls seldom: every poll takes cache lines away from them. It sleeps on the
//! completion channel: a completion, a new sync or a failure wakes it. No completion announces
//! packets of other processes, the timers of a link with faults, and changes such as new room in a
//! send queue: it naps then instead.
//!
//! **Source**: thesis, chapter 6.3.

use std::future::Future;
use std::sync::Arc;

use talpf_primitives::{AtomicU32, Ordering};
use talpf_runtime::service::{Demand, Pace, Polled, Service, Sleeper, serve};

use crate::config::{Config, PollingFrequency};
use crate::error::Error;
use crate::processes::Processes;
use crate::sync::Receiver;

/// Number of passes between polls of batches: every poll takes their cache line away.
const PASSES: u32 = 32;

/// The poller of a rank, run by the polling task and by idle workers in its place.
struct Poller {
    receiver: Arc<Receiver>,
    /// `true` if the link has timers, for lost packets.
    has_timers: bool,
    passes: AtomicU32,
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
        // Only a link with faults has timers.
        has_timers: config.device.fault.is_some(),
        passes: AtomicU32::new(0),
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
        let found = receiver.poll() > 0;
        let passes = self.passes.load(Ordering::Relaxed).wrapping_add(1);
        self.passes.store(passes, Ordering::Relaxed);
        if passes.is_multiple_of(PASSES) {
            sender.batches.post_unchanged();
        }
        let has_wire = receiver.processes().is_some();
        let announced = !has_wire && !self.has_timers && !receiver.has_unannounced();
        let demand = match () {
            () if announced && own.wait_flag.is_set() => Demand::Others,
            () if receiver.syncs() > 0 || sender.outstanding() > 0 => Demand::Polls,
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

    fn flush(&self) {
        self.receiver.sender.batches.post_all();
    }

    fn prepare_sleep(&self) -> bool {
        let (receiver, sender) = (&*self.receiver, &self.receiver.sender);
        sender.batches.post_all();
        if let Err(error) = self.arm() {
            sender.fail(&error);
            return false;
        }
        let found = receiver.progress().unwrap_or(1) > 0;
        !found
            && !self.is_over()
            && !receiver.has_unannounced()
            && !sender.batches.is_filled_at_last()
    }

    fn event(&self) -> impl Future<Output = ()> + Send {
        self.receiver.own().endpoint.channel.notified()
    }
}

impl Poller {
    /// Returns `true` if the program and all its operations have ended.
    fn is_over(&self) -> bool {
        self.receiver.is_stopped() && self.receiver.is_quiet(self.has_timers)
    }

    /// Arms the completion channel.
    fn arm(&self) -> Result<(), Error> {
        let endpoint = &self.receiver.own().endpoint;
        endpoint.arrived.request_notify(false)?;
        endpoint.sent.request_notify()?;
        Ok(())
    }
}
