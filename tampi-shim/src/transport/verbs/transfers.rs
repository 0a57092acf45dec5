//! Long messages of a link: read from the memory of the peer that has announced them, or written to
//! the memory that it has offered, one after another.
#![allow(unsafe_code, reason = "ends registrations that no request uses")]

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use ibverbs_sim::{
    Access, Operation, Payload, RemoteAddress, RemoteKey, ScatterGather, SendFlags,
    SendWorkRequest, WorkCompletion,
};
use smallvec::SmallVec;

use super::aftermath::Aftermath;
use super::cell::{Cell, Place};
use super::link::Link;
use super::memory::{Memory, Registered};
use super::world::RankState;
use crate::error::Error;
use crate::status::Status;
use crate::ticket::Ticket;

/// Requests posted at once.
const BATCH: usize = 16;

/// See the module text.
#[derive(Default)]
pub(super) struct Transfers {
    queue: VecDeque<Transfer>,
    /// Requests of the first transfer were posted and have not completed.
    is_under_way: bool,
}

/// Which way the bytes go, and which of the peer's operations ends with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the peer's send of this number.
    Read(u64),
    /// To the peer's receive of this number.
    Write(u64),
}

/// A message to move. It fits where it goes.
pub(super) struct Transfer {
    direction: Direction,
    place: Place,
    memory: Memory,
    ticket: Ticket,
    status: Status,
    registered: Option<Registered>,
    /// Bytes for which requests were posted.
    posted: u64,
}

impl Transfer {
    pub(super) fn new(
        (direction, place): (Direction, Place),
        memory: Memory,
        ticket: Ticket,
        status: Status,
    ) -> Self {
        Transfer { direction, place, memory, ticket, status, registered: None, posted: 0 }
    }
}

impl Transfers {
    pub(super) fn push(&mut self, transfer: Transfer) {
        self.queue.push_back(transfer);
    }

    /// Goes on as far as the device does.
    pub(super) fn run(&mut self, link: &Link, rank: &RankState, after: &mut Aftermath) {
        loop {
            if self.is_under_way {
                let mut completion = [WorkCompletion::default()];
                if link.bulk_sent.poll(&mut completion) == 0 {
                    return;
                }
                if after.note(link.check(&completion[0])).is_none() {
                    return;
                }
                self.is_under_way = false;
            }
            match self.queue.front_mut() {
                None => return,
                Some(first) if first.posted < first.status.bytes => {
                    if after.note(first.post(link, rank)).is_none() {
                        return;
                    }
                    self.is_under_way = true;
                }
                Some(_) => {
                    if let Some(transfer) = self.queue.pop_front() {
                        transfer.finish(link, rank, after);
                    }
                }
            }
        }
    }

    /// Ends everything with `error`, and the device's use of it.
    pub(super) fn fail(&mut self, rank: &RankState, error: &Error, after: &mut Aftermath) {
        for transfer in self.queue.drain(..) {
            rank.transfers.fetch_sub(1, Ordering::Relaxed);
            drop(transfer.registered);
            after.end(transfer.ticket, Err(Box::new(error.clone())));
        }
        self.is_under_way = false;
    }
}

impl Transfer {
    /// Posts some requests, the last of which leaves a completion.
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
        let mut pieces = SmallVec::<[(RemoteAddress, ScatterGather); BATCH]>::new();
        let key = RemoteKey::from_u32(self.place.key);
        while pieces.len() < BATCH && self.posted < self.status.bytes {
            let (there, there_left) =
                locate(self.posted, self.place.row_bytes, self.place.stride_bytes);
            let layout = self.memory.layout();
            let (here, here_left) =
                locate(self.posted, layout.row_bytes as u64, layout.stride_bytes as u64);
            let length = there_left.min(here_left).min(rank.max_transfer);
            let remote = RemoteAddress { address: self.place.address.wrapping_add(there), key };
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
        let requests: SmallVec<[SendWorkRequest<'_>; BATCH]> = requests.collect();
        link.bulk.post_send(&requests).map_err(|error| Error::Device(error.reason))
    }

    fn finish(self, link: &Link, rank: &RankState, after: &mut Aftermath) {
        if let Some(registered) = self.registered {
            // SAFETY: all requests that use it were posted here and have completed.
            unsafe { registered.end_unused() };
        }
        rank.transfers.fetch_sub(1, Ordering::Relaxed);
        let notice = match self.direction {
            Direction::Read(send) => Cell::done(send),
            Direction::Write(receive) => Cell::filled(receive),
        };
        after.note(link.sender.lock().notify(link, rank, notice));
        after.end(self.ticket, Ok(self.status.into()));
    }
}

/// Where byte `position` of a message is, from the first, and how many follow it in its row. A stride
/// that a peer has sent may be any: what is outside of its memory, its device refuses.
fn locate(position: u64, row_bytes: u64, stride_bytes: u64) -> (u64, u64) {
    let (row, column) = (position / row_bytes.max(1), position % row_bytes.max(1));
    (row.wrapping_mul(stride_bytes).wrapping_add(column), row_bytes - column)
}
