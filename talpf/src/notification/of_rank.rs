//! The notifications of one rank, as its waits reach them.

use std::ops::Range;
use std::sync::Arc;

use talpf_runtime::{Rect, Region};

use super::Notification;
use super::follows::{Completion, Follows};
use super::id::WaiterNumber;
use super::table::NotificationTable;
use crate::error::Error;
use crate::numbers::Rank;
use crate::sender::{RoundState, Sender};
use crate::sync::Receiver;
use crate::window::{Area, Kind};

/// The notifications of one rank. Clones are handles of the same ones.
#[derive(Clone)]
pub(super) struct OfRank {
    receiver: Arc<Receiver>,
    /// The round of operations outside rounds.
    pub(super) round: Arc<RoundState>,
}

/// The notifications that a wait takes one of.
#[derive(Clone)]
pub(super) enum Awaits {
    /// A notification of this id, whose put may land in the area.
    One(u32, Option<Area>),
    /// A notification of any of these ids.
    Any(Range<u32>),
}

impl Awaits {
    /// Returns the ids of the wait.
    pub(super) fn ids(&self) -> Range<u32> {
        match self {
            Awaits::One(id, _) => *id..id.saturating_add(1),
            Awaits::Any(ids) => ids.clone(),
        }
    }
}

impl OfRank {
    /// Makes the handle of the rank of `receiver`.
    pub(super) fn new(receiver: &Arc<Receiver>) -> Self {
        let round = RoundState::outside_rounds(&receiver.sender);
        OfRank { receiver: Arc::clone(receiver), round }
    }

    #[inline]
    pub(super) fn sender(&self) -> &Arc<Sender> {
        &self.round.sender
    }

    pub(super) fn table(&self) -> &NotificationTable {
        &self.receiver.own().notifications
    }

    pub(super) fn rank(&self) -> Rank {
        self.receiver.rank()
    }

    /// Begins a wait, ends it if its notification has come, and polls for it once more.
    pub(super) fn begin(&self, awaits: Awaits, completion: Completion) -> Option<WaiterNumber> {
        let (table, mut follows) = (self.table(), Follows::default());
        let number = match awaits {
            Awaits::One(id, inbox) => table.wait(id, inbox, completion, &mut follows),
            Awaits::Any(ids) => table.wait_any(ids, completion, &mut follows),
        };
        let waits = follows.is_nothing();
        self.follow_up(&mut follows);
        if waits {
            // From here on peers notify; this poll sees what they posted before.
            self.receiver.poll();
        }
        self.receiver.progress_if_rung();
        number
    }

    /// Gives back a notification that has ended a wait which is given up.
    pub(super) fn give_back(&self, notification: Notification) {
        let mut follows = Follows::default();
        self.table().give_back(notification, &mut follows);
        self.follow_up(&mut follows);
    }

    #[inline]
    pub(super) fn follow_up(&self, follows: &mut Follows) {
        self.sender().peers.follow_up(self.rank(), follows);
    }

    /// Returns the area of a region of this rank.
    ///
    /// **Errors**: a region outside its array, or of one without a windowed slot.
    pub(super) fn area_of<T, D>(&self, region: &Region<'_, T, D>) -> Result<Area, Error> {
        region.check()?;
        self.area_of_part(region.array_id(), region.rect())
    }

    /// As `area_of`, of a part of an array that exists.
    pub(super) fn area_of_part(&self, array: u64, rect: Rect) -> Result<Area, Error> {
        let kind = Kind::Write;
        let slots = &self.sender().slots;
        slots.windowed(array, |slot| Area { slot: slot.number, rect, cols: slot.cols(), kind })
    }
}
