//! Collectives that fold elements: reduce, allreduce, reduce_scatter, scan, exscan.

use super::algorithm;
use super::call::CollectiveKind;
use super::expect_length;
use crate::buffer::{Buffer, BufferMut};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::operator::Operator;
use crate::rank::Rank;
use crate::request::Request;

impl Communicator {
    /// Folds the buffers of all ranks, element by element, into that of the root. The buffers of
    /// other ranks are unchanged.
    ///
    /// **Ordering**: as [`Communicator::iallreduce`].
    pub fn ireduce<B: BufferMut>(
        &self,
        buffer: B,
        operator: impl Operator<B::Element>,
        root: Rank,
    ) -> Request<B> {
        let (kind, fold) = (CollectiveKind::Reduce, Box::new(operator));
        self.start_in_place(kind, Some(root), buffer, Some(fold), |member, len| {
            Ok(algorithm::reduce(member, self.root(root)?, len, size_of::<B::Element>()))
        })
    }

    /// Reduces and waits. As [`Communicator::ireduce`].
    pub async fn reduce<B: BufferMut>(
        &self,
        buffer: B,
        operator: impl Operator<B::Element>,
        root: Rank,
    ) -> Result<B, Error> {
        Ok(self.ireduce(buffer, operator, root).await?.0)
    }

    /// Folds the buffers of all ranks, element by element, into those of all.
    ///
    /// **Ordering**: neighbours are folded first - ranks 0 and 1, 2 and 3, ... - then their results
    /// in the same way; an operand without a partner is folded in the next round. So for 5 ranks
    /// the result is `((x0 x1) (x2 x3)) x4`, whatever the timing, the length, the root and the
    /// transport, and operands stay in the order of ranks.
    pub fn iallreduce<B: BufferMut>(
        &self,
        buffer: B,
        operator: impl Operator<B::Element>,
    ) -> Request<B> {
        let (kind, fold) = (CollectiveKind::Allreduce, Box::new(operator));
        self.start_in_place(kind, None, buffer, Some(fold), |member, len| {
            Ok(algorithm::allreduce(member, len, size_of::<B::Element>()))
        })
    }

    /// Reduces at all ranks and waits. As [`Communicator::iallreduce`].
    pub async fn allreduce<B: BufferMut>(
        &self,
        buffer: B,
        operator: impl Operator<B::Element>,
    ) -> Result<B, Error> {
        Ok(self.iallreduce(buffer, operator).await?.0)
    }

    /// Folds the buffers `all` of all ranks, element by element, and gives each rank its block of
    /// the result, of `counts[rank]` elements.
    ///
    /// **Ordering**: as [`Communicator::iallreduce`].
    pub fn ireduce_scatter<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        block: R,
        counts: &[usize],
        operator: impl Operator<S::Element>,
    ) -> Request<(S, R)> {
        let (kind, fold) = (CollectiveKind::ReduceScatter, Box::new(operator));
        self.start_between(kind, None, (all, block), Some(fold), |member, total, len| {
            let blocks = self.blocks(kind, counts)?;
            expect_length(kind, "the buffer of all ranks", total, blocks.total())?;
            expect_length(kind, "the rank's own block", len, blocks.len(member.rank))?;
            Ok((algorithm::reduce_scatter(member, &blocks, size_of::<S::Element>()), Some(total)))
        })
    }

    /// Reduces, scatters and waits. As [`Communicator::ireduce_scatter`].
    pub async fn reduce_scatter<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        all: S,
        block: R,
        counts: &[usize],
        operator: impl Operator<S::Element>,
    ) -> Result<(S, R), Error> {
        Ok(self.ireduce_scatter(all, block, counts, operator).await?.0)
    }

    /// Folds the buffers of the ranks before each rank and its own into its buffer: inclusive
    /// prefixes.
    ///
    /// **Ordering**: from left to right, as a serial loop does: `((x0 x1) x2) x3`.
    pub fn iscan<B: BufferMut>(
        &self,
        buffer: B,
        operator: impl Operator<B::Element>,
    ) -> Request<B> {
        let (kind, fold) = (CollectiveKind::Scan, Box::new(operator));
        self.start_in_place(kind, None, buffer, Some(fold), |member, len| {
            Ok(algorithm::scan(member, len, size_of::<B::Element>()))
        })
    }

    /// Scans and waits. As [`Communicator::iscan`].
    pub async fn scan<B: BufferMut>(
        &self,
        buffer: B,
        operator: impl Operator<B::Element>,
    ) -> Result<B, Error> {
        Ok(self.iscan(buffer, operator).await?.0)
    }

    /// Folds the buffers of the ranks before each rank into its buffer: exclusive prefixes. As
    /// [`Communicator::iscan`]. The buffer of rank 0 is unchanged.
    pub fn iexscan<B: BufferMut>(
        &self,
        buffer: B,
        operator: impl Operator<B::Element>,
    ) -> Request<B> {
        let (kind, fold) = (CollectiveKind::Exscan, Box::new(operator));
        self.start_in_place(kind, None, buffer, Some(fold), |member, len| {
            Ok(algorithm::exscan(member, len, size_of::<B::Element>()))
        })
    }

    /// Scans exclusively and waits. As [`Communicator::iexscan`].
    pub async fn exscan<B: BufferMut>(
        &self,
        buffer: B,
        operator: impl Operator<B::Element>,
    ) -> Result<B, Error> {
        Ok(self.iexscan(buffer, operator).await?.0)
    }
}
