//! Algorithms of the collectives: each is a function from a member and the sizes to its schedule.
//!
//! Ranks are numbers of the communicator. `choice` picks among the algorithms of one operation.

mod alltoall;
mod barrier;
mod blocks;
mod broadcast;
mod choice;
mod gather;
mod reduce;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use self::alltoall::alltoall;
pub(crate) use self::blocks::Blocks;
pub(crate) use self::choice::{
    allgather, allreduce, barrier, broadcast, exscan, reduce, reduce_scatter, scan,
};
pub(crate) use self::gather::{gather, scatter};

/// A participant of a collective: one rank of `size`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

impl Member {
    /// Returns the other ranks, beginning after this one, so that not all ranks address the same
    /// rank first.
    fn others(self) -> impl Iterator<Item = usize> {
        (1..self.size).map(move |distance| (self.rank + distance) % self.size)
    }
}
