//! The ids of one rank: those that its program names, and those of its queues.

use std::ops::Range;

use super::id::Id;
use crate::numbers::Rank;

/// First of the ids of queues, which no program names.
pub(crate) const FIRST_OF_QUEUES: u32 = 1 << 31;
/// Number of ids of a queue: of its items, and of its credits.
const OF_QUEUE: u32 = 2;

/// The ids of one rank. Those of a program exist once they are used, those of a queue once it is made.
#[derive(Default)]
pub(super) struct Ids {
    program: Vec<Id>,
    queues: Vec<Id>,
    /// The ranks that receive from the queues.
    receivers: Vec<Rank>,
}

/// The use of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdUse {
    /// An id of the program.
    Program,
    /// Items of the queue of this rank.
    Items,
    /// Credits of the queue of `receiver`.
    Credits { receiver: Rank },
}

impl Ids {
    /// Returns the number of ids of the program that exist.
    pub(super) fn used(&self) -> u32 {
        self.program.len() as u32
    }

    /// Adds the ids of a queue of `receiver`, of whose items at most `most` are announced and not
    /// taken. Returns that of its items, which that of its credits follows.
    pub(super) fn add_queue(&mut self, receiver: Rank, most: usize) -> u32 {
        let first = FIRST_OF_QUEUES + self.queues.len() as u32;
        self.queues.extend([Id::keeping(most), Id::default()]);
        self.receivers.push(receiver);
        first
    }

    /// Returns `true` if the id is one of a queue, which was made here.
    pub(super) fn has_queue(&self, id: u32) -> bool {
        id.checked_sub(FIRST_OF_QUEUES).is_some_and(|index| (index as usize) < self.queues.len())
    }

    /// Returns the use of an id.
    pub(super) fn use_of(&self, id: u32) -> IdUse {
        let Some(index) = id.checked_sub(FIRST_OF_QUEUES) else {
            return IdUse::Program;
        };
        match self.receivers.get((index / OF_QUEUE) as usize) {
            Some(&receiver) if index % OF_QUEUE == 1 => IdUse::Credits { receiver },
            _ => IdUse::Items,
        }
    }

    /// Returns the state of an id: of a queue that was made here, or of the program.
    #[inline]
    pub(super) fn of(&mut self, id: u32) -> &mut Id {
        let (ids, index) = match id.checked_sub(FIRST_OF_QUEUES) {
            Some(index) => (&mut self.queues, index as usize),
            None => (&mut self.program, id as usize),
        };
        if ids.len() <= index {
            ids.resize_with(index + 1, Id::default);
        }
        &mut ids[index]
    }

    /// Iterates over those of some ids, all of the program or one of a queue, that exist.
    pub(super) fn among(&mut self, ids: Range<u32>) -> impl Iterator<Item = &mut Id> {
        let (of, first) = match ids.start.checked_sub(FIRST_OF_QUEUES) {
            Some(_) => (&mut self.queues, FIRST_OF_QUEUES),
            None => (&mut self.program, 0),
        };
        let end = ((ids.end - first) as usize).min(of.len());
        let start = ((ids.start - first) as usize).min(end);
        of[start..end].iter_mut()
    }

    /// Iterates over all ids that exist.
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, &Id)> {
        (0..).zip(&self.program).chain((FIRST_OF_QUEUES..).zip(&self.queues))
    }

    /// As `each`, to be changed.
    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = (u32, &mut Id)> {
        (0..).zip(&mut self.program).chain((FIRST_OF_QUEUES..).zip(&mut self.queues))
    }
}
