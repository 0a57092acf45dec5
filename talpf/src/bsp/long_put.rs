//! Long puts, whose elements are copied before.

use bytemuck::Pod;
use talpf_runtime::{Array, In, Out, Region};

use super::queued::{Queued, array_like};
use crate::error::Error;
use crate::lane::Lane;
use crate::operation::{OpenRound, Spawned};
use crate::slot::KeptRemote;

/// Put of more bytes than a request carries itself.
pub(super) struct LongPut<'r, T, D> {
    from: Region<'r, T, D>,
    to: KeptRemote<T>,
    /// Copy of the elements.
    copy: Option<Array<T>>,
}

impl<'r, T, D> LongPut<'r, T, D> {
    pub(super) fn new(from: Region<'r, T, D>, to: KeptRemote<T>) -> Self {
        LongPut { from, to, copy: None }
    }
}

impl<T: Pod + Send + Sync, D: Send + Sync + 'static> Queued for LongPut<'_, T, D> {
    fn begin(&mut self, lane: &Lane) -> Result<(), Error> {
        let copy = array_like(lane, &self.from)?;
        let cols = self.from.rect().cols().max(1);
        let task = lane.group().task("copy").input(&self.from).output(&copy.all());
        task.spawn(move |from: In<T, D>, mut to: Out<T>| {
            let rows = from.row_slices().zip(to.chunks_mut(cols));
            rows.for_each(|(from, to)| to.copy_from_slice(from));
        })?;
        self.copy = Some(copy);
        Ok(())
    }

    fn end(self: Box<Self>, lane: &Lane, round: &OpenRound) -> Result<(), Error> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let (spawned, to) = (Spawned::new(round.clone()), self.to);
        let task = lane.group().task("put").communicates().inline().input(&copy.all());
        Ok(task
            .spawn(move |from: In<T>| drop(spawned.issue(|round| round.put(from, to.region()))))?)
    }
}
