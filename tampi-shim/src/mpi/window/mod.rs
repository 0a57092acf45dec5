//! One-sided access over MPI: windows that tasks of all ranks read, write and update.
//!
//! A window stays open to all its ranks (a passive target). Transfers complete locally: a buffer
//! that was put may be reused, one that was got holds what was there. [`Window::flush`] waits until
//! what was put is visible at its target. Nothing keeps transfers that overlap apart, other than
//! that updates of single elements are atomic: programs order them by flushes and messages.
//! The memory of a window is reached by transfers only, that of the own rank too.
//!
//! What MPI has no request for blocks a thread aside, not a worker.
//!
//! MPICH before 4.1 loses puts over UCX unless `UCX_RCACHE_ENABLE=n` is set, and Open MPI 4 crashes
//! when a rank swaps an element of its own unless `OMPI_MCA_osc=^rdma` is set: without these, what
//! would go wrong is refused.
#![allow(unsafe_code, reason = "hands the memory of operations to MPI")]

mod element;
mod known_faults;
mod raw;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use self::element::{Element, Update};
use self::raw::{Place, RawWindow};
use super::transport::MpiTransport;
use super::{Refused, Shape, ffi};
use crate::buffer::{Buffer, BufferMut, Layout};
use crate::communicator::{Communicator, Traffic};
use crate::error::Error;
use crate::rank::Rank;
use crate::request::Request;
use crate::status::Status;
use crate::tag::Tag;
use crate::transport::Start;

/// Elements of every rank that all ranks can reach.
pub struct Window<T> {
    communicator: Communicator,
    transport: Arc<MpiTransport>,
    raw: RawWindow,
    lengths: Box<[u64]>,
    elements: PhantomData<fn(T) -> T>,
}

impl<T: Element> Window<T> {
    /// Allocates `length` elements, all zero, at this rank. Every rank of the communicator calls
    /// it, and may give another length.
    ///
    /// **Errors**: the communicator's messages are not carried by MPI; what MPI refuses; an MPI that
    /// loses puts, with the variable to be set; at all ranks, a length of more bytes than an address
    /// counts.
    pub async fn allocate(communicator: &Communicator, length: usize) -> Result<Self, Error> {
        let not_mpi = || refused("MPI_Win_allocate", "the communicator is not one of MPI");
        let transport = communicator.transport().mpi().ok_or_else(not_mpi)?;
        let version = transport.library.version()?;
        if let Some(reason) = known_faults::of_puts(&version, variable) {
            return Err(refused("MPI_Win_allocate", reason));
        }
        let room = vec![0; communicator.size() as usize];
        let (_, lengths) = communicator.allgather(vec![length as u64], room).await?;
        let size = size_of::<T>();
        let limit = isize::MAX as u64 / size as u64;
        if let Some(&value) = lengths.iter().find(|length| **length > limit) {
            return Err(Error::Limit { what: "length of a window", value, limit });
        }
        let context = communicator.context(Traffic::PointToPoint);
        let raw = transport
            .wait_aside(communicator, move |this| {
                let all = this.communicator(context)?;
                RawWindow::allocate(all, length * size, size)
            })
            .await?;
        transport.open_windows.fetch_add(1, Ordering::SeqCst);
        transport.wake_poller();
        // Nothing comes before all memory is zero.
        communicator.barrier().await?;
        let communicator = communicator.clone();
        let lengths = lengths.into_boxed_slice();
        Ok(Window { communicator, transport, raw, lengths, elements: PhantomData })
    }

    /// The number of elements of a rank.
    ///
    /// **Errors**: there is no such rank.
    pub fn length(&self, rank: Rank) -> Result<u64, Error> {
        self.communicator.peer(rank).map(|peer| self.lengths[peer.rank.index()])
    }

    /// Starts to write `buffer` to the elements of `target` from `first` on.
    ///
    /// **Completion**: local: the buffer may be reused.
    /// **Errors**: beyond the end of the window.
    pub fn put<B: Buffer<Element = T>>(
        &self,
        mut buffer: B,
        target: Rank,
        first: usize,
    ) -> Request<B> {
        let (bytes, raw) = (buffer.layout(), self.raw);
        let start = self.start(bytes, target, first, move |place| {
            let there = Shape::contiguous(bytes.bytes() as usize)?;
            // SAFETY: the request keeps the buffer, unused, until the transfer has ended.
            unsafe { raw.start_put(bytes.first, &Shape::of(bytes)?, place, &there) }
        });
        self.request(buffer, start)
    }

    /// Starts to read the elements of `target` from `first` on into `buffer`.
    ///
    /// **Completion**: they are in the buffer.
    /// **Errors**: beyond the end of the window.
    pub fn get<B: BufferMut<Element = T>>(
        &self,
        mut buffer: B,
        target: Rank,
        first: usize,
    ) -> Request<B> {
        let (bytes, raw) = (buffer.layout(), self.raw);
        let start = self.start(bytes, target, first, move |place| {
            let there = Shape::contiguous(bytes.bytes() as usize)?;
            // SAFETY: the request keeps the buffer, unused, until the transfer has ended.
            unsafe { raw.start_get(bytes.first, &Shape::of(bytes)?, place, &there) }
        });
        self.request(buffer, start).on_failure(B::undefined)
    }

    /// Starts to update the elements of `target` from `first` on with those of `buffer`, each of
    /// them atomically.
    ///
    /// **Completion**: local: the buffer may be reused.
    /// **Errors**: beyond the end of the window; an update that the elements do not have.
    pub fn accumulate<B: Buffer<Element = T>>(
        &self,
        mut buffer: B,
        update: Update,
        target: Rank,
        first: usize,
    ) -> Request<B> {
        let (bytes, raw) = (buffer.layout(), self.raw);
        let start = self.start(bytes, target, first, move |place| {
            let (size, datatype) = (size_of::<T>(), T::datatype());
            let here = Shape::of_elements(bytes, size, datatype)?;
            let there = Shape::elements(bytes.bytes() as usize / size, datatype)?;
            let operation = update.operation();
            // SAFETY: the request keeps the buffer, unused, until the transfer has ended.
            unsafe { raw.start_accumulate(bytes.first, &here, place, &there, operation) }
        });
        self.request(buffer, start)
    }

    /// Updates element `at` of `target` with `value`, atomically, and returns what it was.
    ///
    /// **Errors**: beyond the end of the window; an update that the elements do not have.
    pub async fn fetch_and_op(
        &self,
        value: T,
        update: Update,
        target: Rank,
        at: usize,
    ) -> Result<T, Error> {
        let mut pair = vec![value, value];
        let (first, raw) = (crate::buffer::sealed::Memory::layout(&mut pair), self.raw);
        let one = Layout { row_bytes: size_of::<T>(), ..first };
        let start = self.start(one, target, at, move |place| {
            let (size, datatype) = (size_of::<T>(), T::datatype());
            // The whole of it, which may change threads as its address alone may not.
            let (one, operation) = (one, update.operation());
            // SAFETY: the request keeps both elements, unused, until the transfer has ended.
            unsafe { raw.start_fetch(one.first, size, datatype, place, operation) }
        });
        Ok(self.request(pair, start).await?.0[1])
    }

    /// Replaces element `at` of `target` by `new` if it is `expected`, atomically, and returns what
    /// it was.
    ///
    /// **Errors**: beyond the end of the window; elements that are floats; an MPI that crashes, with
    /// the variable to be set.
    /// **Cost**: a thread aside.
    pub async fn compare_and_swap(
        &self,
        expected: T,
        new: T,
        target: Rank,
        at: usize,
    ) -> Result<T, Error> {
        let (place, raw) = (self.place(target, at, 1)?, self.raw);
        if target == self.communicator.rank()
            && let Some(reason) =
                known_faults::of_own_swaps(&self.transport.library.version()?, variable)
        {
            return Err(refused("MPI_Compare_and_swap", reason));
        }
        let swap = move |_: &MpiTransport| {
            let mut three = [new, expected, expected];
            raw.compare_and_swap(&mut three, T::datatype(), place)?;
            Ok(three[2])
        };
        self.transport.wait_aside(&self.communicator, swap).await
    }

    /// Waits until everything that was put to `target`, or updated there, is visible there.
    ///
    /// **Errors**: there is no such rank. **Cost**: a thread aside.
    pub async fn flush(&self, target: Rank) -> Result<(), Error> {
        let (place, raw) = (self.place(target, 0, 0)?, self.raw);
        let flush = move |_: &MpiTransport| raw.flush(place.rank);
        self.transport.wait_aside(&self.communicator, flush).await
    }

    /// Ends the window. Every rank of the communicator calls it, with nothing under way. A window
    /// that is dropped instead stays until the run ends.
    pub async fn free(self) -> Result<(), Error> {
        self.communicator.barrier().await?;
        let raw = self.raw;
        self.transport.wait_aside(&self.communicator, move |_| raw.free()).await?;
        self.transport.open_windows.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    fn place(&self, target: Rank, first: usize, count: u64) -> Result<Place, Error> {
        let length = self.length(target)?;
        match (first as u64).checked_add(count).filter(|end| *end <= length) {
            Some(_) => Ok(Place { rank: target.0 as i32, first: first as ffi::MPI_Aint }),
            None => {
                let value = (first as u64).saturating_add(count);
                Err(Error::Limit { what: "end of a transfer", value, limit: length })
            }
        }
    }

    fn start(
        &self,
        bytes: Layout,
        target: Rank,
        first: usize,
        begin: impl FnOnce(Place) -> Result<super::RawRequest, Refused> + Send + 'static,
    ) -> Start {
        match self.place(target, first, bytes.bytes() / size_of::<T>() as u64) {
            Ok(place) => {
                let (source, bytes) = (target, bytes.bytes());
                let status = Status::new(source, Tag(0), bytes);
                self.transport.start_transfer(status, move || begin(place))
            }
            Err(error) => Start::failed(error),
        }
    }

    fn request<B: Send + 'static>(&self, buffer: B, start: Start) -> Request<B> {
        Request::new(buffer, start, self.communicator.transport())
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn refused(call: &'static str, reason: &str) -> Error {
    Refused { call, code: 0, reason: reason.to_owned() }.into()
}

impl<T> fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window of {:?}", self.communicator)
    }
}
