//! Operations that are queued.

use bytemuck::Pod;
use talpf_runtime::{Array, Region};

use crate::error::Error;
use crate::lane::Lane;
use crate::operation::OpenRound;

/// Operation that is queued, and needs rounds.
pub(super) trait Queued: Send + Sync {
    /// Begins the operation, before gets read.
    ///
    /// **Errors**: regions outside their arrays.
    fn begin(&mut self, lane: &Lane) -> Result<(), Error>;

    /// Ends the operation, once gets have read: puts are of `round`.
    fn end(self: Box<Self>, lane: &Lane, round: &OpenRound) -> Result<(), Error>;
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
