//! Windows: one-sided communication over MPI, by which tasks of all ranks read, write and update
//! memory.
//!
//! A window stays open to all its ranks (passive target). Transfers complete locally: the buffer of
//! a put may be reused, the buffer of a get holds the elements. [`Window::flush`] waits until puts
//! and updates are visible at their target. Transfers that overlap are not ordered, except that
//! updates of single elements are atomic: programs order them by flushes and messages. All access
//! to the memory of a window is by transfers, also that of the own rank.
//!
//! Operations that MPI has no request for block a blocking-call thread, not a worker.
//!
//! MPICH before 4.1 loses puts over UCX unless `UCX_RCACHE_ENABLE=n` is set, and Open MPI 4 crashes
//! when a rank swaps an element of its own unless `OMPI_MCA_osc=^rdma` is set: without these
//! variables the affected calls are errors.
#![allow(unsafe_code, reason = "hands the memory of operations to MPI")]

mod element;
mod known_faults;
mod raw;

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use talpf_runtime::ByteLayout;

pub use self::element::{Element, Update};
use self::raw::{RawWindow, WindowAddress};
use super::transport::MpiTransport;
use super::{Refused, Shape, ffi};
use crate::buffer::{Buffer, BufferMut};
use crate::communicator::{Communicator, Traffic};
use crate::error::Error;
use crate::rank::Rank;
use crate::request::Request;
use crate::status::Status;
use crate::tag::Tag;
use crate::transport::{Start, Transport};

/// Elements at every rank that all ranks can access.
pub struct Window<T> {
    communicator: Communicator,
    transport: Arc<MpiTransport>,
    raw: RawWindow,
    lengths: Box<[u64]>,
    elements: PhantomData<fn(T) -> T>,
}

impl<T: Element> Window<T> {
    /// Allocates `length` elements, all zero, at this rank. Every rank of the communicator calls
    /// it, each with a length of its own.
    ///
    /// **Errors**: the transport of the communicator is not MPI; an error of MPI; an MPI that loses
    /// puts, with the variable to set; at all ranks, a length with too many bytes for an address.
    pub async fn allocate(communicator: &Communicator, length: usize) -> Result<Self, Error> {
        let any: Arc<dyn Any + Send + Sync> = Arc::<dyn Transport>::clone(communicator.transport());
        let not_mpi = |_| refused("MPI_Win_allocate", "the communicator is not one of MPI");
        let transport = any.downcast::<MpiTransport>().map_err(not_mpi)?;
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
            .await_blocking(communicator, move |this| {
                let all = this.communicator(context)?;
                RawWindow::allocate(all, length * size, size)
            })
            .await?;
        transport.open_windows.fetch_add(1, Ordering::SeqCst);
        transport.sleeper.wake();
        // No transfer may come before all memory is zero.
        communicator.barrier().await?;
        let communicator = communicator.clone();
        let lengths = lengths.into_boxed_slice();
        Ok(Window { communicator, transport, raw, lengths, elements: PhantomData })
    }

    /// Returns the number of elements at a rank.
    ///
    /// **Errors**: no such rank.
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
        let start = self.start(bytes, target, first, move |address| {
            let there = Shape::contiguous(bytes.bytes() as usize)?;
            // SAFETY: the request keeps the buffer, unused, until the transfer has ended.
            unsafe { raw.start_put(bytes.first, &Shape::of(bytes)?, address, &there) }
        });
        self.request(buffer, start)
    }

    /// Starts to read the elements of `target` from `first` on into `buffer`.
    ///
    /// **Completion**: the elements are in the buffer.
    /// **Errors**: beyond the end of the window.
    pub fn get<B: BufferMut<Element = T>>(
        &self,
        mut buffer: B,
        target: Rank,
        first: usize,
    ) -> Request<B> {
        let (bytes, raw) = (buffer.layout(), self.raw);
        let start = self.start(bytes, target, first, move |address| {
            let there = Shape::contiguous(bytes.bytes() as usize)?;
            // SAFETY: the request keeps the buffer, unused, until the transfer has ended.
            unsafe { raw.start_get(bytes.first, &Shape::of(bytes)?, address, &there) }
        });
        self.request(buffer, start).on_failure(B::undefined)
    }

    /// Starts to update the elements of `target` from `first` on with those of `buffer`, each of
    /// them atomically.
    ///
    /// **Completion**: local: the buffer may be reused.
    /// **Errors**: beyond the end of the window; an update that the type of the elements does not
    /// support.
    pub fn accumulate<B: Buffer<Element = T>>(
        &self,
        mut buffer: B,
        update: Update,
        target: Rank,
        first: usize,
    ) -> Request<B> {
        let (bytes, raw) = (buffer.layout(), self.raw);
        let start = self.start(bytes, target, first, move |address| {
            let (size, datatype) = (size_of::<T>(), T::datatype());
            let here = Shape::of_elements(bytes, size, datatype)?;
            let there = Shape::elements(bytes.bytes() as usize / size, datatype)?;
            let operation = update.operation();
            // SAFETY: the request keeps the buffer, unused, until the transfer has ended.
            unsafe { raw.start_accumulate(bytes.first, &here, address, &there, operation) }
        });
        self.request(buffer, start)
    }

    /// Updates element `at` of `target` with `value`, atomically, and returns its previous value.
    ///
    /// **Errors**: beyond the end of the window; an update that the type of the elements does not
    /// support.
    pub async fn fetch_and_op(
        &self,
        value: T,
        update: Update,
        target: Rank,
        at: usize,
    ) -> Result<T, Error> {
        let mut pair = vec![value, value];
        let (first, raw) = (crate::buffer::sealed::Memory::layout(&mut pair), self.raw);
        let one = ByteLayout { row_bytes: size_of::<T>(), len: 1, ..first };
        let start = self.start(one, target, at, move |address| {
            let (size, datatype) = (size_of::<T>(), T::datatype());
            let operation = update.operation();
            // SAFETY: the request keeps both elements, unused, until the transfer has ended.
            unsafe { raw.start_fetch(one.first, size, datatype, address, operation) }
        });
        Ok(self.request(pair, start).await?.0[1])
    }

    /// Replaces element `at` of `target` by `new` if it is `expected`, atomically, and returns its
    /// previous value.
    ///
    /// **Errors**: beyond the end of the window; floating-point elements; an MPI that would crash,
    /// with the variable to set.
    /// **Cost**: a blocking-call thread.
    pub async fn compare_and_swap(
        &self,
        expected: T,
        new: T,
        target: Rank,
        at: usize,
    ) -> Result<T, Error> {
        let (address, raw) = (self.address(target, at, 1)?, self.raw);
        if target == self.communicator.rank()
            && let Some(reason) =
                known_faults::of_own_swaps(&self.transport.library.version()?, variable)
        {
            return Err(refused("MPI_Compare_and_swap", reason));
        }
        let swap = move |_: &MpiTransport| {
            let mut three = [new, expected, expected];
            raw.compare_and_swap(&mut three, T::datatype(), address)?;
            Ok(three[2])
        };
        self.transport.await_blocking(&self.communicator, swap).await
    }

    /// Waits until all puts to and updates at `target` are visible there.
    ///
    /// **Errors**: no such rank. **Cost**: a blocking-call thread.
    pub async fn flush(&self, target: Rank) -> Result<(), Error> {
        let (address, raw) = (self.address(target, 0, 0)?, self.raw);
        let flush = move |_: &MpiTransport| raw.flush(address.rank);
        self.transport.await_blocking(&self.communicator, flush).await
    }

    /// Frees the window. Every rank of the communicator calls it, with no transfer under way. A
    /// window that is dropped instead stays until the run ends.
    pub async fn free(self) -> Result<(), Error> {
        self.communicator.barrier().await?;
        let raw = self.raw;
        self.transport.await_blocking(&self.communicator, move |_| raw.free()).await?;
        self.transport.open_windows.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    fn address(&self, target: Rank, first: usize, count: u64) -> Result<WindowAddress, Error> {
        let length = self.length(target)?;
        match (first as u64).checked_add(count).filter(|end| *end <= length) {
            Some(_) => Ok(WindowAddress { rank: target.0 as i32, first: first as ffi::MPI_Aint }),
            None => {
                let value = (first as u64).saturating_add(count);
                Err(Error::Limit { what: "end of a transfer", value, limit: length })
            }
        }
    }

    fn start(
        &self,
        bytes: ByteLayout,
        target: Rank,
        first: usize,
        begin: impl FnOnce(WindowAddress) -> Result<super::RawRequest, Refused>,
    ) -> Start {
        match self.address(target, first, bytes.bytes() / size_of::<T>() as u64) {
            Ok(address) => {
                let (source, bytes) = (target, bytes.bytes());
                let status = Status::new(source, Tag(0), bytes);
                self.transport.start_transfer(status, move || begin(address))
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
