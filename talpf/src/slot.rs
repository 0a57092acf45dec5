//! Memory slots: registered arrays, and their descriptors at every rank.
#![allow(unsafe_code, reason = "registers the memory of arrays with the device")]

mod table;

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use ibverbs_sim::{Access, LocalKey, MemoryRegion, ProtectionDomain, RemoteAddress, RemoteKey};
use talpf_primitives::Mutex;
use talpf_runtime::{Array, ArrayLabel, Matrix, Rect};

use crate::all_gather::Gathered;
use crate::error::Error;
use crate::numbers::Rank;

pub(crate) use self::table::SlotTable;

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

    /// Returns the remote region that begins at element `index` of the slot at `rank`. Elements of
    /// a matrix are counted row after row, as the matrix is stored there.
    #[inline]
    pub fn at(&self, rank: impl Into<Rank>, index: usize) -> RemoteRegion<'_, T> {
        let rank = rank.into();
        RemoteRegion { slot: &self.slot, rank, index: index as u64, marker: PhantomData }
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

/// The first element in the memory of a rank that a put writes, or a get reads. The local region
/// determines the length.
pub struct RemoteRegion<'s, T> {
    pub(crate) slot: &'s Arc<Slot>,
    pub(crate) rank: Rank,
    pub(crate) index: u64,
    marker: PhantomData<fn(T) -> T>,
}

impl<T> Clone for RemoteRegion<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RemoteRegion<'_, T> {}

impl<T> fmt::Debug for RemoteRegion<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "element {} of slot {} at {}", self.index, self.slot.number, self.rank)
    }
}

/// A remote region that a task keeps.
pub(crate) struct KeptRemote<T> {
    slot: MemorySlot<T>,
    rank: Rank,
    index: u64,
}

impl<T> KeptRemote<T> {
    pub(crate) fn new(region: &RemoteRegion<'_, T>) -> Self {
        let RemoteRegion { slot, rank, index, .. } = *region;
        KeptRemote { slot: MemorySlot::new(Arc::clone(slot)), rank, index }
    }

    #[inline]
    pub(crate) fn region(&self) -> RemoteRegion<'_, T> {
        self.slot.at(self.rank, self.index as usize)
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
    }
}

/// The memory of an array.
#[doc(hidden)]
pub struct Parts {
    array: u64,
    start: *mut u8,
    len: usize,
    cols: usize,
}

impl<T: Pod + Send + Sync> private::Memory for Array<T> {
    fn parts(&self) -> Parts {
        let start = self.as_mut_ptr().cast();
        Parts { array: self.id(), start, len: self.len(), cols: self.len() }
    }
}

impl<T: Pod + Send + Sync> private::Memory for Matrix<T> {
    fn parts(&self) -> Parts {
        let start = self.as_mut_ptr().cast();
        Parts { array: self.id(), start, len: self.rows() * self.cols(), cols: self.cols() }
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
/// The number of every local slot, which no peer refers to.
const LOCAL: u32 = u32::MAX;

/// A slot of this rank.
pub(crate) struct Slot {
    /// Number of the run, see [`Sender::run`](crate::sender::Sender::run).
    run: u64,
    /// Number of the collective call that registered the slot, the same at every rank.
    pub(crate) number: u32,
    pub(crate) array: u64,
    /// Number of elements from one row to the next.
    pub(crate) cols: u64,
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
    _array: Box<dyn Any + Send + Sync>,
}

/// The description of a slot at one rank, as its peers need it.
#[derive(Clone, Copy)]
pub(crate) struct SlotDescriptor {
    address: u64,
    key: RemoteKey,
    len: u64,
    element_bytes: u64,
    raw: bool,
}

impl SlotDescriptor {
    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.address.to_le_bytes());
        bytes.extend(self.key.to_u32().to_le_bytes());
        bytes.extend(self.len.to_le_bytes());
        bytes.extend(self.element_bytes.to_le_bytes());
        bytes.push(u8::from(self.raw));
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (address, rest) = bytes.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (element_bytes, raw) = rest.split_first_chunk()?;
        let raw = match raw {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(SlotDescriptor {
            address: u64::from_le_bytes(*address),
            key: RemoteKey::from_u32(u32::from_le_bytes(*key)),
            len: u64::from_le_bytes(*len),
            element_bytes: u64::from_le_bytes(*element_bytes),
            raw,
        })
    }
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
        // makes the program answer.
        let region = unsafe { domain.register(start, parts.len * element_bytes, access)? };
        let descriptor = SlotDescriptor {
            address: region.address(),
            key: region.remote_key(),
            len: parts.len as u64,
            element_bytes: element_bytes as u64,
            raw: usage == Use::Raw,
        };
        Ok(Slot {
            run,
            number: LOCAL,
            array: parts.array,
            cols: parts.cols as u64,
            element_bytes: element_bytes as u64,
            usage,
            deregistered: AtomicBool::new(false),
            descriptor,
            local_key: region.local_key(),
            region: Mutex::new(Some(region)),
            peers: Vec::new(),
            _array: Box::new(array.clone()),
        })
    }

    /// Returns the remote address of a piece of one row of this rank's memory. `rank` is this one.
    pub(crate) fn piece_of_row(&self, rank: Rank, piece: &Rect) -> Result<RemoteAddress, Error> {
        let (index, len) =
            (u64::from(piece.row) * self.cols + u64::from(piece.col), self.descriptor.len);
        let end = index + piece.cols() as u64;
        if u64::from(piece.col_end) > self.cols || end > len {
            return Err(Error::OutOfSlot { slot: self.number, rank, index, end, len });
        }
        let address = self.descriptor.address + index * self.element_bytes;
        Ok(RemoteAddress { address, key: self.descriptor.key })
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
            Ok(number) if number < LOCAL => number,
            _ => {
                let (value, limit) = (gathered.number, u64::from(LOCAL));
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

    /// Checks for an operation of `run` that `len` elements from `index` lie in the slot at `rank`.
    /// Returns their remote address, and `true` if they need a window.
    #[inline]
    pub(crate) fn remote(
        &self,
        run: u64,
        rank: Rank,
        index: u64,
        len: u64,
    ) -> Result<(RemoteAddress, bool), Error> {
        if self.run != run {
            return Err(Error::SlotOfOtherRun { slot: self.number });
        }
        if self.deregistered.load(Ordering::Relaxed) {
            return Err(Error::NoSuchSlot { slot: self.number });
        }
        let Some(descriptor) = self.peers.get(rank.index()) else {
            return Err(if self.peers.is_empty() {
                Error::NotRegistered { array: ArrayLabel::of_id(self.array), why: NOT_GLOBAL }
            } else {
                Error::NoSuchRank { rank, ranks: self.peers.len() as u32 }
            });
        };
        match index.checked_add(len) {
            Some(end) if end <= descriptor.len => {
                let address = descriptor.address + index * self.element_bytes;
                Ok((RemoteAddress { address, key: descriptor.key }, !descriptor.raw))
            }
            end => {
                let end = end.unwrap_or(u64::MAX);
                Err(Error::OutOfSlot { slot: self.number, rank, index, end, len: descriptor.len })
            }
        }
    }
}
