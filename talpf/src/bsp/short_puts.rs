//! Short puts, which travel in their requests.
//!
//! Puts of one slot whose sources lie side by side in one array share a task, which copies all of
//! them.

use std::any::TypeId;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytemuck::Pod;
use smallvec::SmallVec;
use talpf_runtime::{In, JoinHandle, Rect, Region};

use super::queued::{Queued, ShortPut};
use crate::error::Error;
use crate::lane::Lane;
use crate::numbers::Rank;
use crate::operation::OpenRound;
use crate::slot::{MemorySlot, Part, RemoteRegion};

/// Short puts of one slot that read a rectangle of an array together.
pub(super) struct ShortPuts<'r, T, D> {
    /// The elements that the puts read.
    from: Region<'r, T, D>,
    slot: MemorySlot<T>,
    puts: SmallVec<[Piece; 1]>,
    copy: Copy<T>,
}

/// Copy of the elements.
enum Copy<T> {
    None,
    /// The elements are being read.
    Reading(JoinHandle<Few<T>>),
    Read(Few<T>),
}

/// Elements, usually a few.
type Few<T> = SmallVec<[T; 4]>;

/// Single put.
struct Piece {
    /// The elements that it reads.
    from: Rect,
    rank: Rank,
    part: Part,
}

impl<'r, T, D> ShortPuts<'r, T, D> {
    pub(super) fn new(from: &Region<'r, T, D>, to: &RemoteRegion<'_, T>) -> Self {
        let RemoteRegion { slot, rank, part, .. } = *to;
        let slot = MemorySlot::new(Arc::clone(slot));
        let piece = Piece { from: from.rect(), rank, part };
        ShortPuts { from: *from, slot, puts: [piece].into(), copy: Copy::None }
    }
}

impl<'r, T: Pod + Send + Sync, D: Send + Sync + 'static> Queued<'r> for ShortPuts<'r, T, D> {
    fn add(&mut self, put: &ShortPut<'_, 'r>) -> bool {
        let ShortPut { guard, from, slot, rank, part } = *put;
        if guard != TypeId::of::<In<T, D>>() || !Arc::ptr_eq(slot, &self.slot.slot) {
            return false;
        }
        let Some(joined) = self.from.joined(&from) else {
            return false;
        };
        self.from = joined;
        self.puts.push(Piece { from: from.rect(), rank, part });
        true
    }

    fn begin(&mut self, lane: &Lane) -> Result<(), Error> {
        let task = lane.group().task("copy").inline().input(&self.from);
        let copy = |from: In<T, D>| from.row_slices().flatten().copied().collect();
        self.copy = Copy::Reading(task.run(copy)?);
        Ok(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Copy::Reading(reading) = &mut self.copy {
            self.copy = Copy::Read(ready!(Pin::new(reading).poll(cx))?);
        }
        Poll::Ready(Ok(()))
    }

    fn end(self: Box<Self>, _: &Lane, round: &OpenRound) -> Result<(), Error> {
        if let Copy::Read(elements) = &self.copy {
            let all = (self.from.rect(), elements.as_slice());
            self.puts.iter().for_each(|put| put.issue(round, &self.slot, all));
        }
        Ok(())
    }
}

impl Piece {
    /// Issues the put, out of the elements of a rectangle.
    fn issue<T: Pod>(
        &self,
        round: &OpenRound,
        slot: &MemorySlot<T>,
        (all, elements): (Rect, &[T]),
    ) {
        let Piece { from, rank, part } = *self;
        let to = slot.part(rank, part);
        let first =
            |row: u32| (row - all.row) as usize * all.cols() + (from.col - all.col) as usize;
        let of_row = |row: u32| &elements[first(row)..][..from.cols()];
        match from.rows() {
            _ if from.is_empty() => drop(round.put_copy(&[], to)),
            1 => drop(round.put_copy(of_row(from.row), to)),
            _ => {
                let rows = (from.row..from.row_end).flat_map(of_row);
                let elements: SmallVec<[T; 32]> = rows.copied().collect();
                drop(round.put_copy(&elements, to));
            }
        }
    }
}
