//! Batches of short puts for other ranks, and their way into the slots there.

use smallvec::{SmallVec, smallvec};
use talpf_runtime::{InOut, JoinHandle};

use super::AT_ONCE;
use crate::error::Error;
use crate::lane::Lane;
use crate::numbers::{LOCAL_SLOT, Rank};
use crate::superstep_exchange::{PutBatch, PutBatches, PutPiece};

/// Batches that a rank hands over at the end of a superstep: one for each slot of each target.
#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) batches: SmallVec<[(Rank, PutBatch); 1]>,
    /// Number of the batch that was used last.
    last: usize,
}

impl Outgoing {
    /// Returns the batch for a slot of a target.
    #[inline]
    pub(super) fn batch(&mut self, target: Rank, slot: u32) -> &mut PutBatch {
        let is_it = |(to, batch): &(Rank, PutBatch)| *to == target && batch.slot == slot;
        if !self.batches.get(self.last).is_some_and(is_it) {
            self.last = self.batches.iter().position(is_it).unwrap_or_else(|| {
                self.batches.push((target, PutBatch::new(slot)));
                self.batches.len() - 1
            });
        }
        &mut self.batches[self.last].1
    }
}

/// Task that writes batches into a slot.
type Write = JoinHandle<Result<(), Error>>;

/// Tasks that write batches into slots.
pub(super) type Writes = SmallVec<[Write; 1]>;

/// Writes batches into their slots: at once if they are short and no task uses the slot, else by a task for each
/// slot.
///
/// **Errors**: a slot that this rank has deregistered; elements that do not exist.
pub(super) fn write_batches(lane: &Lane, mut batches: PutBatches) -> Result<Writes, Error> {
    let mut writes = Writes::new();
    match batches.len() {
        0 => {}
        1 => writes.extend(write(lane, batches)?),
        _ => {
            // Those of one slot stay in their order.
            batches.sort_by_key(|batch| batch.slot);
            let mut batches = batches.into_iter().peekable();
            while let Some(first) = batches.next() {
                let slot = first.slot;
                let mut of_slot: PutBatches = smallvec![first];
                while let Some(next) = batches.next_if(|batch| batch.slot == slot) {
                    of_slot.push(next);
                }
                writes.extend(write(lane, of_slot)?);
            }
        }
    }
    Ok(writes)
}

/// Writes batches into their slot. Returns the task that does, if one has to.
fn write(lane: &Lane, batches: PutBatches) -> Result<Option<Write>, Error> {
    let number = batches.first().map_or(LOCAL_SLOT, |batch| batch.slot);
    let slot = lane.at.sender().slots.numbered(number)?;
    let (rank, group) = (lane.at.rank(), lane.group());
    if let [batch] = batches.as_slice()
        && batch.bytes.len() <= AT_ONCE
        && let Some(written) = slot.write_if_free(rank, group, pieces_of(batch))
    {
        return written.map(|()| None);
    }
    let written = slot.clone();
    let task = group.task("put").communicates().inline().inout(&slot.whole());
    Ok(Some(task.run(move |mut guard: InOut<()>| {
        batches.iter().try_for_each(|batch| written.write(rank, &mut guard, pieces_of(batch)))
    })?))
}

/// Iterates over the pieces of a batch, with their bytes.
fn pieces_of(batch: &PutBatch) -> impl Iterator<Item = (u64, &[u8])> {
    let elements: u64 = batch.pieces.iter().map(|piece| piece.end - piece.index).sum();
    let element_bytes = batch.bytes.len() / elements.max(1) as usize;
    let mut rest = batch.bytes.as_slice();
    batch.pieces.iter().map(move |&PutPiece { index, end }| {
        let (bytes, after) = rest.split_at((end - index) as usize * element_bytes);
        rest = after;
        (index, bytes)
    })
}
