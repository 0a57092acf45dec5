//! The polling task: a [`Service`] that tests the operations under way as long as there are any.
//! MPI has no event, so it naps when they take long, and sleeps while there are none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use talpf_runtime::service::{Demand, Polled, Service, Sleeper};

use super::transport::MpiTransport;

/// Tests of one poll, if they are in vain: a few microseconds.
const TESTS: usize = 64;

/// Polling of this process, by the polling task or by idle workers.
pub(super) struct Poller {
    transport: Arc<MpiTransport>,
    /// `true` if there are more workers than cores on this machine.
    is_oversubscribed: bool,
    /// Number of operations started before the last poll.
    started: AtomicU64,
}

impl Poller {
    pub(super) fn new(transport: &Arc<MpiTransport>, is_oversubscribed: bool) -> Self {
        let transport = Arc::clone(transport);
        Poller { transport, is_oversubscribed, started: AtomicU64::new(0) }
    }
}

impl Service for Poller {
    const EVENT: &'static str = "an operation";
    const SERVES_OTHERS: bool = true;

    fn poll(&self) -> Option<Polled> {
        let transport = &self.transport;
        if transport.is_stopped() {
            return None;
        }
        let started = transport.started();
        let has_started = self.started.swap(started, Ordering::Relaxed) != started;
        // A poll costs more than a test.
        let mut ended = transport.advance_while_spare(TESTS);
        if ended == 0 && transport.poll_failure_broadcast() {
            // Failed operations end before the service finds nothing under way.
            ended += transport.advance(|| false);
        }
        let is_busy = transport.is_busy();
        let demand = if is_busy { Demand::Polls } else { Demand::Nothing };
        // The start of an operation is announced, its end is not.
        Some(Polled { found: has_started || ended > 0, demand, announced: !is_busy })
    }

    fn sleeper(&self) -> &Sleeper {
        &self.transport.sleeper
    }

    fn is_oversubscribed(&self) -> bool {
        self.is_oversubscribed
    }

    fn prepare_sleep(&self) -> bool {
        !self.transport.is_stopped() && !self.transport.is_busy()
    }
}
