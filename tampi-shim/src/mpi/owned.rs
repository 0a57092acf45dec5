//! Bytes of this library's own: copies of messages, and messages that nobody wants.
#![allow(unsafe_code, reason = "hands bytes that the engine keeps to MPI")]

use super::engine::{Kind, Operation};
use super::transport::{MpiTransport, sent_status};
use super::{Matched, RawCommunicator, RawRequest, Refused, Shape};
use crate::buffer::Layout;
use crate::error::Error;
use crate::status::Status;
use crate::transport::{OperationId, Outgoing, SendMode};

impl MpiTransport {
    /// Whether a message is one that a rank sends to itself and that other ranks would get at once.
    /// MPICH lets such a send wait for its receive, which may depend on it.
    pub(super) fn is_short_to_itself(&self, message: &Outgoing, bytes: Layout) -> bool {
        const SHORT: u64 = 16 << 10;
        message.destination.world.0 == self.library.rank()
            && message.mode == SendMode::Standard
            && bytes.bytes() <= SHORT
    }

    /// Sends a copy, which is looked after until MPI has taken it.
    pub(super) fn send_copy(
        &self,
        communicator: RawCommunicator,
        message: &Outgoing,
        bytes: Layout,
    ) -> Result<Status, Error> {
        let length = bytes.bytes() as usize;
        self.engine.take_room(length)?;
        let copy = copy_of(bytes);
        let (to, tag) = (message.destination.rank.0, message.tag.0);
        let sent = self.send_owned(communicator, to, tag, copy, true);
        if sent.is_err() {
            self.engine.give_room(length);
        }
        sent?;
        Ok(sent_status(message, bytes))
    }

    /// Sends bytes that nobody else has.
    pub(super) fn send_owned(
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
        self.keep(started?, Kind::Owned { bytes, counted });
        Ok(())
    }

    /// Receives a message that nobody wants.
    pub(super) fn receive_unwanted(&self, message: Matched, bytes: usize) -> Result<(), Refused> {
        let mut bytes = vec![0; bytes].into_boxed_slice();
        let shape = Shape::contiguous(bytes.len())?;
        // SAFETY: the engine keeps the bytes until the request has completed.
        let started = unsafe { message.start_receive(bytes.as_mut_ptr(), &shape) };
        self.keep(started?, Kind::Owned { bytes, counted: false });
        Ok(())
    }

    fn keep(&self, request: RawRequest, kind: Kind) {
        self.engine.add(request, Operation::new(OperationId(self.number()), kind));
        self.wake_poller();
    }

    /// Forgets what matched probes have taken.
    pub(super) fn discard_all(&self) {
        let taken = std::mem::take(&mut *self.matched.lock());
        for (message, status) in taken.into_values() {
            // What cannot be received stays with MPI.
            let _ = self.receive_unwanted(message, status.bytes as usize);
        }
    }

    /// Receives all messages that have come and that nobody has asked for, so that their sends
    /// end.
    pub(super) fn drain_all(&self) {
        let world = [self.library.world()];
        self.contexts.all().into_iter().chain(world).for_each(|each| self.drain(each));
    }

    /// The same for one communicator.
    pub(super) fn drain(&self, communicator: RawCommunicator) {
        while let Ok(Some((message, status))) = communicator.probe_matched(None, None) {
            if self.receive_unwanted(message, status.bytes).is_err() {
                break;
            }
        }
    }
}

fn copy_of(bytes: Layout) -> Box<[u8]> {
    let mut copy = Vec::with_capacity(bytes.bytes() as usize);
    for row in 0..bytes.rows {
        let start = bytes.first.wrapping_add(row * bytes.stride_bytes);
        // SAFETY: the caller of `send` vouches for the memory.
        copy.extend_from_slice(unsafe { std::slice::from_raw_parts(start, bytes.row_bytes) });
    }
    copy.into_boxed_slice()
}
