//! Short puts, which travel in their requests or in batches.
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
use talpf_runtime::{In, JoinHandle, Rect, Region, read_if_free};

use super::AT_ONCE;
use super::outgoing::Outgoing;
use crate::error::Error;
use crate::lane::Lane;
use crate::numbers::Rank;
use crate::operation::OpenRound;
use crate::slot::{Located, MemorySlot, Part, RemoteRegion, Slot};

/// Short puts that are queued together, of elements of any type.
pub(super) trait Puts<'r>: Send + Sync {
    /// Adds a put, if it is like the ones that are queued here, or were before.
    fn add(&mut self, put: &ShortPut<'_, 'r>) -> bool;

    /// Removes all puts: later ones that are like them use the memory. Returns `false` if it had none.
    fn clear(&mut self) -> bool;

    /// Begins to read the elements, if there are puts.
    ///
    /// **Errors**: a region outside its array.
    fn begin(&mut self, lane: &Lane) -> Result<(), Error>;

    /// Waits until the elements are read.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>>;

    /// Adds the puts, whose elements are read, to the batches of their targets, in run number `run`.
    ///
    /// **Errors**: elements that do not exist.
    fn gather(&self, run: u64, outgoing: &mut Outgoing) -> Result<(), Error>;

    /// Issues the puts, whose elements are read.
    fn issue(&self, round: &OpenRound);
}

/// Short put that is about to be queued.
pub(super) struct ShortPut<'s, 'r> {
    /// Type of the guard that the put reads.
    pub(super) guard: TypeId,
    pub(super) from: &'s Region<'r, ()>,
    pub(super) slot: &'s Arc<Slot>,
    pub(super) rank: Rank,
    pub(super) part: Part,
    /// Most bytes of a short put.
    pub(super) longest: usize,
}

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

/// Single put, or several of consecutive elements.
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

impl<'r, T, D> ShortPuts<'r, T, D> {
    /// Adds a piece, if what it reads forms a rectangle with what the others read.
    #[inline(never)]
    fn add_piece(&mut self, from: &Region<'r, ()>, piece: Piece) -> bool {
        let all = match self.puts.is_empty() {
            true => self.from.moved_to(from),
            false => self.from.joined(from),
        };
        let joins = all.map(|all| self.from = all).is_some();
        if joins {
            self.puts.push(piece);
        }
        joins
    }
}

impl<'r, T: Pod + Send + Sync, D: Send + Sync + 'static> Puts<'r> for ShortPuts<'r, T, D> {
    #[inline]
    fn add(&mut self, put: &ShortPut<'_, 'r>) -> bool {
        let ShortPut { guard, from, slot, rank, part, longest } = *put;
        if guard != TypeId::of::<In<T, D>>() || !Arc::ptr_eq(slot, &self.slot.slot) {
            return false;
        }
        let piece = Piece { from: from.rect(), rank, part };
        let most = longest / size_of::<T>().max(1);
        match self.puts.last_mut() {
            Some(last) if last.is_before(&piece, most) && self.from.extend_to(from) => {
                last.from.col_end = piece.from.col_end;
                true
            }
            _ => self.add_piece(from, piece),
        }
    }

    fn clear(&mut self) -> bool {
        let had_some = !self.puts.is_empty();
        self.puts.clear();
        self.copy = Copy::None;
        had_some
    }

    fn begin(&mut self, lane: &Lane) -> Result<(), Error> {
        if self.puts.is_empty() {
            return Ok(());
        }
        let mut elements = Few::new();
        if self.from.len().saturating_mul(size_of::<T>()) <= AT_ONCE
            && read_if_free(lane.group(), &self.from, |row| elements.extend_from_slice(row))
                .is_some()
        {
            self.copy = Copy::Read(elements);
            return Ok(());
        }
        let task = lane.group().task("copy").inline().input(&self.from);
        let copy = |from: In<T, D>| {
            let mut elements = Few::new();
            from.row_slices().for_each(|row| elements.extend_from_slice(row));
            elements
        };
        self.copy = Copy::Reading(task.run(copy)?);
        Ok(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Copy::Reading(reading) = &mut self.copy {
            self.copy = Copy::Read(ready!(Pin::new(reading).poll(cx))?);
        }
        Poll::Ready(Ok(()))
    }

    fn gather(&self, run: u64, outgoing: &mut Outgoing) -> Result<(), Error> {
        let Copy::Read(elements) = &self.copy else { return Ok(()) };
        let (slot, all) = (&self.slot.slot, (self.from.rect(), elements.as_slice()));
        self.puts.iter().try_for_each(|put| {
            let len = put.from.rows() * put.from.cols();
            let Located { index, end, rows, stride, .. } =
                slot.locate(run, put.rank, put.part, len as u64)?;
            if len == 0 {
                return Ok(());
            }
            let batch = outgoing.batch(put.rank, slot.number);
            put.with_elements(all, |elements| match rows {
                1 => batch.add(index, end, bytemuck::cast_slice(elements)),
                _ => {
                    let cols = elements.len() / rows as usize;
                    let first = (0..).map(|row| index + row * u64::from(stride));
                    for (row, first) in elements.chunks(cols).zip(first) {
                        batch.add(first, first + cols as u64, bytemuck::cast_slice(row));
                    }
                }
            });
            Ok(())
        })
    }

    fn issue(&self, round: &OpenRound) {
        let Copy::Read(elements) = &self.copy else { return };
        let all = (self.from.rect(), elements.as_slice());
        self.puts.iter().for_each(|put| {
            let to = self.slot.part(put.rank, put.part);
            put.with_elements(all, |elements| drop(round.put_copy(elements, to)));
        });
    }
}

impl Piece {
    /// Returns `true` if `next` puts the elements after those of this piece to the elements after those to which this
    /// one puts, and both are at most `most` elements.
    #[inline]
    fn is_before(&self, next: &Piece, most: usize) -> bool {
        let (Part::From(index), Part::From(next_index)) = (self.part, next.part) else {
            return false;
        };
        let (cols, rect) = (self.from.cols(), next.from);
        let Rect { row, row_end, col_end, .. } = self.from;
        let follows = (row, row_end, col_end) == (rect.row, rect.row_end, rect.col)
            && self.from.rows() == 1
            && index.checked_add(cols as u64) == Some(next_index);
        follows && self.rank == next.rank && cols + rect.cols() <= most
    }

    /// Calls `put` with the elements of the put, out of those of a rectangle.
    #[inline]
    fn with_elements<T: Pod>(&self, (all, elements): (Rect, &[T]), put: impl FnOnce(&[T])) {
        let from = self.from;
        let first =
            |row: u32| (row - all.row) as usize * all.cols() + (from.col - all.col) as usize;
        let of_row = |row: u32| &elements[first(row)..][..from.cols()];
        match from.rows() {
            _ if from.is_empty() => put(&[]),
            1 => put(of_row(from.row)),
            _ => {
                let rows = (from.row..from.row_end).flat_map(of_row);
                let elements: SmallVec<[T; 32]> = rows.copied().collect();
                put(&elements);
            }
        }
    }
}
