//! Communicators derived from others: split, duplicate, create from a group; free.

use crate::communicator::Communicator;
use crate::error::Error;
use crate::rank::Rank;
use crate::rank_group::RankGroup;
use crate::transport::{ContextId, Members};

/// Arguments of a split, as ranks exchange them.
#[derive(Clone, Copy, Debug)]
struct SplitArguments {
    color: Option<u32>,
    key: i32,
    /// Context id of the new communicator, if this rank becomes its first member.
    context: ContextId,
}

/// Words of the exchanged arguments.
const WORDS: usize = 4;

impl SplitArguments {
    fn to_words(self) -> Vec<u32> {
        let has_color = u32::from(self.color.is_some());
        vec![has_color, self.color.unwrap_or(0), self.key.cast_unsigned(), self.context.0]
    }

    fn of_words(words: &[u32]) -> Option<Self> {
        let &[has_color, color, key, context] = words else { return None };
        let color = (has_color != 0).then_some(color);
        Some(SplitArguments { color, key: key.cast_signed(), context: ContextId(context) })
    }
}

impl Communicator {
    /// Returns the members as a group.
    pub fn ranks(&self) -> RankGroup {
        RankGroup::of_members(self.members())
    }

    /// Splits the ranks into one communicator for each color, ordered by key, and by rank in this
    /// communicator where keys are equal. A rank without a color is in no new communicator. A
    /// collective.
    pub async fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>, Error> {
        let context = self.contexts().reserve()?;
        let own = SplitArguments { color, key, context }.to_words();
        let room = vec![0u32; WORDS * self.size() as usize];
        let (_, words) = self.allgather(own, room).await?;
        let all = words.chunks_exact(WORDS).map(SplitArguments::of_words).zip((0..).map(Rank));
        let all = all.filter_map(|(arguments, rank)| arguments.map(|arguments| (arguments, rank)));
        let mut chosen: Vec<(SplitArguments, Rank)> =
            all.filter(|(arguments, _)| color.is_some() && arguments.color == color).collect();
        chosen.sort_by_key(|(arguments, rank)| (arguments.key, *rank));
        let place = chosen.iter().position(|(_, rank)| *rank == self.rank());
        if place != Some(0) {
            self.contexts().free(context);
        }
        let made = match (place, chosen.first()) {
            (Some(place), Some((first, _))) => {
                let members = chosen.iter().map(|(_, rank)| self.members()[rank.index()]);
                let members: Members = members.collect();
                Some(self.derived(first.context, Rank(place as u32), members)?)
            }
            _ => None,
        };
        // No message of the new communicator may reach a rank that does not know it yet.
        self.barrier().await?;
        Ok(made)
    }

    /// Creates a communicator of the same ranks, whose messages match only among themselves. A
    /// collective.
    pub async fn duplicate(&self) -> Result<Self, Error> {
        let rank = self.rank();
        let made = self.split(Some(0), 0).await?;
        made.ok_or(Error::NoSuchRank { rank, ranks: self.size() })
    }

    /// Creates a communicator of the ranks in `group`, in its order. Ranks outside of the group get
    /// `None`. A collective of all ranks of this communicator, with the same group.
    ///
    /// **Errors**: a member of `group` is not a member of this communicator.
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

    /// Waits until all ranks call it, so that no message of the communicator is under way, and
    /// drops the communicator. A communicator that is dropped instead does not wait. A collective.
    pub async fn free(self) -> Result<(), Error> {
        self.barrier().await
    }
}
