//! Transitions: the state machine of a queue pair.
//!
//! Transitions of one queue pair exclude each other (`control`). Those that change state which a
//! thread under a gate may be using take the gate or wait for its holder: the requester's half
//! belongs to this queue pair's gate, the responder's half to the gate of a peer, which this queue
//! pair may not know.

use std::sync::Arc;

use talpf_primitives::Ordering;

use crate::{
    Access, Connection, Error, QueuePair, QueuePairAttributes, QueuePairNumber, QueuePairState,
    Result,
    attributes::within,
    context::check_port,
    deferred::Deferred,
    queue_pair::{
        QueuePairCore,
        requester::{PSN_MASK, Requester, RetryLimits},
    },
};

use QueuePairState::{Error as Failed, Init, ReadyToReceive, ReadyToSend, Reset};

impl QueuePair {
    /// Moves the queue pair to another state.
    ///
    /// RESET and ERROR can be reached from any state (ERROR not from RESET) and take no attributes.
    /// Otherwise the order is RESET, INIT, READY TO RECEIVE, READY TO SEND, each with the
    /// attributes that [`QueuePairAttributes`] names for it; INIT and READY TO SEND can be entered
    /// again to change the optional ones. RESET discards everything outstanding, ERROR flushes it.
    ///
    /// **Errors**: no such transition; an attribute that is missing, not accepted or over its
    /// limit.
    pub fn modify(&self, attributes: &QueuePairAttributes) -> Result<()> {
        self.core.modify(attributes)
    }

    /// Moves the queue pair from RESET to READY TO SEND with `remote` as peer, which must do the
    /// same with this end.
    ///
    /// **Errors**: the queue pair is not in RESET, or a value is over its limit.
    pub fn connect(&self, remote: QueuePairNumber, connection: &Connection) -> Result<()> {
        self.connect_within(None, remote, connection)
    }

    /// Connects to a peer in `process` of the device's wire, which may also be this process;
    /// otherwise as [`connect`](Self::connect).
    ///
    /// **Errors**: as [`connect`](Self::connect), or no such process.
    pub fn connect_to(
        &self,
        process: u32,
        remote: QueuePairNumber,
        connection: &Connection,
    ) -> Result<()> {
        self.connect_within(Some(process), remote, connection)
    }

    fn connect_within(
        &self,
        remote_process: Option<u32>,
        remote: QueuePairNumber,
        connection: &Connection,
    ) -> Result<()> {
        self.modify(&QueuePairAttributes {
            port: Some(1),
            access: Some(connection.access),
            ..QueuePairAttributes::new(Init)
        })?;
        let connected = self
            .modify(&QueuePairAttributes {
                remote: Some(remote),
                remote_process,
                receive_psn: Some(connection.psn),
                max_dest_rd_atomic: Some(connection.max_rd_atomic),
                min_rnr_timer_ns: Some(connection.min_rnr_timer_ns),
                ..QueuePairAttributes::new(ReadyToReceive)
            })
            .and_then(|()| {
                self.modify(&QueuePairAttributes {
                    send_psn: Some(connection.psn),
                    timeout_ns: Some(connection.timeout_ns),
                    retry_count: Some(connection.retry_count),
                    rnr_retry: Some(connection.rnr_retry),
                    max_rd_atomic: Some(connection.max_rd_atomic),
                    ..QueuePairAttributes::new(ReadyToSend)
                })
            });
        if connected.is_err() {
            self.modify(&QueuePairAttributes::new(Reset))?;
        }
        connected
    }
}

impl QueuePairCore {
    fn modify(self: &Arc<Self>, attributes: &QueuePairAttributes) -> Result<()> {
        let mut deferred = Deferred::default();
        let control = self.control.lock();
        let (from, to) = (self.state.load(), attributes.state);
        check_transition(self.number, from, to)?;
        check_attributes(from, attributes)?;
        self.check_values(attributes)?;
        match to {
            Reset => self.reset(&mut deferred),
            Failed => self.enter_error(&mut deferred),
            _ => {
                self.apply(attributes, &mut deferred);
                // A peer's request may have moved the queue pair to ERROR in the meantime; then it
                // stays there.
                self.state.change(from, to);
            }
        }
        drop(control);
        match to {
            Reset | Failed => self.close_permit(),
            ReadyToReceive | ReadyToSend if self.remote_peer.process().is_some() => {
                self.renew_permit();
            }
            _ => {}
        }
        if to == Failed {
            // No packet of a remote peer is carried out after this.
            self.context.device.wait_for_delivery();
        }
        deferred.run();
        Ok(())
    }

    fn check_values(&self, attributes: &QueuePairAttributes) -> Result<()> {
        let limit = self.context.device.attributes.max_rd_atomic;
        if let Some(port) = attributes.port {
            check_port(port)?;
        }
        if let Some(process) = attributes.remote_process {
            self.context.device.check_process(process)?;
        }
        within("max_rd_atomic", attributes.max_rd_atomic.unwrap_or(0), limit)?;
        within("max_dest_rd_atomic", attributes.max_dest_rd_atomic.unwrap_or(0), limit)?;
        within("retry_count", attributes.retry_count.unwrap_or(0), 7)?;
        within("rnr_retry", attributes.rnr_retry.unwrap_or(0), 7)
    }

    fn apply(&self, attributes: &QueuePairAttributes, deferred: &mut Deferred) {
        let responder = &self.responder;
        if let Some(access) = attributes.access {
            responder.access.store(access.bits(), Ordering::SeqCst);
        }
        if let Some(limit) = attributes.max_dest_rd_atomic {
            responder.max_rd_atomic.store(limit, Ordering::SeqCst);
        }
        if let Some(wait) = attributes.min_rnr_timer_ns {
            responder.min_rnr_timer_ns.store(wait, Ordering::SeqCst);
        }
        if let Some(psn) = attributes.receive_psn {
            responder.expected_psn.store(psn & PSN_MASK, Ordering::SeqCst);
        }
        if let Some(remote) = attributes.remote {
            let here = self.context.device.process();
            let process = attributes.remote_process.filter(|process| *process != here);
            responder.remote.store(remote.0, Ordering::SeqCst);
            self.remote_peer.set_process(process);
            let connect = |requester: &mut Requester| {
                (requester.remote, requester.process) = (remote, process);
            };
            self.sends.change(connect, self.executor(deferred));
        }
        if let Some(psn) = attributes.send_psn {
            let begin = |requester: &mut Requester| {
                requester.next_psn = psn & PSN_MASK;
                requester.retry_limits = RetryLimits {
                    timeout_ns: attributes.timeout_ns.unwrap_or(0),
                    retry_count: attributes.retry_count.unwrap_or(0),
                    rnr_retry: attributes.rnr_retry.unwrap_or(0),
                };
                requester.max_rd_atomic = attributes.max_rd_atomic.unwrap_or(0);
            };
            self.sends.change(begin, self.executor(deferred));
        }
    }

    /// Resets the queue pair. Afterwards no thread touches its memory or queues.
    pub(crate) fn reset(&self, deferred: &mut Deferred) {
        self.state.set(Reset);
        let send_slots = &self.context.device.send_slots;
        let mut peer = None;
        let reset = |requester: &mut Requester, posted| {
            self.cancel_long(requester);
            peer = requester.reset(posted);
            self.remote_peer.clear_requests();
            send_slots.free(self.number, posted);
        };
        self.sends.clear(reset, self.executor(deferred));
        deferred.drop_later(peer);
        deferred.drop_later(self.wait_for_peer());
        self.context.device.wait_for_delivery();
        if !self.shared_receives {
            while self.receives.take_id().is_some() {}
        }
        self.remote_peer.set_process(None);
        self.responder.access.store(Access::NONE.bits(), Ordering::SeqCst);
        // A value that the next peer has not found.
        self.responder.last_original.store(0, Ordering::SeqCst);
    }
}

fn check_transition(
    queue_pair: QueuePairNumber,
    from: QueuePairState,
    to: QueuePairState,
) -> Result<()> {
    let legal = matches!(
        (from, to),
        (_, Reset | Failed)
            | (Reset | Init, Init)
            | (Init, ReadyToReceive)
            | (ReadyToReceive | ReadyToSend, ReadyToSend)
    ) && (from, to) != (Reset, Failed);
    if legal { Ok(()) } else { Err(Error::InvalidTransition { queue_pair, from, to }) }
}

/// Checks the given attributes: each is needed by the transition into one state, and some may be
/// given again in later ones.
fn check_attributes(from: QueuePairState, given: &QueuePairAttributes) -> Result<()> {
    let to = given.state;
    if given.remote_process.is_some() && given.remote.is_none() {
        return Err(Error::UnexpectedAttribute { to, attribute: "remote_process" });
    }
    let table: [(&'static str, bool, QueuePairState, &[QueuePairState]); 11] = [
        ("port", given.port.is_some(), Init, &[]),
        ("access", given.access.is_some(), Init, &[ReadyToReceive, ReadyToSend]),
        ("remote", given.remote.is_some(), ReadyToReceive, &[]),
        ("receive_psn", given.receive_psn.is_some(), ReadyToReceive, &[]),
        ("max_dest_rd_atomic", given.max_dest_rd_atomic.is_some(), ReadyToReceive, &[]),
        ("min_rnr_timer_ns", given.min_rnr_timer_ns.is_some(), ReadyToReceive, &[ReadyToSend]),
        ("send_psn", given.send_psn.is_some(), ReadyToSend, &[]),
        ("timeout_ns", given.timeout_ns.is_some(), ReadyToSend, &[]),
        ("retry_count", given.retry_count.is_some(), ReadyToSend, &[]),
        ("rnr_retry", given.rnr_retry.is_some(), ReadyToSend, &[]),
        ("max_rd_atomic", given.max_rd_atomic.is_some(), ReadyToSend, &[]),
    ];
    for (attribute, is_given, needed_by, optional_in) in table {
        let again = from == to;
        let needed = needed_by == to && !again;
        let taken = needed || optional_in.contains(&to) || (again && to == Init && needed_by == to);
        if needed && !is_given {
            return Err(Error::MissingAttribute { to, attribute });
        }
        if is_given && !taken {
            return Err(Error::UnexpectedAttribute { to, attribute });
        }
    }
    Ok(())
}
