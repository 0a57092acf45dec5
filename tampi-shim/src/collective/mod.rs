//! Collectives: operations of all ranks of a communicator.
//!
//! An operation is a [`schedule`]: the sends, receives, copies and folds of a rank, in steps, as a
//! pure function of the rank and the sizes ([`algorithm`]). The [`machine`] carries it out over
//! point-to-point messages in the communicator's collective context, so all transports do the same
//! in the same order. All messages of an operation carry its number in the communicator as their
//! tag: ranks start collectives of one communicator in the same order (MPI's rule), and any number
//! of them may be under way.

mod algorithm;
mod barrier;
mod call;
mod exchange;
mod machine;
mod memory;
mod reduction;
mod schedule;
mod start;
mod trampoline;
mod tree;

pub use self::barrier::Arrival;

use self::algorithm::Member;
use self::call::CollectiveKind;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::rank::Rank;

impl Communicator {
    fn member(&self) -> Member {
        Member { rank: self.rank().index(), size: self.size() as usize }
    }

    /// Returns the index of `root`.
    fn root(&self, root: Rank) -> Result<usize, Error> {
        self.peer(root).map(|root| root.rank.index())
    }
}

fn expect_length(
    kind: CollectiveKind,
    what: &'static str,
    elements: usize,
    expected: usize,
) -> Result<(), Error> {
    if elements == expected {
        return Ok(());
    }
    Err(Error::BufferLength { collective: kind.name(), what, elements, expected })
}
