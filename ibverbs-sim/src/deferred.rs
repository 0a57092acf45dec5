//! Actions that are deferred until no gate is held.
//!
//! Wakers and rails run code of the program, a queue pair that goes into error flushes its queues,
//! and the last reference to a queue pair may drop wakers: none of it may happen under a gate. All
//! of them are rare except packets to other processes, which wait in the port of their device; an
//! empty list costs nothing.

use std::sync::Arc;

use crate::{CompletionChannel, device::DeviceCore, port::Port, queue_pair::QueuePairCore};

/// Actions that are collected under a gate and run after it.
#[derive(Default)]
#[must_use]
pub(crate) struct Deferred {
    /// Device with packets to send.
    sending: Option<Arc<DeviceCore>>,
    /// Boxed because it is usually absent.
    actions: Option<Box<DeferredActions>>,
}

#[derive(Default)]
struct DeferredActions {
    /// Further devices with packets to send.
    sending: Vec<Arc<DeviceCore>>,
    fired: Vec<CompletionChannel>,
    failed: Vec<Arc<QueuePairCore>>,
    dropped: Vec<Arc<QueuePairCore>>,
}

impl Deferred {
    #[cold]
    pub(crate) fn fire(&mut self, channel: Option<&CompletionChannel>) {
        self.actions.get_or_insert_default().fired.extend(channel.cloned());
    }

    /// Defers the flush of a queue pair that has just gone into error.
    #[cold]
    pub(crate) fn flush(&mut self, queue_pair: Arc<QueuePairCore>) {
        self.actions.get_or_insert_default().failed.push(queue_pair);
    }

    /// Defers the send of the packets that are queued in the port of a device.
    pub(crate) fn send(&mut self, device: &Arc<DeviceCore>) {
        match &self.sending {
            None => self.sending = Some(Arc::clone(device)),
            Some(known) if Arc::ptr_eq(known, device) => {}
            Some(_) => self.actions.get_or_insert_default().sending.push(Arc::clone(device)),
        }
    }

    /// Defers the drop of references, which may be the last.
    #[cold]
    pub(crate) fn drop_later(&mut self, queue_pairs: impl IntoIterator<Item = Arc<QueuePairCore>>) {
        let mut queue_pairs = queue_pairs.into_iter().peekable();
        if queue_pairs.peek().is_some() {
            self.actions.get_or_insert_default().dropped.extend(queue_pairs);
        }
    }

    /// Runs all actions. The caller holds no gate and no lock.
    #[inline]
    pub(crate) fn run(self) {
        if self.sending.is_some() || self.actions.is_some() {
            self.run_slow();
        }
    }

    /// Runs actions, and those that flushes add.
    #[cold]
    fn run_slow(self) {
        send(self.sending);
        let Some(mut actions) = self.actions else { return };
        loop {
            send(actions.sending.drain(..));
            let Some(queue_pair) = actions.failed.pop() else { break };
            let mut more = Self::default();
            queue_pair.flush(&mut more);
            actions.sending.extend(more.sending);
            let more = more.actions.map(|more| *more).unwrap_or_default();
            actions.sending.extend(more.sending);
            actions.failed.extend(more.failed);
            actions.fired.extend(more.fired);
            actions.dropped.extend(more.dropped);
        }
        actions.fired.iter().for_each(CompletionChannel::fire);
    }
}

fn send(devices: impl IntoIterator<Item = Arc<DeviceCore>>) {
    let ports = devices.into_iter();
    ports.for_each(|device| device.port.iter().for_each(Port::flush));
}
