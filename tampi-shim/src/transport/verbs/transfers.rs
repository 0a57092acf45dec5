//! Transfers of long messages over a link, one after another: read from the memory that an RTS of
//! the peer names, or written to the memory that its RTR names.
#![allow(unsafe_code, reason = "ends registrations that no request uses")]

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use ibverbs_sim::{
    Access, Operation, Payload, RemoteAddress, RemoteKey, ScatterGather, SendFlags,
    SendWorkRequest, WorkCompletion,
};
use smallvec::SmallVec;

use super::cell::{Cell, RemoteLayout};
use super::deferred::DeferredActions;
use super::link::Link;
use super::memory::{Memory, Registered};
use super::world::RankState;
use crate::error::Error;
use crate::status::Status;
use crate::ticket::Ticket;

/// Requests posted at once.
const CHAIN: usize = 16;

/// Queue of the transfers of a link.
#[derive(Default)]
pub(super) struct Transfers {
    queue: VecDeque<Transfer>,
    /// `true` while requests of the first transfer are posted and have not completed.
    is_under_way: bool,
}

/// Direction of a transfer, with the operation of the peer that ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Read from the peer's send with this number.
    Read(u64),
    /// Write to the peer's receive with this number.
    Write(u64),
}

/// Transfer of one message, whose length was checked against the receive buffer.
pub(super) struct Transfer {
    direction: Direction,
    remote: RemoteLayout,
    memory: Memory,
    ticket: Ticket,
    status: Status,
    registered: Option<Registered>,
    /// Number of bytes for which requests were posted.
    posted: u64,
}

impl Transfer {
    pub(super) fn new(
        (direction, remote): (Direction, RemoteLayout),
        memory: Memory,
        ticket: Ticket,
        status: Status,
    ) -> Self {
        Transfer { direction, remote, memory, ticket, status, registered: None, posted: 0 }
    }
}

impl Transfers {
    pub(super) fn push(&mut self, transfer: Transfer) {
        self.queue.push_back(transfer);
    }

    /// Continues the transfers as far as requests have completed.
    pub(super) fn run(&mut self, link: &Link, rank: &RankState, deferred: &mut DeferredActions) {
        loop {
            if self.is_under_way {
                let mut completion = [WorkCompletion::default()];
                if link.bulk_sent.poll(&mut completion) == 0 {
                    return;
                }
                if deferred.note(link.check(&completion[0])).is_none() {
                    return;
                }
                self.is_under_way = false;
            }
            match self.queue.front_mut() {
                None => return,
                Some(first) if first.posted < first.status.bytes => {
                    if deferred.note(first.post(link, rank)).is_none() {
                        return;
                    }
                    self.is_under_way = true;
                }
                Some(_) => {
                    if let Some(transfer) = self.queue.pop_front() {
                        transfer.finish(link, rank, deferred);
                    }
                }
            }
        }
    }

    /// Ends all transfers with `error`, after their registrations.
    pub(super) fn fail(&mut self, rank: &RankState, error: &Error, deferred: &mut DeferredActions) {
        for transfer in self.queue.drain(..) {
            rank.transfers.fetch_sub(1, Ordering::Relaxed);
            drop(transfer.registered);
            deferred.end(transfer.ticket, Err(Box::new(error.clone())));
        }
        self.is_under_way = false;
    }
}

impl Transfer {
    /// Posts the next requests, the last of which asks for a completion.
    fn post(&mut self, link: &Link, rank: &RankState) -> Result<(), Error> {
        if self.registered.is_none() {
            let access = match self.direction {
                Direction::Read(_) => Access::LOCAL_WRITE,
                Direction::Write(_) => Access::NONE,
            };
            self.registered = Some(self.memory.register(&rank.domain, access)?);
        }
        let Some(region) = self.registered.as_ref().and_then(Registered::region) else {
            return Ok(());
        };
        let mut pieces = SmallVec::<[(RemoteAddress, ScatterGather); CHAIN]>::new();
        let key = RemoteKey::from_u32(self.remote.key);
        while pieces.len() < CHAIN && self.posted < self.status.bytes {
            let (there, there_left) =
                locate(self.posted, self.remote.row_bytes, self.remote.stride_bytes);
            let layout = self.memory.layout();
            let (here, here_left) =
                locate(self.posted, layout.row_bytes as u64, layout.stride_bytes as u64);
            let length = there_left.min(here_left).min(rank.max_transfer);
            let remote = RemoteAddress { address: self.remote.address.wrapping_add(there), key };
            pieces.push((remote, region.slice(here as usize, length as u32)));
            self.posted += length;
        }
        let last = pieces.len() - 1;
        let requests = pieces.iter().enumerate().map(|(index, (remote, piece))| {
            let remote = *remote;
            let operation = match self.direction {
                Direction::Read(_) => Operation::Read { remote },
                Direction::Write(_) => Operation::Write { remote },
            };
            let flags = if index == last { SendFlags::SIGNALLED } else { SendFlags::NONE };
            let payload = Payload::Gather(std::slice::from_ref(piece));
            SendWorkRequest { wr_id: 0, operation, payload, flags }
        });
        let requests: SmallVec<[SendWorkRequest<'_>; CHAIN]> = requests.collect();
        link.bulk.post_send(&requests).map_err(|error| Error::Device(error.reason))
    }

    fn finish(self, link: &Link, rank: &RankState, deferred: &mut DeferredActions) {
        if let Some(registered) = self.registered {
            // SAFETY: all requests that use it were posted here and have completed.
            unsafe { registered.end_unused() };
        }
        rank.transfers.fetch_sub(1, Ordering::Relaxed);
        let cell = match self.direction {
            Direction::Read(send) => Cell::fin_send(send),
            Direction::Write(receive) => Cell::fin_receive(receive),
        };
        deferred.note(link.sender.lock().notify(link, rank, cell));
        deferred.end(self.ticket, Ok(self.status.into()));
    }
}

/// Returns the offset of byte `position` of a message from its first byte, and the number of bytes
/// left in its row. The stride may come from a peer and be any number: its device refuses addresses
/// outside of its memory.
fn locate(position: u64, row_bytes: u64, stride_bytes: u64) -> (u64, u64) {
    let (row, column) = (position / row_bytes.max(1), position % row_bytes.max(1));
    (row.wrapping_mul(stride_bytes).wrapping_add(column), row_bytes - column)
}
