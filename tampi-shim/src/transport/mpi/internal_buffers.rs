//! Internal buffers: copies of messages that are sent, and messages that are received only to be
//! dropped.
#![allow(unsafe_code, reason = "hands bytes that the engine keeps to MPI")]

use talpf_runtime::ByteLayout;

use super::engine::{Operation, OperationKind};
use super::transport::{MpiTransport, sent_status};
use super::{Matched, RawCommunicator, RawRequest, Refused, Shape};
use crate::error::Error;
use crate::status::Status;
use crate::transport::{OperationId, Outgoing, SendMode};

impl MpiTransport {
    /// Returns `true` for a short message that a rank sends to itself. MPICH lets such a send wait
    /// for its receive, which may depend on it.
    pub(super) fn is_short_to_itself(&self, message: &Outgoing, bytes: ByteLayout) -> bool {
        const SHORT: u64 = 16 << 10;
        message.destination.world.0 == self.library.rank()
            && message.mode == SendMode::Standard
            && bytes.bytes() <= SHORT
    }

    /// Sends a copy of a message, which is kept until MPI has read it.
    pub(super) fn send_copy(
        &self,
        communicator: RawCommunicator,
        message: &Outgoing,
        bytes: ByteLayout,
    ) -> Result<Status, Error> {
        let length = bytes.bytes() as usize;
        self.engine.reserve_buffer(length)?;
        let copy = copy_of(bytes);
        let (to, tag) = (message.destination.rank.0, message.tag.0);
        let sent = self.send_internal(communicator, to, tag, copy, true);
        if sent.is_err() {
            self.engine.release_buffer(length);
        }
        sent?;
        Ok(sent_status(message, bytes))
    }

    /// Sends an internal buffer.
    pub(super) fn send_internal(
        &self,
        communicator: RawCommunicator,
        to: u32,
        tag: u32,
        bytes: Box<[u8]>,
        counted: bool,
    ) -> Result<(), Refused> {
        let shape = Shape::contiguous(bytes.len())?;
        // SAFETY: the engine keeps the bytes until the request has completed.
        let started =
            unsafe { communicator.start_send(SendMode::Standard, bytes.as_ptr(), &shape, to, tag) };
        self.keep(started?, OperationKind::Internal { bytes, counted });
        Ok(())
    }

    /// Receives a message into an internal buffer, to drop it.
    pub(super) fn receive_unwanted(&self, message: Matched, bytes: usize) -> Result<(), Refused> {
        let mut bytes = vec![0; bytes].into_boxed_slice();
        let shape = Shape::contiguous(bytes.len())?;
        // SAFETY: the engine keeps the bytes until the request has completed.
        let started = unsafe { message.start_receive(bytes.as_mut_ptr(), &shape) };
        self.keep(started?, OperationKind::Internal { bytes, counted: false });
        Ok(())
    }

    fn keep(&self, request: RawRequest, kind: OperationKind) {
        self.engine.add(request, Operation::new(OperationId(self.number()), kind));
        self.sleeper.wake();
    }

    /// Drops the messages that matched probes have taken.
    pub(super) fn discard_all(&self) {
        let taken = std::mem::take(&mut *self.matched.lock());
        for (message, status) in taken.into_values() {
            // A message that cannot be received stays with MPI.
            let _ = self.receive_unwanted(message, status.bytes as usize);
        }
    }

    /// Receives and drops all messages that have arrived, in all communicators, so that their sends
    /// end.
    pub(super) fn drain_all(&self) {
        let world = [self.library.world()];
        self.contexts.all().into_iter().chain(world).for_each(|each| self.drain(each));
    }

    /// Receives and drops all messages that have arrived in one communicator.
    pub(super) fn drain(&self, communicator: RawCommunicator) {
        while let Ok(Some((message, status))) = communicator.probe_matched(None, None) {
            if self.receive_unwanted(message, status.bytes).is_err() {
                break;
            }
        }
    }
}

fn copy_of(bytes: ByteLayout) -> Box<[u8]> {
    let mut copy = Vec::with_capacity(bytes.bytes() as usize);
    for row in 0..bytes.rows {
        let start = bytes.first.wrapping_add(row * bytes.stride_bytes);
        // SAFETY: the caller of `send` vouches for the memory.
        copy.extend_from_slice(unsafe { std::slice::from_raw_parts(start, bytes.row_bytes) });
    }
    copy.into_boxed_slice()
}
