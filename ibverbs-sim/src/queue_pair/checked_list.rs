//! Checked scatter/gather lists, and the copies between them.

use std::{cell::RefCell, num::NonZeroU32};

use crate::{
    Access, ScatterGather,
    attributes::MAX_SGE,
    checked::{Checked, Claim, Refused, ToWrite, Writable},
    gate::GateHeld,
    key_table::KeyTable,
};

/// A checked list, readable if `M` is [`Checked`] and writable if it is [`Writable`]. Empty pieces
/// are left out: their keys are not checked.
pub(crate) struct CheckedList<M> {
    pieces: [M; MAX_SGE],
    count: usize,
    length: u64,
}

impl<M: Copy> CheckedList<M> {
    // As a call it would copy all pieces, of which most messages have one.
    #[inline(always)]
    fn check(
        list: &[ScatterGather],
        empty: M,
        check: impl Fn(Claim) -> Result<M, Refused>,
    ) -> Result<Self, Refused> {
        let mut checked = Self { pieces: [empty; MAX_SGE], count: 0, length: 0 };
        for piece in list.iter().filter(|piece| piece.length > 0) {
            let length = u64::from(piece.length);
            let claim = Claim { address: piece.address, length, key: piece.key.0 };
            let place = checked.pieces.get_mut(checked.count).ok_or(Refused)?;
            *place = check(claim)?;
            checked.count += 1;
            checked.length += length;
        }
        Ok(checked)
    }

    pub(crate) fn as_slice(&self) -> &[M] {
        &self.pieces[..self.count]
    }
}

impl<'guard> CheckedList<Checked<'guard>> {
    /// Checks a list of memory to read.
    #[inline]
    pub(crate) fn to_read(
        keys: &KeyTable,
        list: &[ScatterGather],
        domain: NonZeroU32,
        held: GateHeld<'guard>,
    ) -> Result<Self, Refused> {
        let needed = Access::NONE;
        Self::check(list, Checked::EMPTY, |claim| keys.check(claim, domain, needed, held))
    }
}

impl<'guard> CheckedList<Writable<'guard>> {
    /// Checks a list of memory to write.
    #[inline]
    pub(crate) fn to_write(
        keys: &KeyTable,
        list: &[ScatterGather],
        domain: NonZeroU32,
        held: GateHeld<'guard>,
    ) -> Result<Self, Refused> {
        let needed = ToWrite::Local;
        Self::check(list, Writable::EMPTY, |claim| keys.check_to_write(claim, domain, needed, held))
    }

    /// Copies from `source` until either ends, in any order of bytes: no thread polls these pieces
    /// before the completion.
    pub(crate) fn fill(&self, mut source: Checked<'_>) {
        for &piece in self.as_slice() {
            let (now, later) = source.split_at(piece.len());
            now.copy_unordered_to(piece);
            source = later;
        }
    }

    /// Copies `bytes` until either ends.
    pub(crate) fn fill_bytes(&self, mut bytes: &[u8]) {
        for &piece in self.as_slice() {
            let (now, later) = bytes.split_at(piece.len().min(bytes.len()));
            piece.fill(now);
            bytes = later;
        }
    }
}

/// The requester's memory of a message: its data, or the target of the response.
#[derive(Clone, Copy)]
pub(crate) enum LocalBuffer<'a> {
    Inline(&'a [u8]),
    /// Memory that the request reads.
    Source(&'a CheckedList<Checked<'a>>),
    /// Memory that the response is written to.
    Target(&'a CheckedList<Writable<'a>>),
    /// A buffer for the response to another process.
    Brought {
        length: u64,
        into: &'a RefCell<Vec<u8>>,
    },
    /// Data of another process that is at its target already.
    Delivered {
        length: u64,
    },
}

impl LocalBuffer<'_> {
    #[inline]
    pub(crate) fn len(self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Source(pieces) => pieces.length,
            Self::Target(pieces) => pieces.length,
            Self::Brought { length, .. } | Self::Delivered { length } => length,
        }
    }

    /// Writes a response to its target.
    pub(crate) fn bring(self, response: Checked<'_>) {
        match self {
            Self::Inline(_) | Self::Source(_) | Self::Delivered { .. } => {}
            Self::Target(pieces) => pieces.fill(response),
            Self::Brought { into, .. } => response.append_to(&mut into.borrow_mut()),
        }
    }

    /// Passes the pieces of memory that the request reads to `action`, in order.
    pub(crate) fn for_each_piece(self, action: impl FnMut(Checked<'_>)) {
        if let Self::Source(pieces) = self {
            pieces.as_slice().iter().copied().for_each(action);
        }
    }

    /// Copies the data to `target`.
    #[inline]
    pub(crate) fn copy_to(self, mut target: Writable<'_>) {
        match self {
            Self::Inline(bytes) => target.fill(bytes),
            Self::Source(pieces) => {
                for &piece in pieces.as_slice() {
                    let (now, later) = target.split_at(piece.len());
                    piece.copy_to(now);
                    target = later;
                }
            }
            Self::Target(_) | Self::Brought { .. } | Self::Delivered { .. } => {}
        }
    }

    /// Copies the data to the pieces of `target`.
    pub(crate) fn scatter_to(self, target: &CheckedList<Writable<'_>>) {
        let Self::Source(source) = self else {
            if let Self::Inline(bytes) = self {
                target.fill_bytes(bytes);
            }
            return;
        };
        let mut places = target.as_slice().iter().copied();
        let mut place = Writable::EMPTY;
        for &piece in source.as_slice() {
            let mut left = piece;
            while left.len() > 0 {
                if place.len() == 0 {
                    let Some(next) = places.next() else { return };
                    place = next;
                }
                let (now, later) = left.split_at(place.len());
                let (here, rest) = place.split_at(now.len());
                now.copy_to(here);
                (left, place) = (later, rest);
            }
        }
    }
}
