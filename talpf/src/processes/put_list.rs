//! Lists of short puts of one round, whose bytes travel with their claims in one message.
//!
//! A list has its puts one after the other, each without what it shares with the one before, and behind
//! them the bytes of all. Numbers are little-endian.

use std::ops::Range;

use ibverbs_sim::{RemoteAddress, RemoteKey};
use smallvec::SmallVec;

use crate::immediate::MOST_COUNTED;
use crate::numbers::Rank;
use crate::window::{Claim, Kind};

/// Most puts of a list.
pub(super) const MOST_PUTS: usize = MOST_COUNTED as usize;
/// Bytes of a list that need no memory from the heap.
const USUAL_BYTES: usize = 4096;

/// Bytes that a message is made of.
pub(super) type ListBytes = SmallVec<[u8; USUAL_BYTES]>;

/// The list of a message that is being made.
pub(super) struct PutListWriter {
    heads: ListBytes,
    bytes: ListBytes,
    last: Option<Memory>,
}

/// A put of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ListedPut {
    pub(super) slot: u32,
    /// Elements of the slot.
    pub(super) index: u64,
    pub(super) end: u64,
    pub(super) remote: RemoteAddress,
    /// Range of its bytes among those of the list.
    start: u32,
    length: u32,
}

/// A list that has arrived.
pub(super) struct PutList<'a> {
    pub(super) puts: SmallVec<[ListedPut; MOST_PUTS + 1]>,
    pub(super) bytes: &'a [u8],
}

/// The memory that a put writes: elements of a slot.
#[derive(Clone, Copy, PartialEq)]
struct Memory {
    slot: u32,
    key: u32,
    /// Address of element 0, wrapping.
    base: u64,
    element_bytes: u32,
}

impl Memory {
    /// Returns the memory of a put of `length` bytes.
    fn of(claim: &Claim, remote: RemoteAddress, length: usize) -> Self {
        let elements = claim.end.wrapping_sub(claim.index).max(1);
        let element_bytes = (length as u64 / elements) as u32;
        let before = claim.index.wrapping_mul(u64::from(element_bytes));
        let base = remote.address.wrapping_sub(before);
        Self { slot: claim.slot, key: remote.key.to_u32(), base, element_bytes }
    }

    /// Returns the address of an element.
    fn address(&self, index: u64) -> RemoteAddress {
        let before = index.wrapping_mul(u64::from(self.element_bytes));
        let key = RemoteKey::from_u32(self.key);
        RemoteAddress { address: self.base.wrapping_add(before), key }
    }
}

/// First byte of a put in the memory of the one before.
const SAME_MEMORY: u8 = 0;
/// First byte of a put with its memory.
const OTHER_MEMORY: u8 = 1;

impl PutListWriter {
    /// Begins a list of `count` puts, [`MOST_PUTS`] at most.
    pub(super) fn new(count: usize) -> Self {
        let mut heads = ListBytes::new();
        heads.push(count as u8);
        Self { heads, bytes: ListBytes::new(), last: None }
    }

    /// Adds a put, which writes consecutive elements.
    pub(super) fn add(&mut self, claim: &Claim, remote: RemoteAddress, bytes: &[u8]) {
        let memory = Memory::of(claim, remote, bytes.len());
        if self.last == Some(memory) {
            self.heads.push(SAME_MEMORY);
        } else {
            self.heads.push(OTHER_MEMORY);
            self.heads.extend_from_slice(&memory.slot.to_le_bytes());
            self.heads.extend_from_slice(&memory.key.to_le_bytes());
            self.heads.extend_from_slice(&memory.base.to_le_bytes());
            self.heads.extend_from_slice(&memory.element_bytes.to_le_bytes());
            self.last = Some(memory);
        }
        let elements = claim.end.wrapping_sub(claim.index) as u32;
        self.heads.extend_from_slice(&claim.index.to_le_bytes());
        self.heads.extend_from_slice(&elements.to_le_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the bytes of the list.
    pub(super) fn finish(mut self) -> ListBytes {
        self.heads.extend_from_slice(&self.bytes);
        self.heads
    }
}

impl<'a> PutList<'a> {
    /// Reads a list; `None` if the bytes are not one.
    pub(super) fn from_bytes(list: &'a [u8]) -> Option<Self> {
        let (&count, mut rest) = list.split_first()?;
        if usize::from(count) > MOST_PUTS {
            return None;
        }
        let (mut puts, mut memory, mut start) = (SmallVec::new(), None, 0u32);
        for _ in 0..count {
            match chunk(&mut rest)? {
                [SAME_MEMORY] => {}
                [OTHER_MEMORY] => {
                    let [slot, key] = [chunk(&mut rest)?, chunk(&mut rest)?];
                    let (base, element_bytes) = (chunk(&mut rest)?, chunk(&mut rest)?);
                    memory = Some(Memory {
                        slot: u32::from_le_bytes(slot),
                        key: u32::from_le_bytes(key),
                        base: u64::from_le_bytes(base),
                        element_bytes: u32::from_le_bytes(element_bytes),
                    });
                }
                _ => return None,
            }
            let memory = memory.as_ref()?;
            let index = u64::from_le_bytes(chunk(&mut rest)?);
            let elements = u32::from_le_bytes(chunk(&mut rest)?);
            let end = index.checked_add(u64::from(elements))?;
            let length = elements.checked_mul(memory.element_bytes)?;
            let put = ListedPut {
                slot: memory.slot,
                index,
                end,
                remote: memory.address(index),
                start,
                length,
            };
            start = start.checked_add(length)?;
            puts.push(put);
        }
        (rest.len() == start as usize && !puts.is_empty()).then_some(Self { puts, bytes: rest })
    }
}

impl ListedPut {
    /// Returns the only put of a list, of so many bytes; `None` if the claim is not that of a put to
    /// consecutive elements.
    pub(super) fn only(claim: &Claim, remote: RemoteAddress, length: usize) -> Option<Self> {
        let Claim { source, slot, index, end, .. } = *claim;
        let put = Self { slot, index, end, remote, start: 0, length: length as u32 };
        (put.claim(source) == *claim).then_some(put)
    }

    /// Returns the range of its bytes among those of the list.
    pub(super) fn range(&self) -> Range<usize> {
        self.start as usize..(self.start + self.length) as usize
    }

    /// Returns the claim of a put of `source`.
    pub(super) fn claim(&self, source: Rank) -> Claim {
        let Self { slot, index, end, .. } = *self;
        Claim { source, slot, index, end, rows: 1, stride: 0, kind: Kind::Write, raw: false }
    }
}

fn chunk<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*chunk)
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_comes_back(
            puts in prop::collection::vec((0..2u32, 0..2u32, 0..9u64, 0..3u32, 0..3u32), 1..=MOST_PUTS),
            seed: u8, cut in 1..40usize,
        ) {
            let (mut writer, mut expected) = (PutListWriter::new(puts.len()), Vec::new());
            for (nth, (slot, key, index, elements, element_bytes)) in puts.into_iter().enumerate() {
                let (end, length) = (index + u64::from(elements), elements * element_bytes);
                let address = 4096 + index * u64::from(element_bytes) + u64::from(slot);
                let remote = RemoteAddress { address, key: RemoteKey::from_u32(key) };
                let bytes: Vec<u8> = (0..length as u8).map(|byte| byte ^ seed ^ nth as u8).collect();
                let put = ListedPut { slot, index, end, remote, start: 0, length };
                let claim = put.claim(Rank(7));
                writer.add(&claim, remote, &bytes);
                expected.push((claim, remote, bytes));
            }
            let sent = writer.finish();
            let list = PutList::from_bytes(&sent).unwrap();
            let come = list.puts.iter().map(|put| {
                (put.claim(Rank(7)), put.remote, list.bytes[put.range()].to_vec())
            });
            prop_assert_eq!(come.collect::<Vec<_>>(), expected);
            let shorter = &sent[..sent.len().saturating_sub(cut)];
            prop_assert!(PutList::from_bytes(shorter).is_none(), "a part of a list");
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            if let Some(list) = PutList::from_bytes(&bytes) {
                list.puts.iter().for_each(|put| assert!(list.bytes.get(put.range()).is_some()));
            }
        }
    }
}
