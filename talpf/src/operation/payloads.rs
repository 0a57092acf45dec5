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
}

/// An iterator over the payloads of an operation in order, with their remote addresses.
pub(super) struct Payloads<'m> {
    rest: Rest<'m>,
    /// Address of the next payload.
    remote: RemoteAddress,
    /// Bytes of each row at the target, and those that follow in the present one.
    row_bytes: u64,
    left_of_row: u64,
    /// Bytes between the end of a row and the next row.
    gap_bytes: u64,
    max_sge: usize,
    max_transfer: usize,
}

/// The local bytes that no payload has yet.
enum Rest<'m> {
    Inline(&'m [u8]),
    /// Entries, none of which goes on in the next row at the target.
    Entries(&'m [ScatterGather]),
}

impl<'m> Payloads<'m> {
    pub(super) fn new(
        memory: &'m Memory,
        at: &Transfer,
        (max_sge, max_transfer): (usize, usize),
    ) -> Self {
        let rest = match memory {
            Memory::Inline(bytes) => Rest::Inline(bytes),
            Memory::Entries(entries) => Rest::Entries(entries),
            Memory::Posted => Rest::Entries(&[]),
        };
        let (remote, row_bytes) = (at.remote, at.row_bytes());
        let gap_bytes = at.stride_bytes.saturating_sub(row_bytes);
        let left_of_row = row_bytes;
        Payloads { rest, remote, row_bytes, left_of_row, gap_bytes, max_sge, max_transfer }
    }

    /// Returns the remote address of a payload and goes on behind it.
    fn pass(&mut self, bytes: u64) -> RemoteAddress {
        let remote = self.remote;
        self.remote.address += bytes;
        self.left_of_row -= bytes;
        if self.left_of_row == 0 {
            self.remote.address += self.gap_bytes;
            self.left_of_row = self.row_bytes;
        }
        remote
    }
}

impl<'m> Iterator for Payloads<'m> {
    type Item = (RemoteAddress, Payload<'m>);

    fn next(&mut self) -> Option<Self::Item> {
        let most = self.left_of_row.min(self.max_transfer as u64);
        match self.rest {
            Rest::Inline([]) | Rest::Entries([]) => None,
            Rest::Inline(bytes) => {
                let (next, rest) = bytes.split_at(bytes.len().min(most as usize));
                self.rest = Rest::Inline(rest);
                Some((self.pass(next.len() as u64), Payload::Inline(next)))
            }
            Rest::Entries(entries) => {
                let (next, bytes) = next_entries(entries, self.max_sge, most);
                self.rest = Rest::Entries(&entries[next.len()..]);
                Some((self.pass(bytes), Payload::Gather(next)))
            }
        }
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
