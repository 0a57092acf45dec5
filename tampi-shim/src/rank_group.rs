//! Groups of ranks.

use std::ops::RangeInclusive;

use crate::error::Error;
use crate::rank::{Rank, WorldRank};

/// Ranks in an order, without messages: what communicators are made of. A member's rank in the
/// group is its place in the order.
///
/// All is local: groups of different ranks are the same if they are made in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RankGroup {
    members: Vec<WorldRank>,
}

/// How two groups compare.
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

    /// Number of members.
    pub fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// The members `ranks`, in this order.
    ///
    /// **Errors**: a rank that does not exist or is named twice.
    pub fn include(&self, ranks: &[Rank]) -> Result<Self, Error> {
        self.chosen(ranks)?;
        Ok(RankGroup { members: ranks.iter().map(|rank| self.members[rank.index()]).collect() })
    }

    /// All members but `ranks`, in the order they have here.
    ///
    /// **Errors**: a rank that does not exist or is named twice.
    pub fn exclude(&self, ranks: &[Rank]) -> Result<Self, Error> {
        let chosen = self.chosen(ranks)?;
        let members = self.members.iter().zip(chosen);
        Ok(RankGroup { members: members.filter(|(_, out)| !out).map(|(rank, _)| *rank).collect() })
    }

    /// The members of ranges of ranks, each with a stride: `(Rank(0)..=Rank(6), 3)` is 0, 3, 6.
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

    /// The members of this group, then those of `other` that are not in this one.
    pub fn union(&self, other: &Self) -> Self {
        let added = other.difference(self);
        RankGroup { members: [&*self.members, &*added.members].concat() }
    }

    /// The members of both, in the order they have here.
    pub fn intersection(&self, other: &Self) -> Self {
        self.filtered(|member| other.members.contains(member))
    }

    /// The members that are not in `other`, in the order they have here.
    pub fn difference(&self, other: &Self) -> Self {
        self.filtered(|member| !other.members.contains(member))
    }

    /// What this group's ranks are called in `other`, where they are members.
    ///
    /// **Errors**: a rank that does not exist.
    pub fn translate(&self, ranks: &[Rank], other: &Self) -> Result<Vec<Option<Rank>>, Error> {
        ranks.iter().map(|rank| Ok(other.rank_of(self.member(*rank)?))).collect()
    }

    /// How this group and `other` compare.
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

    /// Which members `ranks` names, each at most once.
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
