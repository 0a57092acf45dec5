//! Trees over aligned blocks of ranks.
//!
//! Level `k` divides the ranks into blocks of `radix^k` consecutive ranks that begin at a multiple
//! of their size; the last may be shorter. A block has a *leader*, the rank that represents it: the
//! root if it is in the block, otherwise its first rank. At each level the leader of a block is the
//! parent of the leaders of its sub-blocks.
//!
//! A reduction folds neighbouring blocks at each level, so neither root nor radix changes the order
//! of the operands.

/// A tree over `size` ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    pub(crate) size: usize,
    pub(crate) root: usize,
    /// Number of sub-blocks of a block: a power of two, from 2.
    pub(crate) radix: usize,
}

/// Leaders of the sub-blocks of one block, in the order of their ranks, with the leader of the
/// block among them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) members: Vec<usize>,
    /// Index of the rank itself.
    pub(crate) own: usize,
}

impl Family {
    /// Returns all members but the rank itself.
    pub(crate) fn children(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let members = self.members.iter().enumerate();
        members.filter(|(index, _)| *index != self.own).map(|(_, rank)| *rank)
    }
}

/// Position of a rank in a tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Families that the rank leads, from the smallest blocks to the largest.
    pub(crate) families: Vec<Family>,
    /// Parent; `None` at the root.
    pub(crate) parent: Option<usize>,
}

impl Position {
    /// Returns the children at all levels, from the smallest blocks to the largest.
    pub(crate) fn children(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.families.iter().flat_map(Family::children)
    }
}

impl Tree {
    fn leader(&self, first: usize, block: usize) -> usize {
        if (first..first + block).contains(&self.root) { self.root } else { first }
    }

    pub(crate) fn position(&self, rank: usize) -> Position {
        let mut families = Vec::new();
        let mut block = 1;
        while block < self.size {
            let whole = block * self.radix;
            let first = rank - rank % whole;
            let parent = self.leader(first, whole);
            if parent != rank {
                return Position { families, parent: Some(parent) };
            }
            let starts = (first..self.size.min(first + whole)).step_by(block);
            let members: Vec<usize> = starts.map(|start| self.leader(start, block)).collect();
            families.push(Family { members, own: (rank - first) / block });
            block = whole;
        }
        Position { families, parent: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_but_the_root_is_one_child_of_its_parent() {
        for (size, radix) in (1..40).flat_map(|size| [2, 4, 8].map(|radix| (size, radix))) {
            for root in 0..size {
                let tree = Tree { size, root, radix };
                let mut parents = vec![None; size];
                for rank in 0..size {
                    for child in tree.position(rank).children() {
                        assert_eq!(parents[child].replace(rank), None, "{tree:?} {child}");
                    }
                }
                for (rank, parent) in parents.into_iter().enumerate() {
                    assert_eq!(tree.position(rank).parent, parent, "{tree:?} {rank}");
                    assert_eq!(parent.is_none(), rank == root, "{tree:?} {rank}");
                }
            }
        }
    }

    #[test]
    fn members_of_a_family_are_in_the_order_of_their_ranks() {
        for root in 0..23 {
            let tree = Tree { size: 23, root, radix: 4 };
            for rank in 0..23 {
                for family in tree.position(rank).families {
                    assert!(family.members.is_sorted(), "{tree:?} {family:?}");
                    assert_eq!(family.members[family.own], rank);
                }
            }
        }
    }
}
