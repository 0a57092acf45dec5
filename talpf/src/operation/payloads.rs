//! The cut of an operation into payloads of requests, each of consecutive bytes at the target.

use ibverbs_sim::{Payload, RemoteAddress, ScatterGather};
use smallvec::SmallVec;

use super::guards::Entries;
use super::transfer::Transfer;

/// The local side of an operation.
pub(super) enum Memory {
    /// Bytes that are copied as the operation is posted.
    Inline(SmallVec<[u8; 16]>),
    /// Registered memory, held by `done`.
    Entries(Entries),
    /// Memory that was posted already, held by `done` until the device has carried that out, which
    /// the completion of an empty request behind it shows.
    Posted,
    /// The number of an atomic that its target has carried out, held by `done`.
    CarriedOut,
}

/// A position in an operation: how much of it has been cut off.
#[derive(Clone, Copy)]
pub(super) struct Position {
    /// Bytes of copied memory, or entries, that are cut off.
    passed: usize,
    /// Address of the next payload.
    remote: RemoteAddress,
    /// Bytes that follow in the present row at the target.
    left_of_row: u64,
}

impl Position {
    pub(super) fn start(at: &Transfer) -> Self {
        Position { passed: 0, remote: at.remote, left_of_row: at.row_bytes() }
    }
}

/// An iterator over the payloads of an operation in order, with their remote addresses.
pub(super) struct Payloads<'m> {
    local: Local<'m>,
    position: Position,
    /// Bytes of each row at the target.
    row_bytes: u64,
    /// Bytes between the end of a row and the next row.
    gap_bytes: u64,
    max_sge: usize,
    max_transfer: usize,
}

/// The local bytes of an operation.
enum Local<'m> {
    Inline(&'m [u8]),
    /// Entries, none of which goes on in the next row at the target.
    Entries(&'m [ScatterGather]),
}

impl<'m> Payloads<'m> {
    /// Creates an iterator over the payloads from `position` on.
    pub(super) fn new(
        memory: &'m Memory,
        at: &Transfer,
        (max_sge, max_transfer): (usize, usize),
        position: Position,
    ) -> Self {
        let local = match memory {
            Memory::Inline(bytes) => Local::Inline(bytes),
            Memory::Entries(entries) => Local::Entries(entries),
            Memory::Posted | Memory::CarriedOut => Local::Entries(&[]),
        };
        let row_bytes = at.row_bytes();
        let gap_bytes = at.stride_bytes.saturating_sub(row_bytes);
        Payloads { local, position, row_bytes, gap_bytes, max_sge, max_transfer }
    }

    /// Returns the position behind the payloads that were taken.
    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// Returns `true` if no payload is left.
    pub(super) fn is_at_end(&self) -> bool {
        let len = match self.local {
            Local::Inline(bytes) => bytes.len(),
            Local::Entries(entries) => entries.len(),
        };
        self.position.passed == len
    }

    /// Returns the remote address of a payload and goes on behind it.
    fn pass(&mut self, passed: usize, bytes: u64) -> RemoteAddress {
        let position = &mut self.position;
        let remote = position.remote;
        position.passed += passed;
        position.remote.address += bytes;
        position.left_of_row -= bytes;
        if position.left_of_row == 0 {
            position.remote.address += self.gap_bytes;
            position.left_of_row = self.row_bytes;
        }
        remote
    }
}

impl<'m> Iterator for Payloads<'m> {
    type Item = (RemoteAddress, Payload<'m>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_at_end() {
            return None;
        }
        let (most, passed) = (self.position.left_of_row, self.position.passed);
        let most = most.min(self.max_transfer as u64);
        Some(match self.local {
            Local::Inline(bytes) => {
                let rest = &bytes[passed..];
                let next = &rest[..rest.len().min(most as usize)];
                (self.pass(next.len(), next.len() as u64), Payload::Inline(next))
            }
            Local::Entries(entries) => {
                let (next, bytes) = next_entries(&entries[passed..], self.max_sge, most);
                (self.pass(next.len(), bytes), Payload::Gather(next))
            }
        })
    }
}

/// Returns as many entries as fit one request of at most `most` bytes, at least one, and their
/// bytes.
fn next_entries(entries: &[ScatterGather], max_sge: usize, most: u64) -> (&[ScatterGather], u64) {
    let mut bytes = 0u64;
    let mut count = 0;
    for entry in entries.iter().take(max_sge.max(1)) {
        let with = bytes + u64::from(entry.length);
        if count > 0 && with > most {
            break;
        }
        bytes = with;
        count += 1;
    }
    (&entries[..count], bytes)
}
