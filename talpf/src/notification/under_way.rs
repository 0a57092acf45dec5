//! Notifications that were let land and have not arrived.

use super::Notification;
use super::id::{Position, Waiter};
use crate::numbers::{ArrivalNumber, Rank};

/// Number of bits that an arrival number has in an immediate.
const BITS: u32 = 29;

/// The notifications under way to one rank, by arrival number.
#[derive(Default)]
pub(super) struct UnderWay {
    entries: Vec<Option<Coming>>,
    free: Vec<u32>,
}

/// A notification under way.
pub(super) struct Coming {
    pub(super) notification: Notification,
    /// The rank that writes the bytes: the source, or this one for those that have travelled with
    /// their claim.
    pub(super) writer: Rank,
    /// The wait that it ends, whose inbox is reserved for it.
    pub(super) waiter: Option<Waiter>,
    /// Position among the notifications of its id that no wait has taken, while it is one of them.
    pub(super) position: Position,
    /// `true` while it is being posted, outside the lock.
    pub(super) posting: bool,
    /// `true` once it has arrived, while it is still being posted.
    pub(super) arrived: bool,
}

impl Coming {
    /// Makes a notification that `writer` is about to write; `posting` if that is outside the lock.
    #[inline]
    pub(super) fn new(
        notification: Notification,
        writer: Rank,
        waiter: Option<Waiter>,
        posting: bool,
    ) -> Self {
        Coming { notification, writer, waiter, position: 0, posting, arrived: false }
    }
}

impl UnderWay {
    /// Returns `true` if no number is left.
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() && self.entries.len() >= 1 << BITS
    }

    /// Adds a notification, unless [`UnderWay::is_full`].
    pub(super) fn add(&mut self, coming: Coming) -> ArrivalNumber {
        match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = Some(coming);
                ArrivalNumber(number)
            }
            None => {
                self.entries.push(Some(coming));
                ArrivalNumber(self.entries.len() as u32 - 1)
            }
        }
    }

    pub(super) fn at(&mut self, number: ArrivalNumber) -> Option<&mut Coming> {
        self.entries.get_mut(number.0 as usize)?.as_mut()
    }

    /// Lets a notification end a wait, for which it keeps the inbox.
    pub(super) fn attach(&mut self, number: ArrivalNumber, waiter: Waiter) {
        if let Some(coming) = self.at(number) {
            coming.waiter = Some(waiter);
        }
    }

    /// Notes the position of a notification that no wait has taken.
    #[inline]
    pub(super) fn set_position(&mut self, number: ArrivalNumber, position: Position) {
        self.at(number).into_iter().for_each(|coming| coming.position = position);
    }

    /// Removes a notification, whose number may be used again.
    pub(super) fn remove(&mut self, number: ArrivalNumber) -> Option<Coming> {
        let coming = self.entries.get_mut(number.0 as usize)?.take()?;
        self.free.push(number.0);
        Some(coming)
    }

    /// Iterates over the notifications under way.
    pub(super) fn each(&mut self) -> impl Iterator<Item = (ArrivalNumber, &mut Coming)> {
        let each = self.entries.iter_mut().enumerate();
        each.filter_map(|(number, entry)| Some((ArrivalNumber(number as u32), entry.as_mut()?)))
    }

    /// Removes all.
    pub(super) fn clear(&mut self) -> Vec<Option<Coming>> {
        self.free.clear();
        std::mem::take(&mut self.entries)
    }
}
