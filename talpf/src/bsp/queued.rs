//! Operations that are queued.

use std::any::TypeId;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytemuck::Pod;
use talpf_runtime::{Array, Region};

use crate::error::Error;
use crate::lane::Lane;
use crate::numbers::Rank;
use crate::operation::OpenRound;
use crate::slot::{Part, Slot};

/// Operations that are queued.
pub(super) trait Queued<'r>: Send + Sync {
    /// Adds a short put, if it is like the ones that are queued here.
    fn add(&mut self, _put: &ShortPut<'_, 'r>) -> bool {
        false
    }

    /// Begins the operations, before gets read.
    ///
    /// **Errors**: regions outside their arrays.
    fn begin(&mut self, lane: &Lane) -> Result<(), Error>;

    /// Waits until the elements of short puts are read.
    fn poll_read(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the operations, once gets have read: puts are of `round`.
    fn end(self: Box<Self>, lane: &Lane, round: &OpenRound) -> Result<(), Error>;
}

/// Short put that is about to be queued.
pub(super) struct ShortPut<'s, 'r> {
    /// Type of the guard that the put reads.
    pub(super) guard: TypeId,
    pub(super) from: Region<'r, ()>,
    pub(super) slot: &'s Arc<Slot>,
    pub(super) rank: Rank,
    pub(super) part: Part,
}

/// Makes an array as long as a region.
pub(super) fn array_like<T: Pod + Send + Sync, D>(
    lane: &Lane,
    region: &Region<'_, T, D>,
) -> Result<Array<T>, Error> {
    region.check()?;
    let len = region.len();
    Ok(Array::new(lane.group(), vec![T::zeroed(); len], len.max(1))?)
}
