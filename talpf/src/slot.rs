//! Memory slots: registered arrays, and their descriptors at every rank.
#![allow(unsafe_code, reason = "registers the memory of arrays with the device")]

mod descriptor;
mod part;
mod remote_region;
mod table;

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use ibverbs_sim::{Access, LocalKey, MemoryRegion, ProtectionDomain, RemoteAddress};
use talpf_primitives::Mutex;
use talpf_runtime::{Array, ArrayLabel, Group, InOut, Matrix, Mode, Rect, Region, while_free};

use crate::all_gather::Gathered;
use crate::error::Error;
use crate::numbers::{LOCAL_SLOT, Rank};

pub use self::remote_region::RemoteRegion;

pub(crate) use self::part::{Located, Part};
pub(crate) use self::remote_region::KeptRemote;
pub(crate) use self::table::SlotTable;

use self::descriptor::SlotDescriptor;

/// A registered array. Clones are handles of the same slot.
///
/// A slot belongs to its run: its use in another run is an error.
pub struct MemorySlot<T> {
    pub(crate) slot: Arc<Slot>,
    marker: PhantomData<fn(T) -> T>,
}

impl<T> MemorySlot<T> {
    pub(crate) fn new(slot: Arc<Slot>) -> Self {
        MemorySlot { slot, marker: PhantomData }
    }
}

impl<T> Clone for MemorySlot<T> {
    fn clone(&self) -> Self {
        MemorySlot::new(Arc::clone(&self.slot))
    }
}

impl<T> fmt::Debug for MemorySlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemorySlot {} ({:?})", self.slot.number, self.slot.usage)
    }
}

/// An array that can be registered: an [`Array`] or a [`Matrix`].
pub trait Registrable: private::Memory + Clone + Send + Sync + 'static {
    /// Type of the elements, for which any bytes are valid.
    type Element: Pod;
}

impl<T: Pod + Send + Sync> Registrable for Array<T> {
    type Element = T;
}

impl<T: Pod + Send + Sync> Registrable for Matrix<T> {
    type Element = T;
}

mod private {
    /// Memory that a handle of an array keeps. Sealed, as the device relies on it.
    pub trait Memory {
        #[doc(hidden)]
        fn parts(&self) -> super::Parts;

        /// Returns the region of all elements.
        #[doc(hidden)]
        fn whole(&self) -> talpf_runtime::Region<'_, ()>;
    }
}

/// The memory of an array.
#[doc(hidden)]
pub struct Parts {
    array: u64,
    start: *mut u8,
    rows: usize,
    cols: usize,
}

impl<T: Pod + Send + Sync> private::Memory for Array<T> {
    fn parts(&self) -> Parts {
        let start = self.as_mut_ptr().cast();
        Parts { array: self.id(), start, rows: 1, cols: self.len() }
    }

    fn whole(&self) -> Region<'_, ()> {
        self.all().without_data()
    }
}

impl<T: Pod + Send + Sync> private::Memory for Matrix<T> {
    fn parts(&self) -> Parts {
        let start = self.as_mut_ptr().cast();
        Parts { array: self.id(), start, rows: self.rows(), cols: self.cols() }
    }

    fn whole(&self) -> Region<'_, ()> {
        self.all().without_data()
    }
}

/// The use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Source and destination of this rank's own operations.
    Local,
    /// As `Local`, and for peers inside windows.
    Windowed,
    /// As `Local`, and for peers at any time.
    Raw,
}

/// The end of an error about an operation on a remote region of a local slot.
const NOT_GLOBAL: &str = ": peers reach slots of `register_global` and `register_raw`";

/// A slot of this rank.
pub(crate) struct Slot {
    /// Number of the run, see [`Sender::run`](crate::sender::Sender::run).
    run: u64,
    /// Number of the collective call that registered the slot, the same at every rank.
    pub(crate) number: u32,
    pub(crate) array: u64,
    pub(crate) element_bytes: u64,
    pub(crate) usage: Use,
    deregistered: AtomicBool,
    /// Descriptor of the memory of this rank.
    descriptor: SlotDescriptor,
    local_key: LocalKey,
    /// The registration, dropped before the array.
    region: Mutex<Option<MemoryRegion>>,
    /// Descriptors of the slot at every rank; empty for a local slot.
    peers: Vec<SlotDescriptor>,
    memory: Box<dyn private::Memory + Send + Sync>,
}

impl Slot {
    /// Registers an array. A global slot gets its number later.
    fn new<A: Registrable>(
        domain: &ProtectionDomain,
        array: &A,
        run: u64,
        usage: Use,
    ) -> Result<Self, Error> {
        let parts = array.parts();
        let element_bytes = size_of::<A::Element>();
        let access = match usage {
            Use::Local => Access::LOCAL_WRITE,
            Use::Windowed | Use::Raw => Access::ALL,
        };
        let start = NonNull::new(parts.start).unwrap_or(NonNull::dangling());
        // SAFETY: the slot keeps a handle of the array until after the region is dropped. The
        // device touches the memory for posted requests only: as source or destination of an
        // operation of this rank, which holds a guard of that part until it is complete; for a
        // peer inside a window, which holds a guard too and serialises overlapping operations (R5
        // to R7); for the peer of a channel, whose writes go to a buffer that the target holds a
        // guard of (see `double_buffered_channel`); or through a raw slot, for which `register_raw`
        // makes the program answer, or the credits of a queue (see `queue`) or of a sampled value.
        let region =
            unsafe { domain.register(start, parts.rows * parts.cols * element_bytes, access)? };
        let descriptor = SlotDescriptor {
            address: region.address(),
            key: region.remote_key(),
            rows: parts.rows as u64,
            cols: parts.cols as u64,
            element_bytes: element_bytes as u64,
            raw: usage == Use::Raw,
        };
        Ok(Slot {
            run,
            number: LOCAL_SLOT,
            array: parts.array,
            element_bytes: element_bytes as u64,
            usage,
            deregistered: AtomicBool::new(false),
            descriptor,
            local_key: region.local_key(),
            region: Mutex::new(Some(region)),
            peers: Vec::new(),
            memory: Box::new(array.clone()),
        })
    }

    /// Returns the region of all elements.
    pub(crate) fn whole(&self) -> Region<'_, ()> {
        self.memory.whole()
    }

    /// Returns the number of elements from one row to the next.
    #[inline]
    pub(crate) fn cols(&self) -> u64 {
        self.descriptor.cols
    }

    /// Returns the numbers of rows and columns of the slot at `rank`; `None` if there is none.
    #[inline]
    fn shape_at(&self, rank: Rank) -> Option<(u64, u64)> {
        self.peers.get(rank.index()).map(|descriptor| (descriptor.rows, descriptor.cols))
    }

    /// Returns the remote address of a piece of one row of this rank's memory. `rank` is this one.
    pub(crate) fn piece_of_row(&self, rank: Rank, piece: &Rect) -> Result<RemoteAddress, Error> {
        let located = self.rectangle(&self.descriptor, rank, *piece, piece.cols() as u64)?;
        Ok(located.remote)
    }

    /// Writes pieces of consecutive elements, each with the number of its first one, into the memory of this rank,
    /// all of which `guard` holds.
    ///
    /// **Errors**: elements that do not exist; a guard of something else.
    pub(crate) fn write<'b, T, D>(
        &self,
        rank: Rank,
        guard: &mut InOut<T, D>,
        pieces: impl Iterator<Item = (u64, &'b [u8])>,
    ) -> Result<(), Error> {
        let (array, held) = (self.memory.parts().array, guard.rect());
        if guard.array_id() != array || held != self.whole().rect() {
            let (index, end, len) = (held.col.into(), held.col_end.into(), self.descriptor.len());
            return Err(Error::OutOfSlot { slot: self.number, rank, index, end, len });
        }
        // SAFETY: the guard, which is of the array, lives as long as the call.
        unsafe { self.write_alone(rank, pieces) }
    }

    /// Writes pieces as [`Slot::write`] does, at once. `None` if tasks of the group use the array.
    pub(crate) fn write_if_free<'b>(
        &self,
        rank: Rank,
        group: &Group,
        pieces: impl Iterator<Item = (u64, &'b [u8])>,
    ) -> Option<Result<(), Error>> {
        while_free(group, &self.whole(), Mode::InOut, || {
            // SAFETY: nobody uses the array during the call.
            unsafe { self.write_alone(rank, pieces) }
        })
    }

    /// Writes pieces of consecutive elements, each with the number of its first one, into the memory of this rank.
    ///
    /// **Errors**: elements that do not exist.
    ///
    /// # Safety
    /// Nobody else reads or writes the array during the call.
    unsafe fn write_alone<'b>(
        &self,
        rank: Rank,
        pieces: impl Iterator<Item = (u64, &'b [u8])>,
    ) -> Result<(), Error> {
        let start = self.memory.parts().start;
        let (len, size) = (self.descriptor.len(), self.element_bytes as usize);
        for (index, bytes) in pieces {
            let end = index.saturating_add((bytes.len() / size.max(1)) as u64);
            if end > len {
                return Err(Error::OutOfSlot { slot: self.number, rank, index, end, len });
            }
            // SAFETY: the array has `len` elements, and this one is not after the last.
            let to = unsafe { start.add(index as usize * size) };
            // SAFETY: the elements exist, as was checked, any bytes are valid ones, and nobody else uses the
            // array, as the caller says. The bytes are of a batch, which is no memory of an array.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
        Ok(())
    }

    /// Deregisters the memory: when this returns, no operation of a peer lands in it any more.
    pub(crate) fn revoke(&self) {
        // The lock is held until the region is dropped, as other callers rely on that.
        let mut region = self.region.lock();
        drop(region.take());
    }

    /// Sets the number and the descriptors that all ranks gave in the collective call.
    fn with_peers(mut self, gathered: &Gathered) -> Result<Self, Error> {
        self.number = match u32::try_from(gathered.number) {
            Ok(number) if number < LOCAL_SLOT => number,
            _ => {
                let (value, limit) = (gathered.number, u64::from(LOCAL_SLOT));
                return Err(Error::Limit { what: "number of collective calls", value, limit });
            }
        };
        for (rank, bytes) in gathered.each() {
            let descriptor = SlotDescriptor::from_bytes(bytes).ok_or_else(|| {
                let what = format!("{} bytes as the descriptor of a slot", bytes.len());
                Error::BadControlMessage { rank, what }
            })?;
            if descriptor.element_bytes != self.element_bytes {
                let (here, there) = (self.element_bytes, descriptor.element_bytes);
                return Err(Error::SlotMismatch { slot: self.number, here, there, rank });
            }
            self.peers.push(descriptor);
        }
        Ok(self)
    }

    pub(crate) fn local_key(&self) -> LocalKey {
        self.local_key
    }

    /// Checks that peers reach the slot in a run.
    ///
    /// **Errors**: a slot of another run, or deregistered, or a local one.
    pub(crate) fn check_global(&self, run: u64, rank: Rank) -> Result<(), Error> {
        self.locate(run, rank, Part::From(0), 0).map(drop)
    }

    /// Finds the `len` elements of a part of the slot at `rank`, for an operation of `run`, if they
    /// exist and the part has no rows.
    // Returned in registers: bytes that are stored in halves and loaded whole stall.
    #[inline(always)]
    pub(crate) fn find(&self, run: u64, rank: Rank, part: Part, len: u64) -> Option<Located> {
        let Part::From(index) = part else { return None };
        let is_usable = self.run == run && !self.deregistered.load(Ordering::Relaxed);
        let descriptor = self.peers.get(rank.index()).filter(|_| is_usable)?;
        let end = index.checked_add(len).filter(|end| *end <= descriptor.len())?;
        Some(self.consecutive(descriptor, index, end))
    }

    /// Finds the `len` elements of a part of the slot at `rank`, for an operation of `run`.
    ///
    /// **Errors**: a slot of another run, or deregistered, or that peers do not reach; no such
    /// rank; elements that do not exist; a rectangle of another length.
    #[inline]
    pub(crate) fn locate(
        &self,
        run: u64,
        rank: Rank,
        part: Part,
        len: u64,
    ) -> Result<Located, Error> {
        match self.find(run, rank, part, len) {
            Some(located) => Ok(located),
            None => self.locate_slow(run, rank, part, len),
        }
    }

    /// As [`Slot::locate`], for a rectangle or an error.
    #[inline(never)]
    fn locate_slow(&self, run: u64, rank: Rank, part: Part, len: u64) -> Result<Located, Error> {
        let slot = self.number;
        if self.run != run {
            return Err(Error::SlotOfOtherRun { slot });
        }
        if self.deregistered.load(Ordering::Relaxed) {
            return Err(Error::NoSuchSlot { slot });
        }
        let Some(descriptor) = self.peers.get(rank.index()) else {
            return Err(if self.peers.is_empty() {
                Error::NotRegistered { array: ArrayLabel::of_id(self.array), why: NOT_GLOBAL }
            } else {
                Error::NoSuchRank { rank, ranks: self.peers.len() as u32 }
            });
        };
        match part {
            Part::Rectangle(rect) => self.rectangle(descriptor, rank, rect, len),
            Part::From(index) => {
                let (end, len) = (index.saturating_add(len), descriptor.len());
                Err(Error::OutOfSlot { slot, rank, index, end, len })
            }
        }
    }

    #[inline(always)]
    fn consecutive(&self, descriptor: &SlotDescriptor, index: u64, end: u64) -> Located {
        let address = descriptor.address + index * self.element_bytes;
        let remote = RemoteAddress { address, key: descriptor.key };
        Located { remote, index, end, rows: 1, stride: 0, windowed: !descriptor.raw }
    }

    /// Finds a rectangle of `len` elements in the slot at `rank`.
    fn rectangle(
        &self,
        descriptor: &SlotDescriptor,
        rank: Rank,
        rect: Rect,
        len: u64,
    ) -> Result<Located, Error> {
        let (slot, SlotDescriptor { rows, cols, .. }) = (self.number, *descriptor);
        let (height, width) = (rect.rows() as u64, rect.cols() as u64);
        let (row_end, col_end) = (u64::from(rect.row) + height, u64::from(rect.col) + width);
        // A range that ends before it begins has no elements, and may end anywhere.
        let is_turned = rect.row_end < rect.row || rect.col_end < rect.col;
        if is_turned || row_end > rows || col_end > cols {
            let (index, end) = (u64::from(rect.col), u64::from(rect.col_end));
            return Err(if (rows, rect.row, rect.row_end) == (1, 0, 1) {
                Error::OutOfSlot { slot, rank, index, end, len: cols }
            } else {
                Error::OutOfMatrix { slot, rank, rect, rows, cols }
            });
        }
        if height * width != len {
            return Err(Error::OtherLength { slot, rank, rect, len });
        }
        let index = u64::from(rect.row) * cols + u64::from(rect.col);
        if height <= 1 || width == cols || len == 0 {
            return Ok(self.consecutive(descriptor, index, index + len));
        }
        let end = index + (height - 1) * cols + width;
        // No matrix has more rows or columns than the type of their numbers holds.
        let (height, stride) = (height as u32, cols as u32);
        Ok(Located { rows: height, stride, ..self.consecutive(descriptor, index, end) })
    }
}
