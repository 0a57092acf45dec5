//! Gets, whose elements come to a copy first.

use bytemuck::Pod;
use talpf_runtime::{Array, In, Out, Region};

use super::queued::{Queued, array_like};
use crate::error::Error;
use crate::lane::Lane;
use crate::operation::OpenRound;
use crate::slot::KeptRemote;

/// Queued get.
pub(super) struct Get<'r, T, D> {
    from: KeptRemote<T>,
    to: Region<'r, T, D>,
    /// Copy of what the operation has read.
    copy: Option<Array<T>>,
}

impl<'r, T, D> Get<'r, T, D> {
    pub(super) fn new(from: KeptRemote<T>, to: Region<'r, T, D>) -> Self {
        Get { from, to, copy: None }
    }
}

impl<T: Pod + Send + Sync, D: Send + Sync + 'static> Queued for Get<'_, T, D> {
    fn begin(&mut self, lane: &Lane) -> Result<(), Error> {
        let copy = array_like(lane, &self.to)?;
        lane.get(self.from.region(), &copy.all())?;
        self.copy = Some(copy);
        Ok(())
    }

    fn end(self: Box<Self>, lane: &Lane, _: &OpenRound) -> Result<(), Error> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let cols = self.to.rect().cols().max(1);
        let task = lane.group().task("copy").input(&copy.all()).output(&self.to);
        Ok(task.spawn(move |from: In<T>, mut to: Out<T, D>| {
            let rows = from.chunks(cols).zip(to.row_slices_mut());
            rows.for_each(|(from, to)| to.copy_from_slice(from));
        })?)
    }
}
