//! Transfers: bytes of this process that peers read, and what they are for.
//!
//! A transfer is announced to its peer, which answers once. It has ended then, unless the bytes could not be read.

use std::{collections::VecDeque, ptr::NonNull};

use super::{
    endpoint::Registered,
    packet::{Control, ReadRequest, Target},
};
use crate::{CompletionStatus, rail::registrations::KeyNumber};

/// Transfers that have not ended.
pub(super) struct Transfers {
    /// Transfers by process, and by number.
    all: Box<[Vec<Option<Transfer>>]>,
    /// Frames for which there was no room, the oldest first.
    pub(super) unsent: VecDeque<(u32, Unsent)>,
    /// Contexts and statuses of writes that have ended.
    pub(super) ended: Vec<(u64, CompletionStatus)>,
}

/// A frame for which there was no room.
#[derive(Clone, Copy)]
pub(super) enum Unsent {
    /// The address of the responder.
    Responder,
    Frame(Control<'static>),
}

/// A transfer that has not ended.
struct Transfer {
    purpose: Purpose,
    /// Registration of the memory that the peer may read; `None` once the responder that it was for has closed.
    registered: Option<Registered>,
}

/// Purpose of a transfer.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Write(LongWrite),
    /// A write whose end nobody wants to know.
    Cancelled,
    /// The answer to a read of the peer.
    Read(ReadRequest),
}

/// A write of which the bytes are announced.
#[derive(Clone, Copy)]
pub(super) struct LongWrite {
    pub(super) local: NonNull<[u8]>,
    /// Number of a key of this process that must be registered; `None` if the memory stays anyway.
    pub(super) local_key: Option<KeyNumber>,
    pub(super) target: Target,
    pub(super) context: u64,
}

// SAFETY: whoever has posted the write has promised that its memory stays, for any thread.
#[allow(unsafe_code, reason = "the memory of writes may go to other threads")]
unsafe impl Send for LongWrite {}

impl Purpose {
    /// Returns `true` for one that needs a key.
    fn needs(&self, key: KeyNumber) -> bool {
        match self {
            Self::Write(write) => write.local_key == Some(key),
            Self::Cancelled => false,
            Self::Read(read) => [read.key, read.permit].contains(&key.number()),
        }
    }
}

/// Answer to an announcement of a transfer whose memory could not be read.
pub(super) enum Unread {
    /// The responder that it was for has closed.
    Revoked(Purpose),
    /// The responder is open.
    Unreachable,
}

impl Transfers {
    pub(super) fn new(processes: usize) -> Self {
        let all = (0..processes).map(|_| Vec::new()).collect();
        Self { all, unsent: VecDeque::new(), ended: Vec::new() }
    }

    /// Returns the number of transfers to a process with some purposes.
    pub(super) fn count(&self, to: u32, is_counted: impl Fn(&Purpose) -> bool) -> usize {
        let all = self.all[to as usize].iter().flatten();
        all.filter(|transfer| is_counted(&transfer.purpose)).count()
    }

    /// Returns `true` if peers may read the bytes of a transfer.
    pub(super) fn are_announced(&self) -> bool {
        self.all.iter().flatten().flatten().any(|transfer| transfer.registered.is_some())
    }

    /// Returns a number that no transfer to a process has.
    pub(super) fn free(&self, to: u32) -> u32 {
        let all = &self.all[to as usize];
        all.iter().position(Option::is_none).unwrap_or(all.len()) as u32
    }

    /// Notes that a transfer is announced.
    pub(super) fn announce(
        &mut self,
        to: u32,
        number: u32,
        purpose: Purpose,
        registered: Registered,
    ) {
        let transfer = Some(Transfer { purpose, registered: Some(registered) });
        let all = &mut self.all[to as usize];
        match all.get_mut(number as usize) {
            Some(place) => *place = transfer,
            None => all.push(transfer),
        }
    }

    fn place(&mut self, to: u32, number: u32) -> Option<&mut Option<Transfer>> {
        self.all.get_mut(to as usize)?.get_mut(number as usize)
    }

    /// Takes the answer to an announcement. Returns whether its responder is still open; `None` if there is none to
    /// this process.
    pub(super) fn answer(
        &mut self,
        from: u32,
        number: u32,
        status: CompletionStatus,
    ) -> Option<bool> {
        let answered = self.place(from, number)?.take()?;
        self.end(answered.purpose, status);
        Some(answered.registered.is_some())
    }

    /// Takes the answer that the bytes of an announcement cannot be read. `None` if there is none to this process.
    pub(super) fn unread(&mut self, from: u32, number: u32) -> Option<Unread> {
        let place = self.place(from, number)?;
        if place.as_ref()?.registered.is_some() {
            return Some(Unread::Unreachable);
        }
        place.take().map(|unread| Unread::Revoked(unread.purpose))
    }

    /// Notes that a write has ended.
    pub(super) fn end(&mut self, purpose: Purpose, status: CompletionStatus) {
        if let Purpose::Write(write) = purpose {
            self.ended.push((write.context, status));
        }
    }

    /// Closes the registrations of all transfers.
    pub(super) fn revoke(&mut self) {
        for transfer in self.all.iter_mut().flatten().flatten() {
            transfer.registered = None;
        }
    }

    /// Forgets a write. Returns `true` if its memory may still be read.
    pub(super) fn cancel(&mut self, to: u32, context: u64) -> bool {
        let all = self.all[to as usize].iter_mut().flatten();
        let is_it = |purpose: &Purpose| matches!(purpose, Purpose::Write(write) if write.context == context);
        let mut found = all.filter(|transfer| is_it(&transfer.purpose));
        let Some(transfer) = found.next() else { return false };
        transfer.purpose = Purpose::Cancelled;
        transfer.registered.is_some()
    }

    /// Ends writes that need a key which is not registered any more. Returns `true` if memory that has the key may
    /// still be read.
    pub(super) fn close(&mut self, key: KeyNumber) -> bool {
        let mut may_be_read = false;
        for transfer in self.all.iter_mut().flatten().flatten() {
            if !transfer.purpose.needs(key) {
                continue;
            }
            may_be_read |= transfer.registered.is_some();
            if let Purpose::Write(write) = transfer.purpose {
                self.ended.push((write.context, CompletionStatus::LocalProtection));
                transfer.purpose = Purpose::Cancelled;
            }
        }
        may_be_read
    }

    /// Forgets all transfers to a process that is lost, and passes the contexts of writes to `sink`. Returns `true` if
    /// their memory may still be read.
    pub(super) fn lose(&mut self, process: u32, mut sink: impl FnMut(u64)) -> bool {
        self.unsent.retain(|(to, _)| *to != process);
        let mut may_be_read = false;
        for lost in self.all[process as usize].drain(..).flatten() {
            may_be_read |= lost.registered.is_some();
            if let Purpose::Write(write) = lost.purpose {
                sink(write.context);
            }
        }
        may_be_read
    }
}
