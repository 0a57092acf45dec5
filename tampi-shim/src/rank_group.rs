//! Groups of ranks, from which communicators are created.

use std::ops::RangeInclusive;

use crate::error::Error;
use crate::rank::{Rank, WorldRank};

/// Ordered set of ranks, from which [`Communicator::create`](crate::Communicator::create) makes a
/// communicator. A member's rank in the group is its position in the order.
///
/// All operations are local: ranks that build a group in the same way get the same group.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RankGroup {
    members: Vec<WorldRank>,
}

/// Result of [`RankGroup::compare`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same members in the same order.
    Identical,
    /// The same members in another order.
    Similar,
    /// Different members.
    Unequal,
}

impl RankGroup {
    pub(crate) fn of_members(members: &[WorldRank]) -> Self {
        RankGroup { members: members.to_vec() }
    }

    pub(crate) fn members(&self) -> &[WorldRank] {
        &self.members
    }

    /// Returns the number of members.
    pub fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// Returns the group of the members `ranks`, in this order.
    ///
    /// **Errors**: a rank that does not exist or is named twice.
    pub fn include(&self, ranks: &[Rank]) -> Result<Self, Error> {
        self.chosen(ranks)?;
        Ok(RankGroup { members: ranks.iter().map(|rank| self.members[rank.index()]).collect() })
    }

    /// Returns the group of all members but `ranks`, in their order in this group.
    ///
    /// **Errors**: a rank that does not exist or is named twice.
    pub fn exclude(&self, ranks: &[Rank]) -> Result<Self, Error> {
        let chosen = self.chosen(ranks)?;
        let members = self.members.iter().zip(chosen);
        Ok(RankGroup { members: members.filter(|(_, out)| !out).map(|(rank, _)| *rank).collect() })
    }

    /// Returns the group of the members in ranges of ranks, each with a stride:
    /// `(Rank(0)..=Rank(6), 3)` is 0, 3, 6.
    ///
    /// **Errors**: a stride of 0; a rank that does not exist or is named twice.
    pub fn include_ranges(&self, ranges: &[(RangeInclusive<Rank>, usize)]) -> Result<Self, Error> {
        let mut ranks = Vec::new();
        for (range, stride) in ranges {
            if *stride == 0 {
                return Err(Error::Limit { what: "stride of a range", value: 0, limit: 1 });
            }
            self.member(*range.end())?;
            ranks.extend((range.start().0..=range.end().0).step_by(*stride).map(Rank));
        }
        self.include(&ranks)
    }

    /// Returns the members of this group, followed by the members of `other` that are not in this
    /// one.
    pub fn union(&self, other: &Self) -> Self {
        let added = other.difference(self);
        RankGroup { members: [&*self.members, &*added.members].concat() }
    }

    /// Returns the members of both groups, in their order in this group.
    pub fn intersection(&self, other: &Self) -> Self {
        self.filtered(|member| other.members.contains(member))
    }

    /// Returns the members that are not in `other`, in their order in this group.
    pub fn difference(&self, other: &Self) -> Self {
        self.filtered(|member| !other.members.contains(member))
    }

    /// Translates ranks of this group to ranks of `other`; `None` for each that is not a member of
    /// `other`.
    ///
    /// **Errors**: a rank that does not exist.
    pub fn translate(&self, ranks: &[Rank], other: &Self) -> Result<Vec<Option<Rank>>, Error> {
        ranks.iter().map(|rank| Ok(other.rank_of(self.member(*rank)?))).collect()
    }

    /// Compares the members of this group and of `other`, and their order.
    pub fn compare(&self, other: &Self) -> Comparison {
        if self == other {
            return Comparison::Identical;
        }
        let sorted = |group: &Self| {
            let mut members = group.members.clone();
            members.sort_unstable();
            members
        };
        if sorted(self) == sorted(other) { Comparison::Similar } else { Comparison::Unequal }
    }

    pub(crate) fn rank_of(&self, member: WorldRank) -> Option<Rank> {
        let place = self.members.iter().position(|other| *other == member)?;
        Some(Rank(place as u32))
    }

    fn member(&self, rank: Rank) -> Result<WorldRank, Error> {
        let member = self.members.get(rank.index()).copied();
        member.ok_or(Error::NoSuchRank { rank, ranks: self.size() })
    }

    fn filtered(&self, keep: impl Fn(&WorldRank) -> bool) -> Self {
        RankGroup { members: self.members.iter().copied().filter(keep).collect() }
    }

    /// Returns a flag for each member: `true` if `ranks` names it.
    ///
    /// **Errors**: a rank that does not exist or is named twice.
    fn chosen(&self, ranks: &[Rank]) -> Result<Vec<bool>, Error> {
        let mut chosen = vec![false; self.members.len()];
        for rank in ranks {
            self.member(*rank)?;
            if std::mem::replace(&mut chosen[rank.index()], true) {
                return Err(Error::RankNamedTwice { rank: *rank });
            }
        }
        Ok(chosen)
    }
}
