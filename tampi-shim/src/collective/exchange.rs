//! Collectives that move elements: broadcast, gather, scatter, allgather, all-to-all.
//!
//! Where a buffer holds the elements of all ranks, these lie one after another in the order of the
//! ranks.

use super::algorithm::{self, Blocks, Member};
use super::call::Kind;
use super::expect_length;
use super::start::Planned;
use crate::buffer::{Buffer, BufferMut};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::rank::Rank;
use crate::request::Request;

/// `len` elements for each of the ranks.
fn equal_blocks(member: Member, kind: Kind, len: usize) -> Result<Blocks, Error> {
    Blocks::of_counts(std::iter::repeat_n(len, member.size)).ok_or_else(|| too_many(kind))
}

pub(super) fn too_many(kind: Kind) -> Error {
    Error::BufferLength {
        collective: kind.name(),
        what: "the buffer of all ranks",
        elements: usize::MAX,
        expected: isize::MAX as usize,
    }
}

impl Communicator {
    /// Gives all ranks what the root has in its buffer. All buffers are of the same length.
    ///
    /// **Completion**: at the root local, elsewhere the elements are there.
    /// **Errors**: lengths that differ end the collective at all ranks; in debug builds so do
    /// roots that differ. This is true of all collectives.
    pub fn ibroadcast<B: BufferMut>(&self, buffer: B, root: Rank) -> Request<B> {
        self.start_in_place(Kind::Broadcast, Some(root), buffer, None, |member, len| {
            Ok(algorithm::broadcast(member, self.root(root)?, len, size_of::<B::Element>()))
        })
    }

    /// As [`Communicator::ibroadcast`], and waits.
    pub async fn broadcast<B: BufferMut>(&self, buffer: B, root: Rank) -> Result<B, Error> {
        Ok(self.ibroadcast(buffer, root).await?.0)
    }

    /// Collects the elements of all ranks in `all` of the root; each gives as many. Elsewhere
    /// `all` is not used: give an empty vector.
    pub fn igather<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        root: Rank,
    ) -> Request<(S, R)> {
        let kind = Kind::Gather;
        self.start_between(kind, Some(root), (piece, all), None, |member, len, room| {
            let blocks = equal_blocks(member, kind, len)?;
            self.plan_gather(root, len, room, &blocks, Some(len))
        })
    }

    /// As [`Communicator::igather`], and waits.
    pub async fn gather<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        root: Rank,
    ) -> Result<(S, R), Error> {
        Ok(self.igather(piece, all, root).await?.0)
    }

    /// As [`Communicator::igather`], of `counts[rank]` elements from each rank. Elsewhere than at
    /// the root `counts` is not used.
    pub fn igatherv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        counts: &[usize],
        root: Rank,
    ) -> Request<(S, R)> {
        let kind = Kind::Gather;
        self.start_between(kind, Some(root), (piece, all), None, |_, len, room| {
            let blocks = self.blocks_at(kind, root, counts)?;
            self.plan_gather(root, len, room, &blocks, None)
        })
    }

    /// As [`Communicator::igatherv`], and waits.
    pub async fn gatherv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        counts: &[usize],
        root: Rank,
    ) -> Result<(S, R), Error> {
        Ok(self.igatherv(piece, all, counts, root).await?.0)
    }

    /// Gives each rank its part of what `all` of the root holds, to each as many elements.
    /// Elsewhere `all` is not used: give an empty vector.
    pub fn iscatter<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        piece: R,
        root: Rank,
    ) -> Request<(S, R)> {
        let kind = Kind::Scatter;
        self.start_between(kind, Some(root), (all, piece), None, |member, total, len| {
            let blocks = equal_blocks(member, kind, len)?;
            self.plan_scatter(root, total, len, &blocks, Some(len))
        })
    }

    /// As [`Communicator::iscatter`], and waits.
    pub async fn scatter<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        piece: R,
        root: Rank,
    ) -> Result<(S, R), Error> {
        Ok(self.iscatter(all, piece, root).await?.0)
    }

    /// As [`Communicator::iscatter`], of `counts[rank]` elements to each rank. Elsewhere than at
    /// the root `counts` is not used.
    pub fn iscatterv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        piece: R,
        counts: &[usize],
        root: Rank,
    ) -> Request<(S, R)> {
        let kind = Kind::Scatter;
        self.start_between(kind, Some(root), (all, piece), None, |_, total, len| {
            let blocks = self.blocks_at(kind, root, counts)?;
            self.plan_scatter(root, total, len, &blocks, None)
        })
    }

    /// As [`Communicator::iscatterv`], and waits.
    pub async fn scatterv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        piece: R,
        counts: &[usize],
        root: Rank,
    ) -> Result<(S, R), Error> {
        Ok(self.iscatterv(all, piece, counts, root).await?.0)
    }

    /// Collects the elements of all ranks in `all` of every rank; each gives as many.
    pub fn iallgather<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
    ) -> Request<(S, R)> {
        let kind = Kind::Allgather;
        self.start_between(kind, None, (piece, all), None, |member, len, room| {
            let blocks = equal_blocks(member, kind, len)?;
            expect_length(kind, "the buffer of all ranks", room, blocks.total())?;
            Ok((algorithm::allgather(member, &blocks, size_of::<S::Element>()), Some(len)))
        })
    }

    /// As [`Communicator::iallgather`], and waits.
    pub async fn allgather<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
    ) -> Result<(S, R), Error> {
        Ok(self.iallgather(piece, all).await?.0)
    }

    /// As [`Communicator::iallgather`], of `counts[rank]` elements from each rank.
    pub fn iallgatherv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        counts: &[usize],
    ) -> Request<(S, R)> {
        let kind = Kind::Allgather;
        self.start_between(kind, None, (piece, all), None, |member, len, room| {
            let blocks = self.blocks(kind, counts)?;
            expect_length(kind, "the rank's own buffer", len, blocks.len(member.rank))?;
            expect_length(kind, "the buffer of all ranks", room, blocks.total())?;
            Ok((algorithm::allgather(member, &blocks, size_of::<S::Element>()), Some(room)))
        })
    }

    /// As [`Communicator::iallgatherv`], and waits.
    pub async fn allgatherv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        counts: &[usize],
    ) -> Result<(S, R), Error> {
        Ok(self.iallgatherv(piece, all, counts).await?.0)
    }

    /// Gives every rank its block of what each rank has in `sent`: block `i` of rank `j` becomes
    /// block `j` of `received` at rank `i`. All blocks are of the same length.
    pub fn ialltoall<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        sent: S,
        received: R,
    ) -> Request<(S, R)> {
        let kind = Kind::Alltoall;
        self.start_between(kind, None, (sent, received), None, |member, total, room| {
            let blocks = equal_blocks(member, kind, total / member.size)?;
            expect_length(kind, "the send buffer", total, blocks.total())?;
            expect_length(kind, "the receive buffer", room, blocks.total())?;
            Ok((algorithm::alltoall(member, &blocks, &blocks), Some(total)))
        })
    }

    /// As [`Communicator::ialltoall`], and waits.
    pub async fn alltoall<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        sent: S,
        received: R,
    ) -> Result<(S, R), Error> {
        Ok(self.ialltoall(sent, received).await?.0)
    }

    /// As [`Communicator::ialltoall`], of `send_counts[rank]` elements to and
    /// `receive_counts[rank]` from each rank.
    pub fn ialltoallv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        (sent, send_counts): (S, &[usize]),
        (received, receive_counts): (R, &[usize]),
    ) -> Request<(S, R)> {
        let kind = Kind::Alltoall;
        self.start_between(kind, None, (sent, received), None, |member, total, room| {
            let from = self.blocks(kind, send_counts)?;
            let into = self.blocks(kind, receive_counts)?;
            expect_length(kind, "the send buffer", total, from.total())?;
            expect_length(kind, "the receive buffer", room, into.total())?;
            expect_length(
                kind,
                "the rank's own block",
                into.len(member.rank),
                from.len(member.rank),
            )?;
            Ok((algorithm::alltoall(member, &from, &into), None))
        })
    }

    /// As [`Communicator::ialltoallv`], and waits.
    pub async fn alltoallv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        sent: (S, &[usize]),
        received: (R, &[usize]),
    ) -> Result<(S, R), Error> {
        Ok(self.ialltoallv(sent, received).await?.0)
    }

    /// Blocks of the given lengths, one a rank.
    pub(super) fn blocks(&self, kind: Kind, counts: &[usize]) -> Result<Blocks, Error> {
        expect_length(kind, "the list of counts", counts.len(), self.size() as usize)?;
        Blocks::of_counts(counts.iter().copied()).ok_or_else(|| too_many(kind))
    }

    /// The same where only the root looks at them.
    fn blocks_at(&self, kind: Kind, root: Rank, counts: &[usize]) -> Result<Blocks, Error> {
        if self.rank() == root { self.blocks(kind, counts) } else { Ok(Blocks::evenly(0, 1)) }
    }

    fn plan_gather(
        &self,
        root: Rank,
        len: usize,
        room: usize,
        blocks: &Blocks,
        agreed: Option<usize>,
    ) -> Planned {
        let (kind, member, root) = (Kind::Gather, self.member(), self.root(root)?);
        if member.rank == root {
            expect_length(kind, "the buffer of all ranks", room, blocks.total())?;
            expect_length(kind, "the rank's own buffer", len, blocks.len(root))?;
        }
        Ok((algorithm::gather(member, root, len, blocks), agreed))
    }

    fn plan_scatter(
        &self,
        root: Rank,
        total: usize,
        len: usize,
        blocks: &Blocks,
        agreed: Option<usize>,
    ) -> Planned {
        let (kind, member, root) = (Kind::Scatter, self.member(), self.root(root)?);
        if member.rank == root {
            expect_length(kind, "the buffer of all ranks", total, blocks.total())?;
            expect_length(kind, "the rank's own buffer", len, blocks.len(root))?;
        }
        Ok((algorithm::scatter(member, root, len, blocks), agreed))
    }
}
