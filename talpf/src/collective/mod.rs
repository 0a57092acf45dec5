//! Collectives: exchanges of all ranks as tasks on regions.
//!
//! A collective is made once, by all ranks together, and owns a lane and a registered array. Each
//! run declares tasks in a [`OneSided`](crate::OneSided) scope: one copies the rank's input into
//! that array, puts and syncs of the lane move pieces between the arrays, and the last task writes
//! the output. Nothing waits; the tasks around a run use its regions as input and output. Arrivals
//! are counted, so that a round ends with its puts and has no other traffic.
//!
//! Runs follow each other in the lane, and the array has the data of one run: the next run begins
//! at a rank when the last task of the run before has read the array there. Collectives that are to
//! overlap have lanes of their own. A put waits for its window, so a rank that is ahead overwrites
//! nothing.
//!
//! Costs with P ranks and n bytes of each, L = ⌈log₂ P⌉; puts and bytes are those of the rank that
//! sends most of them. Each run copies its input and its output once more.
//!
//! | collective | rounds | puts | bytes |
//! |---|---|---|---|
//! | [`Broadcast`] (binomial tree) | L | L | n L |
//! | [`Broadcast`] of more than 64 KiB (scatter, then gather at all) | 1 + L | P - 1 + L | 2 n |
//! | [`Gather`] | 1 | 1 | n |
//! | [`Scatter`] | 1 | P - 1 | n (P - 1) |
//! | [`Allgather`] (Bruck) | L | L | n (P - 1) |
//! | [`Alltoall`] | 1 | P - 1 | n (P - 1) / P |
//! | [`Allreduce`], [`Scan`] (gather at all, then fold) | L | L | n (P - 1) |
//! | the same with n P of more than 64 KiB (each rank folds a block) | 2 | 2 (P - 1) | 2 n |
//!
//! A rank without a put or an arrival in a round still has its sync, so that the rounds of the lane
//! are counted alike.
//!
//! **Source**: Bruck et al., 1997; Thakur, Rabenseifner and Gropp, 2005.

mod alltoall;
mod broadcast;
mod gather;
mod member;
mod reduction;
mod scatter;

pub use self::alltoall::Alltoall;
pub use self::broadcast::Broadcast;
pub use self::gather::{Allgather, Gather};
pub use self::reduction::{Allreduce, Scan};
pub use self::scatter::Scatter;

/// Number of bytes above which a collective moves fewer bytes in more puts.
const LONG: usize = 64 << 10;
