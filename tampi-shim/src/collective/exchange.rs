//! Collectives that move elements: broadcast, gather, scatter, allgather, all-to-all.
//!
//! A buffer of the elements of all ranks holds them one after another, in the order of the ranks.

use super::algorithm::{self, Blocks, Member};
use super::call::CollectiveKind;
use super::expect_length;
use super::start::Planned;
use crate::buffer::{Buffer, BufferMut};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::rank::Rank;
use crate::request::Request;

/// Returns blocks of `len` elements for each rank.
fn equal_blocks(member: Member, kind: CollectiveKind, len: usize) -> Result<Blocks, Error> {
    Blocks::of_counts(std::iter::repeat_n(len, member.size)).ok_or_else(|| too_many(kind))
}

pub(super) fn too_many(kind: CollectiveKind) -> Error {
    Error::BufferLength {
        collective: kind.name(),
        what: "the buffer of all ranks",
        elements: usize::MAX,
        expected: isize::MAX as usize,
    }
}

impl Communicator {
    /// Sends the elements of the root's buffer to all ranks. All buffers have the same length.
    ///
    /// **Completion**: local at the root; at the other ranks the elements have arrived.
    /// **Errors**: lengths that differ, at all ranks; in debug builds also roots that differ. The
    /// same holds for all collectives.
    pub fn ibroadcast<B: BufferMut>(&self, buffer: B, root: Rank) -> Request<B> {
        self.start_in_place(CollectiveKind::Broadcast, Some(root), buffer, None, |member, len| {
            Ok(algorithm::broadcast(member, self.root(root)?, len, size_of::<B::Element>()))
        })
    }

    /// Broadcasts and waits. As [`Communicator::ibroadcast`].
    pub async fn broadcast<B: BufferMut>(&self, buffer: B, root: Rank) -> Result<B, Error> {
        Ok(self.ibroadcast(buffer, root).await?.0)
    }

    /// Gathers the elements of all ranks in `all` of the root, the same number from each rank.
    /// Other ranks do not use `all` and may pass an empty vector.
    pub fn igather<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        root: Rank,
    ) -> Request<(S, R)> {
        let kind = CollectiveKind::Gather;
        self.start_between(kind, Some(root), (piece, all), None, |member, len, room| {
            let blocks = equal_blocks(member, kind, len)?;
            self.plan_gather(root, len, room, &blocks, Some(len))
        })
    }

    /// Gathers and waits. As [`Communicator::igather`].
    pub async fn gather<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        root: Rank,
    ) -> Result<(S, R), Error> {
        Ok(self.igather(piece, all, root).await?.0)
    }

    /// Gathers `counts[rank]` elements from each rank. As [`Communicator::igather`]. Only the root
    /// uses `counts`.
    pub fn igatherv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        counts: &[usize],
        root: Rank,
    ) -> Request<(S, R)> {
        let kind = CollectiveKind::Gather;
        self.start_between(kind, Some(root), (piece, all), None, |_, len, room| {
            let blocks = self.blocks_at(kind, root, counts)?;
            self.plan_gather(root, len, room, &blocks, None)
        })
    }

    /// Gathers and waits. As [`Communicator::igatherv`].
    pub async fn gatherv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        counts: &[usize],
        root: Rank,
    ) -> Result<(S, R), Error> {
        Ok(self.igatherv(piece, all, counts, root).await?.0)
    }

    /// Sends each rank its block of `all` of the root, the same number of elements to each. Other
    /// ranks do not use `all` and may pass an empty vector.
    pub fn iscatter<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        piece: R,
        root: Rank,
    ) -> Request<(S, R)> {
        let kind = CollectiveKind::Scatter;
        self.start_between(kind, Some(root), (all, piece), None, |member, total, len| {
            let blocks = equal_blocks(member, kind, len)?;
            self.plan_scatter(root, total, len, &blocks, Some(len))
        })
    }

    /// Scatters and waits. As [`Communicator::iscatter`].
    pub async fn scatter<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        piece: R,
        root: Rank,
    ) -> Result<(S, R), Error> {
        Ok(self.iscatter(all, piece, root).await?.0)
    }

    /// Scatters `counts[rank]` elements to each rank. As [`Communicator::iscatter`]. Only the root
    /// uses `counts`.
    pub fn iscatterv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        piece: R,
        counts: &[usize],
        root: Rank,
    ) -> Request<(S, R)> {
        let kind = CollectiveKind::Scatter;
        self.start_between(kind, Some(root), (all, piece), None, |_, total, len| {
            let blocks = self.blocks_at(kind, root, counts)?;
            self.plan_scatter(root, total, len, &blocks, None)
        })
    }

    /// Scatters and waits. As [`Communicator::iscatterv`].
    pub async fn scatterv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        piece: R,
        counts: &[usize],
        root: Rank,
    ) -> Result<(S, R), Error> {
        Ok(self.iscatterv(all, piece, counts, root).await?.0)
    }

    /// Gathers the elements of all ranks in `all` of every rank, the same number from each rank.
    pub fn iallgather<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
    ) -> Request<(S, R)> {
        let kind = CollectiveKind::Allgather;
        self.start_between(kind, None, (piece, all), None, |member, len, room| {
            let blocks = equal_blocks(member, kind, len)?;
            expect_length(kind, "the buffer of all ranks", room, blocks.total())?;
            Ok((algorithm::allgather(member, &blocks, size_of::<S::Element>()), Some(len)))
        })
    }

    /// Gathers at all ranks and waits. As [`Communicator::iallgather`].
    pub async fn allgather<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
    ) -> Result<(S, R), Error> {
        Ok(self.iallgather(piece, all).await?.0)
    }

    /// Gathers `counts[rank]` elements from each rank at all ranks. As
    /// [`Communicator::iallgather`].
    pub fn iallgatherv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        counts: &[usize],
    ) -> Request<(S, R)> {
        let kind = CollectiveKind::Allgather;
        self.start_between(kind, None, (piece, all), None, |member, len, room| {
            let blocks = self.blocks(kind, counts)?;
            expect_length(kind, "the rank's own buffer", len, blocks.len(member.rank))?;
            expect_length(kind, "the buffer of all ranks", room, blocks.total())?;
            Ok((algorithm::allgather(member, &blocks, size_of::<S::Element>()), Some(room)))
        })
    }

    /// Gathers at all ranks and waits. As [`Communicator::iallgatherv`].
    pub async fn allgatherv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        piece: S,
        all: R,
        counts: &[usize],
    ) -> Result<(S, R), Error> {
        Ok(self.iallgatherv(piece, all, counts).await?.0)
    }

    /// Sends every rank its block of `sent` of each rank: block `i` of rank `j` becomes block `j`
    /// of `received` at rank `i`. All blocks have the same length.
    pub fn ialltoall<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        sent: S,
        received: R,
    ) -> Request<(S, R)> {
        let kind = CollectiveKind::Alltoall;
        self.start_between(kind, None, (sent, received), None, |member, total, room| {
            let blocks = equal_blocks(member, kind, total / member.size)?;
            expect_length(kind, "the send buffer", total, blocks.total())?;
            expect_length(kind, "the receive buffer", room, blocks.total())?;
            Ok((algorithm::alltoall(member, &blocks, &blocks), Some(total)))
        })
    }

    /// Exchanges blocks and waits. As [`Communicator::ialltoall`].
    pub async fn alltoall<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        sent: S,
        received: R,
    ) -> Result<(S, R), Error> {
        Ok(self.ialltoall(sent, received).await?.0)
    }

    /// Exchanges blocks of `send_counts[rank]` elements to and `receive_counts[rank]` elements from
    /// each rank. As [`Communicator::ialltoall`].
    pub fn ialltoallv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        (sent, send_counts): (S, &[usize]),
        (received, receive_counts): (R, &[usize]),
    ) -> Request<(S, R)> {
        let kind = CollectiveKind::Alltoall;
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

    /// Exchanges blocks and waits. As [`Communicator::ialltoallv`].
    pub async fn alltoallv<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        sent: (S, &[usize]),
        received: (R, &[usize]),
    ) -> Result<(S, R), Error> {
        Ok(self.ialltoallv(sent, received).await?.0)
    }

    /// Returns blocks of the given lengths, one for each rank.
    pub(super) fn blocks(&self, kind: CollectiveKind, counts: &[usize]) -> Result<Blocks, Error> {
        expect_length(kind, "the list of counts", counts.len(), self.size() as usize)?;
        Blocks::of_counts(counts.iter().copied()).ok_or_else(|| too_many(kind))
    }

    /// Returns blocks of the given lengths at the root, and any blocks at the other ranks, which do
    /// not use them.
    fn blocks_at(
        &self,
        kind: CollectiveKind,
        root: Rank,
        counts: &[usize],
    ) -> Result<Blocks, Error> {
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
        let (kind, member, root) = (CollectiveKind::Gather, self.member(), self.root(root)?);
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
        let (kind, member, root) = (CollectiveKind::Scatter, self.member(), self.root(root)?);
        if member.rank == root {
            expect_length(kind, "the buffer of all ranks", total, blocks.total())?;
            expect_length(kind, "the rank's own buffer", len, blocks.len(root))?;
        }
        Ok((algorithm::scatter(member, root, len, blocks), agreed))
    }
}
