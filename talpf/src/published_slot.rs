//! Slots that a rank has published under a name, and their lookup by others.

use std::fmt;
use std::ops::RangeBounds;

use bytemuck::Pod;

use crate::context::Context;
use crate::error::{Error, NameError};
use crate::names::Published;
use crate::numbers::Rank;
use crate::slot::{MemorySlot, RemoteRegion};

/// A slot at the rank that has published it. Made by [`Context::lookup`].
pub struct PublishedSlot<T> {
    slot: MemorySlot<T>,
    owner: Rank,
}

impl<T> PublishedSlot<T> {
    /// Returns the rank that has published the slot.
    pub fn owner(&self) -> Rank {
        self.owner
    }

    /// Returns the slot, which this rank has registered, too.
    pub fn slot(&self) -> &MemorySlot<T> {
        &self.slot
    }

    /// Returns the remote region from element `index` of the owner on, as [`MemorySlot::at`].
    #[inline]
    pub fn at(&self, index: usize) -> RemoteRegion<'_, T> {
        self.slot.at(self.owner, index)
    }

    /// Returns a rectangle of the matrix of the owner, as [`MemorySlot::region`].
    #[inline]
    pub fn region(
        &self,
        rows: impl RangeBounds<usize>,
        cols: impl RangeBounds<usize>,
    ) -> RemoteRegion<'_, T> {
        self.slot.region(self.owner, rows, cols)
    }
}

impl Context {
    /// Publishes a slot of this rank under a name, by which others find it. Not collective: each rank
    /// has names of its own, and may give one name to another slot than its peers do.
    ///
    /// ```
    /// use talpf::{Config, Context, Error, NotifiedTask, exec};
    /// use talpf_runtime::Array;
    ///
    /// // Each rank has two arrays, and decides in which of them it takes in a number.
    /// let taken = exec(Config { ranks: 2, ..Config::default() }, async |ctx: Context| {
    ///     let own = ctx.rank().0;
    ///     let array = || Array::new(ctx.group(), vec![0u32], 1);
    ///     let (even, odd) = (array()?, array()?);
    ///     let slots = [ctx.register_global(&even).await?, ctx.register_global(&odd).await?];
    ///     ctx.publish("in", &slots[own as usize % 2])?;
    ///     let inbox = if own % 2 == 0 { &even } else { &odd };
    ///     let inbox = ctx.notifications().inbox(&inbox.all(), 0)?;
    ///     let taken = ctx.group().task("take").inbox(&inbox).run(|number| number[0])?;
    ///
    ///     let there = ctx.lookup::<u32>(1 - own, "in").await?;
    ///     ctx.notifications().put_copy(&[7 + own], there.at(0), 0, 0).await?;
    ///     Ok::<_, Error>(taken.await?)
    /// })?;
    /// assert_eq!(taken, [8, 7]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// **Completion**: published here; other processes get it by a message. It stays until the run
    /// ends.
    /// **Errors**: a name of more than 255 bytes, or that this rank has published
    /// ([`NameError`]); more than 4096 names of a rank; a slot of another run, that was
    /// deregistered, or of [`Context::register_local`]; a run that has failed.
    /// **Cost**: a lock of the process, and a message to each other one. Not for hot paths.
    pub fn publish<T: Pod>(&self, name: &str, slot: &MemorySlot<T>) -> Result<(), Error> {
        let (world, rank) = (self.world(), self.rank());
        if let Some(error) = self.sender().error() {
            return Err(error);
        }
        slot.slot.check_global(self.sender().run, rank)?;
        let element = std::any::type_name::<T>().into();
        let published = Published { slot: slot.slot.number, element };
        world.names.publish(rank, name, published.clone())?;
        if let Some(processes) = world.processes() {
            processes.publish(rank, name, &published);
        }
        Ok(())
    }

    /// Waits until `owner` has published a slot of elements `T` under a name, and returns it there.
    /// This rank has registered the slot, too, as every rank does.
    ///
    /// **Errors**: no such rank; a name of more than 255 bytes; an owner whose program, or in another
    /// process that of every rank, has ended without the name ([`NameError::NotPublished`]); elements of
    /// another type; a slot that this rank has deregistered, or whose registration it has not awaited
    /// ([`Error::NoSuchSlot`]); a run that has failed ([`NameError::Failed`]).
    /// **Cost**: a lock of the process. No message.
    pub async fn lookup<T: Pod>(
        &self,
        owner: impl Into<Rank>,
        name: &str,
    ) -> Result<PublishedSlot<T>, Error> {
        let (rank, owner) = (self.rank(), self.peer(owner.into().0)?);
        let Published { slot, element } = self.world().names.lookup(rank, owner, name).await?;
        let here = std::any::type_name::<T>();
        if here != &*element {
            let (name, there) = (name.to_owned(), element.into());
            return Err(NameError::OtherElements { rank, owner, name, here, there }.into());
        }
        let slot = MemorySlot::new(self.sender().slots.numbered(slot)?);
        Ok(PublishedSlot { slot, owner })
    }
}

impl<T> fmt::Debug for PublishedSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublishedSlot ({:?} at {})", self.slot, self.owner)
    }
}
