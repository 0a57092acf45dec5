//! Collectives over the processes of a selection.
//!
//! Collectives that only move data are puts and gets of the superstep; reductions are folded in its sync. None
//! synchronises by itself, so a part of the processes can call one, and all are complete after the next sync.
#![allow(unsafe_code, reason = "reads the elements of C programs")]

use crate::ends::{Far, Near};
use crate::error::Result;
use crate::memory::Address;
use crate::misuse::{Misuse, Side};
use crate::process::Process;
use crate::reduction::{Call, Operator, Reduction, Snapshot};
use crate::scratch::Scratch;
use crate::selection::Selection;
use crate::slot_id::SlotId;

/// Collectives of a selection of processes.
#[derive(Debug)]
pub(crate) struct Collective {
    pub(crate) selection: Selection,
    /// Index of this process, if it takes part.
    pub(crate) index: Option<usize>,
    /// Number of this collective among those of its selection.
    number: u32,
    /// Largest size of an element to be reduced.
    largest_element: usize,
    /// Memory for the elements of all, which the program has asked for.
    elements: Scratch,
    /// Slot that a collective takes.
    pub(crate) slot: SlotId,
    /// Superstep of the latest reduction, and the number of reductions in it.
    calls: (u64, u32),
}

/// Result of a call that may be a mistake of the program.
type Checked<T> = std::result::Result<T, Misuse>;

impl Collective {
    /// Makes the collectives of a selection, which take one slot.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`](crate::error::Error::OutOfMemory) if there is no memory for an element of each
    /// process; then nothing has changed.
    pub(crate) fn new(
        process: &mut Process,
        selection: Selection,
        pid: u32,
        largest_element: usize,
    ) -> Result<Checked<Self>> {
        let mut elements = Scratch::default();
        let size = largest_element.checked_mul(selection.size());
        elements.reset(size.ok_or(crate::error::Error::OutOfMemory)?)?;
        let slot = process.register(true, Address::of(elements.as_mut_ptr()), 0);
        Ok(slot.map(|slot| {
            let count = process.collectives.entry(selection).or_insert(0);
            *count += 1;
            let (number, index) = (*count, selection.index(pid));
            Collective { selection, index, number, largest_element, elements, slot, calls: (0, 0) }
        }))
    }

    /// Returns the memory for the elements of all.
    pub(crate) fn buffer(&mut self) -> *mut u8 {
        self.elements.as_mut_ptr()
    }

    fn pid(&self, index: usize) -> u32 {
        self.selection.pid(index) as u32
    }

    /// Checks the index of a root.
    fn root(&self, root: u32) -> Checked<usize> {
        let size = self.selection.size();
        let is_inside = (root as usize) < size;
        is_inside.then_some(root as usize).ok_or(Misuse::Pid { pid: root, processes: size })
    }

    /// Gets `size` bytes of the root.
    pub(crate) fn broadcast(
        &self,
        process: &mut Process,
        source: SlotId,
        destination: SlotId,
        size: usize,
        root: u32,
    ) -> Checked<()> {
        self.get_from_root(process, source, 0, destination, size, root)
    }

    /// Gets the part of this process from the root.
    pub(crate) fn scatter(
        &self,
        process: &mut Process,
        source: SlotId,
        destination: SlotId,
        size: usize,
        root: u32,
    ) -> Checked<()> {
        let offset = self.index.map_or(Ok(0), |index| part(index, size, Side::Source))?;
        self.get_from_root(process, source, offset, destination, size, root)
    }

    fn get_from_root(
        &self,
        process: &mut Process,
        source: SlotId,
        offset: usize,
        destination: SlotId,
        size: usize,
        root: u32,
    ) -> Checked<()> {
        let root = self.root(root)?;
        if self.index.is_none_or(|index| index == root) || size == 0 {
            return Ok(());
        }
        let near = Near { slot: destination, offset: 0 };
        let far = Far { pid: self.pid(root), slot: source, offset };
        process.queue_unresolved(false, near, far, size)
    }

    /// Puts the part of this process to the root.
    pub(crate) fn gather(
        &self,
        process: &mut Process,
        source: SlotId,
        destination: SlotId,
        size: usize,
        root: u32,
    ) -> Checked<()> {
        let root = self.root(root)?;
        match self.index {
            Some(index) if index != root => {
                let offset = part(index, size, Side::Destination)?;
                self.put_to(process, root, source, 0, destination, offset, size)
            }
            _ => Ok(()),
        }
    }

    /// Puts the part of this process to all, or to all others.
    pub(crate) fn allgather(
        &self,
        process: &mut Process,
        source: SlotId,
        destination: SlotId,
        size: usize,
        exclude_myself: bool,
    ) -> Checked<()> {
        let Some(index) = self.index else { return Ok(()) };
        let offset = part(index, size, Side::Destination)?;
        let mut others =
            (0..self.selection.size()).filter(|other| *other != index || !exclude_myself);
        others
            .try_for_each(|other| self.put_to(process, other, source, 0, destination, offset, size))
    }

    /// Puts a part to each other process.
    pub(crate) fn alltoall(
        &self,
        process: &mut Process,
        source: SlotId,
        destination: SlotId,
        size: usize,
    ) -> Checked<()> {
        let Some(index) = self.index else { return Ok(()) };
        let to = part(index, size, Side::Destination)?;
        let mut others = (0..self.selection.size()).filter(|other| *other != index);
        others.try_for_each(|other| {
            let from = part(other, size, Side::Source)?;
            self.put_to(process, other, source, from, destination, to, size)
        })
    }

    #[expect(clippy::too_many_arguments, reason = "both ends of a message")]
    fn put_to(
        &self,
        process: &mut Process,
        index: usize,
        source: SlotId,
        from: usize,
        destination: SlotId,
        to: usize,
        size: usize,
    ) -> Checked<()> {
        if size == 0 {
            return Ok(());
        }
        let near = Near { slot: source, offset: from };
        let far = Far { pid: self.pid(index), slot: destination, offset: to };
        process.queue_unresolved(true, near, far, size)
    }

    /// Contributes `size` bytes to a reduction, whose result is written over them at the root, or at all.
    ///
    /// # Safety
    ///
    /// The bytes are memory of the program until the next sync has ended, and the operator is for them.
    pub(crate) unsafe fn reduce(
        &mut self,
        process: &mut Process,
        bytes: Address,
        size: usize,
        operator: Operator,
        root: Option<u32>,
    ) -> Checked<Result<()>> {
        let root = root.map(|root| self.root(root)).transpose()?;
        if let Operator::Reduce(_) = operator
            && size > self.largest_element
        {
            return Err(Misuse::ElementTooLarge { size, most: self.largest_element });
        }
        let Some(index) = self.index else { return Ok(Ok(())) };
        let mut copy = Scratch::default();
        if let Err(error) = copy.reset(size) {
            return Ok(Err(error));
        }
        // SAFETY: As the caller guarantees.
        unsafe { copy.append(bytes, size) };
        let calls = match self.calls {
            (superstep, calls) if superstep == process.superstep => calls + 1,
            _ => 1,
        };
        self.calls = (process.superstep, calls);
        let call = Call { selection: self.selection, collective: self.number, call: calls };
        process.queue().snapshots.push(Snapshot { call, bytes: copy });
        if root.is_none_or(|root| root == index) {
            process.reductions.push(Reduction { call, operator, result: bytes });
        }
        Ok(Ok(()))
    }
}

/// Returns the offset of a part.
fn part(index: usize, size: usize, side: Side) -> Checked<usize> {
    index.checked_mul(size).ok_or(Misuse::Overflow { side, offset: index, size })
}
