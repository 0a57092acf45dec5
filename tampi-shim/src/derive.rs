//! Communicators made from others: split, duplicate, of a group; free.

use crate::communicator::Communicator;
use crate::error::Error;
use crate::rank::Rank;
use crate::rank_group::RankGroup;
use crate::transport::{ContextId, Members};

/// What each rank tells the others.
#[derive(Clone, Copy, Debug)]
struct Wish {
    color: Option<u32>,
    key: i32,
    /// For the new communicator, if this rank becomes its first.
    context: ContextId,
}

/// Words of a wish.
const WORDS: usize = 4;

impl Wish {
    fn to_words(self) -> Vec<u32> {
        let has_color = u32::from(self.color.is_some());
        vec![has_color, self.color.unwrap_or(0), self.key.cast_unsigned(), self.context.0]
    }

    fn of_words(words: &[u32]) -> Option<Self> {
        let &[has_color, color, key, context] = words else { return None };
        let color = (has_color != 0).then_some(color);
        Some(Wish { color, key: key.cast_signed(), context: ContextId(context) })
    }
}

impl Communicator {
    /// The members as a group.
    pub fn ranks(&self) -> RankGroup {
        RankGroup::of_members(self.members())
    }

    /// Divides the ranks into one communicator for each color, ordered by key and by their ranks
    /// here where keys are equal. Without a color a rank is in none. A collective.
    pub async fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>, Error> {
        let context = self.contexts().reserve()?;
        let all = vec![0u32; WORDS * self.size() as usize];
        let (_, all) = self.allgather(Wish { color, key, context }.to_words(), all).await?;
        let wishes = all.chunks_exact(WORDS).map(Wish::of_words).zip((0..).map(Rank));
        let wishes = wishes.filter_map(|(wish, rank)| wish.map(|wish| (wish, rank)));
        let mut chosen: Vec<(Wish, Rank)> =
            wishes.filter(|(wish, _)| color.is_some() && wish.color == color).collect();
        chosen.sort_by_key(|(wish, rank)| (wish.key, *rank));
        let place = chosen.iter().position(|(_, rank)| *rank == self.rank());
        if place != Some(0) {
            self.contexts().give_back(context);
        }
        let made = match (place, chosen.first()) {
            (Some(place), Some((first, _))) => {
                let members = chosen.iter().map(|(_, rank)| self.members()[rank.index()]);
                let members: Members = members.collect();
                Some(self.derived(first.context, Rank(place as u32), members)?)
            }
            _ => None,
        };
        // No message of the new one may come to a rank that does not know it.
        self.barrier().await?;
        Ok(made)
    }

    /// A communicator of the same ranks with messages of its own. A collective.
    pub async fn duplicate(&self) -> Result<Self, Error> {
        let rank = self.rank();
        let made = self.split(Some(0), 0).await?;
        made.ok_or(Error::NoSuchRank { rank, ranks: self.size() })
    }

    /// A communicator of some of the ranks, in the order of `group`; the others get none. A
    /// collective of all, with the same group.
    ///
    /// **Errors**: a member of `group` that is none here.
    pub async fn create(&self, group: &RankGroup) -> Result<Option<Self>, Error> {
        let here = self.ranks();
        let strangers = group.difference(&here);
        if strangers.size() > 0 {
            let (rank, ranks) = (Rank(strangers.members()[0].0), self.size());
            return Err(Error::NoSuchRank { rank, ranks });
        }
        let place = group.rank_of(self.members()[self.rank().index()]);
        let key = place.map_or(0, |place| place.0.cast_signed());
        self.split(place.map(|_| 0), key).await
    }

    /// Waits until all ranks call it, and lets the communicator go: nobody's messages are on their
    /// way then. One that is dropped without is not waited for. A collective.
    pub async fn free(self) -> Result<(), Error> {
        self.barrier().await
    }
}
