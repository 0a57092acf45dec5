//! Scatter/gather lists after their check, and the copies between them.

use std::{cell::RefCell, num::NonZeroU32};

use crate::{
    Access, ScatterGather,
    attributes::MAX_SGE,
    checked::{Checked, Claim, Refused},
    gate::Held,
    key_table::KeyTable,
};

/// A checked list. Empty pieces are left out: their keys do not matter.
pub(crate) struct Pieces<'hold> {
    pieces: [Checked<'hold>; MAX_SGE],
    count: usize,
    length: u64,
}

impl<'hold> Pieces<'hold> {
    pub(crate) fn check(
        keys: &KeyTable,
        list: &[ScatterGather],
        domain: NonZeroU32,
        needed: Access,
        held: Held<'hold>,
    ) -> Result<Self, Refused> {
        let mut checked = Self { pieces: [Checked::EMPTY; MAX_SGE], count: 0, length: 0 };
        for piece in list.iter().filter(|piece| piece.length > 0) {
            let length = u64::from(piece.length);
            let claim = Claim { address: piece.address, length, key: piece.key.0 };
            let place = checked.pieces.get_mut(checked.count).ok_or(Refused)?;
            *place = keys.check(claim, domain, needed, held)?;
            checked.count += 1;
            checked.length += length;
        }
        Ok(checked)
    }

    fn as_slice(&self) -> &[Checked<'hold>] {
        &self.pieces[..self.count]
    }

    /// Copies from `source` until either ends. These pieces are checked for writing, and nobody
    /// looks at them before the completion.
    pub(crate) fn fill(&self, mut source: Checked<'_>) {
        for &piece in self.as_slice() {
            let (now, later) = source.split_at(piece.len());
            now.bring_to(piece);
            source = later;
        }
    }

    /// Copies bytes until either ends. These pieces are checked for writing.
    pub(crate) fn fill_bytes(&self, mut bytes: &[u8]) {
        for &piece in self.as_slice() {
            let (now, later) = bytes.split_at(piece.len().min(bytes.len()));
            piece.fill(now);
            bytes = later;
        }
    }
}

/// The requester's side of a message: what it sends, or where the answer goes.
#[derive(Clone, Copy)]
pub(crate) enum Local<'a> {
    Inline(&'a [u8]),
    Pieces(&'a Pieces<'a>),
    /// The answer goes to another process.
    Brought {
        length: u64,
        into: &'a RefCell<Vec<u8>>,
    },
}

impl Local<'_> {
    #[inline]
    pub(crate) fn len(self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Pieces(pieces) => pieces.length,
            Self::Brought { length, .. } => length,
        }
    }

    /// Copies an answer to where it goes. Pieces are checked for writing.
    pub(crate) fn bring(self, answer: Checked<'_>) {
        match self {
            Self::Inline(_) => {}
            Self::Pieces(pieces) => pieces.fill(answer),
            Self::Brought { into, .. } => answer.append_to(&mut into.borrow_mut()),
        }
    }

    /// Appends everything.
    pub(crate) fn gather_into(self, bytes: &mut Vec<u8>) {
        if let Self::Pieces(pieces) = self {
            bytes.reserve_exact(pieces.length as usize);
            pieces.as_slice().iter().for_each(|piece| piece.append_to(bytes));
        }
    }

    /// Copies everything to `target`, which is checked for writing.
    #[inline]
    pub(crate) fn copy_to(self, mut target: Checked<'_>) {
        match self {
            Self::Inline(bytes) => target.fill(bytes),
            Self::Pieces(pieces) => {
                for &piece in pieces.as_slice() {
                    let (now, later) = target.split_at(piece.len());
                    piece.copy_to(now);
                    target = later;
                }
            }
            Self::Brought { .. } => {}
        }
    }

    /// Copies everything to the pieces of `target`, which are checked for writing.
    pub(crate) fn scatter_to(self, target: &Pieces<'_>) {
        let Self::Pieces(source) = self else {
            if let Self::Inline(bytes) = self {
                target.fill_bytes(bytes);
            }
            return;
        };
        let mut places = target.as_slice().iter().copied();
        let mut place = Checked::EMPTY;
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
