//! An R-tree: items found by their rectangles.
//!
//! A node has the bounds of all items below it, and a search enters the nodes whose bounds overlap
//! its rectangle. Items are in Morton order of their first elements, so that items which are close
//! together are in few nodes, pieces of a row as well as blocks of a matrix; a search is correct in
//! any order. All leaves are equally deep. A full node is split, at its end if the tree grows
//! there; an empty one is removed, and none are joined, so a tree that has shrunk much is best
//! rebuilt.
//!
//! Any number of items may overlap each other. Nodes of equal bounds are all entered, as all their
//! items are found.

use crate::data::Rect;

/// Largest number of items in a leaf, and of nodes in a node.
const MOST: usize = 24;
/// Number of items in a leaf, and of nodes in a node, of a tree that is just built.
const FILLED: usize = 18;

/// An item of a tree.
pub(crate) trait Placed {
    /// Returns the elements of the item, at least one.
    fn rect(&self) -> &Rect;
}

/// An R-tree of items.
pub(super) struct RTree<T> {
    root: TreeNode<T>,
    len: usize,
}

struct TreeNode<T> {
    /// Lower bound of the Morton order of the items below.
    first: u64,
    bounds: Rect,
    below: Below<T>,
}

enum Below<T> {
    Items(Vec<T>),
    Nodes(Vec<TreeNode<T>>),
}

impl<T: Placed> RTree<T> {
    /// Builds a tree of `items`. **Panics**: without an item.
    pub(super) fn new(mut items: Vec<T>) -> Self {
        let len = items.len();
        items.sort_by_cached_key(|item| morton(item.rect()));
        let mut nodes: Vec<_> =
            chunks(items).map(|items| TreeNode::over(Below::Items(items))).collect();
        while nodes.len() > 1 {
            nodes = chunks(nodes).map(|nodes| TreeNode::over(Below::Nodes(nodes))).collect();
        }
        let root = nodes.pop().unwrap_or_else(|| unreachable!("a tree has items"));
        RTree { root, len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn insert(&mut self, item: T) {
        self.len += 1;
        let key = morton(item.rect());
        if let Some(right) = self.root.insert(key, item, Ends { first: true, last: true }) {
            let (first, bounds) = (self.root.first, self.root.bounds.around(&right.bounds));
            let root = TreeNode { first, bounds, below: Below::Nodes(with_room()) };
            let left = std::mem::replace(&mut self.root, root);
            if let Below::Nodes(nodes) = &mut self.root.below {
                nodes.extend([left, right]);
            }
        }
    }

    /// Visits the items that overlap `rect` and drops those for which `stays` returns `false`.
    pub(super) fn visit(&mut self, rect: &Rect, stays: &mut impl FnMut(&mut T) -> bool) {
        self.len -= self.root.visit(rect, stays);
    }

    /// Visits all items as [`RTree::visit`] does.
    pub(super) fn visit_all(&mut self, stays: &mut impl FnMut(&mut T) -> bool) {
        let everywhere = self.root.bounds;
        self.visit(&everywhere, stays);
    }

    /// Returns `true` if `is_one` holds for an item.
    pub(super) fn any(&self, is_one: &mut impl FnMut(&T) -> bool) -> bool {
        self.root.any(is_one)
    }

    /// Returns the items, in no order.
    pub(super) fn into_items(self) -> Vec<T> {
        let mut items = Vec::with_capacity(self.len);
        self.root.move_to(&mut items);
        items
    }
}

/// The sides of the tree that a node is at.
#[derive(Clone, Copy)]
struct Ends {
    first: bool,
    last: bool,
}

impl<T: Placed> TreeNode<T> {
    /// Creates a node over `below`.
    fn over(below: Below<T>) -> Self {
        let first = match &below {
            Below::Items(items) => items.first().map_or(0, |item| morton(item.rect())),
            Below::Nodes(nodes) => nodes.first().map_or(0, |node| node.first),
        };
        let mut node = TreeNode { first, bounds: NOWHERE, below };
        node.measure();
        node
    }

    /// Computes the bounds of the items below.
    fn measure(&mut self) {
        self.bounds = match &self.below {
            Below::Items(items) => around(items.iter().map(Placed::rect)),
            Below::Nodes(nodes) => around(nodes.iter().map(|node| &node.bounds)),
        };
    }

    fn is_empty(&self) -> bool {
        match &self.below {
            Below::Items(items) => items.is_empty(),
            Below::Nodes(nodes) => nodes.is_empty(),
        }
    }

    /// Adds an item, and returns the node that follows this one if it had to be split.
    fn insert(&mut self, key: u64, item: T, ends: Ends) -> Option<Self> {
        self.first = self.first.min(key);
        self.bounds = self.bounds.around(item.rect());
        let (at, len) = match &mut self.below {
            Below::Items(items) => {
                items.push(item);
                if items.len() <= MOST {
                    return None;
                }
                items.sort_by_cached_key(|item| morton(item.rect()));
                (items.partition_point(|item| morton(item.rect()) < key), items.len())
            }
            Below::Nodes(nodes) => {
                let at = nodes.partition_point(|node| node.first <= key).saturating_sub(1);
                let first = ends.first && at == 0;
                let last = ends.last && at + 1 == nodes.len();
                let right = nodes.get_mut(at)?.insert(key, item, Ends { first, last })?;
                nodes.insert(at + 1, right);
                if nodes.len() <= MOST {
                    return None;
                }
                (if at == 0 { 0 } else { at + 1 }, nodes.len())
            }
        };
        let at = match at {
            0 if ends.first => 1,
            at if ends.last && at + 1 == len => at,
            _ => len / 2,
        };
        let right = TreeNode::over(match &mut self.below {
            Below::Items(items) => Below::Items(split_off(items, at)),
            Below::Nodes(nodes) => Below::Nodes(split_off(nodes, at)),
        });
        self.measure();
        Some(right)
    }

    /// Visits items as [`RTree::visit`], and returns the number of dropped ones.
    fn visit(&mut self, rect: &Rect, stays: &mut impl FnMut(&mut T) -> bool) -> usize {
        let mut dropped = 0;
        match &mut self.below {
            Below::Items(items) => {
                let mut at = 0;
                while let Some(item) = items.get_mut(at) {
                    if !item.rect().overlaps(rect) || stays(item) {
                        at += 1;
                    } else {
                        items.swap_remove(at);
                        dropped += 1;
                    }
                }
            }
            Below::Nodes(nodes) => {
                let mut emptied = false;
                for node in nodes.iter_mut().filter(|node| node.bounds.overlaps(rect)) {
                    dropped += node.visit(rect, stays);
                    emptied |= node.is_empty();
                }
                if emptied {
                    nodes.retain(|node| !node.is_empty());
                }
            }
        }
        if dropped > 0 {
            self.measure();
        }
        dropped
    }

    fn any(&self, is_one: &mut impl FnMut(&T) -> bool) -> bool {
        match &self.below {
            Below::Items(items) => items.iter().any(is_one),
            Below::Nodes(nodes) => nodes.iter().any(|node| node.any(is_one)),
        }
    }

    fn move_to(self, all: &mut Vec<T>) {
        match self.below {
            Below::Items(mut items) => all.append(&mut items),
            Below::Nodes(nodes) => nodes.into_iter().for_each(|node| node.move_to(all)),
        }
    }
}

/// Bounds of no item.
const NOWHERE: Rect = Rect::new(u32::MAX, 0, u32::MAX, 0);

fn around<'a>(rects: impl Iterator<Item = &'a Rect>) -> Rect {
    rects.fold(NOWHERE, |bounds, rect| bounds.around(rect))
}

fn with_room<T>() -> Vec<T> {
    Vec::with_capacity(MOST + 1)
}

fn split_off<T>(all: &mut Vec<T>, at: usize) -> Vec<T> {
    let mut right = with_room();
    right.extend(all.drain(at..));
    right
}

/// Cuts `all` into parts for nodes that have room left.
fn chunks<T>(all: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    let mut all = all.into_iter();
    std::iter::from_fn(move || {
        let mut chunk = with_room();
        chunk.extend(all.by_ref().take(FILLED));
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Returns the position of the first element of `rect` on a Z-order curve: the bits of its row and
/// column interleaved.
fn morton(rect: &Rect) -> u64 {
    spread(rect.row) << 1 | spread(rect.col)
}

/// Moves bit i to bit 2i.
fn spread(number: u32) -> u64 {
    let mut bits = u64::from(number);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    /// An item that counts the visits of searches.
    struct Counted<'a> {
        number: usize,
        rect: Rect,
        visits: &'a Cell<usize>,
    }

    impl Placed for Counted<'_> {
        fn rect(&self) -> &Rect {
            self.visits.set(self.visits.get() + 1);
            &self.rect
        }
    }

    fn found(tree: &mut RTree<Counted<'_>>, rect: &Rect) -> Vec<usize> {
        let mut found = Vec::new();
        tree.visit(rect, &mut |item| {
            found.push(item.number);
            true
        });
        found.sort_unstable();
        found
    }

    const MANY: u32 = 1 << 16;
    const SIDE: u32 = 1 << 8;

    /// Partitions of a tile: pieces of a row, strips of either direction, blocks.
    fn partitions() -> [fn(u32) -> Rect; 4] {
        [
            |at| Rect::new(0, 1, 10 * at, 10 * at + 10),
            |at| Rect::new(3 * at, 3 * at + 3, 0, 1000),
            |at| Rect::new(0, 1000, 3 * at, 3 * at + 3),
            |at| {
                let (row, col) = (at / SIDE, at % SIDE);
                Rect::new(7 * row, 7 * row + 7, 7 * col, 7 * col + 7)
            },
        ]
    }

    #[test]
    fn a_search_visits_few_items_of_many_in_whatever_order_they_came() {
        let scattered = |at: u32| at.wrapping_mul(40_503) % MANY;
        let orders: [fn(u32) -> u32; 3] = [|at| at, |at| MANY - 1 - at, scattered];
        let visits = Cell::new(0);
        for (partition, order) in
            partitions().into_iter().flat_map(|p| orders.into_iter().map(move |o| (p, o)))
        {
            let item = |at| {
                let number = order(at);
                Counted { number: number as usize, rect: partition(number), visits: &visits }
            };
            let mut tree = RTree::new(vec![item(0)]);
            (1..MANY).for_each(|at| tree.insert(item(at)));
            for at in (0..MANY).step_by(97) {
                visits.set(0);
                assert_eq!(found(&mut tree, &partition(at)), [at as usize]);
                assert!(visits.get() <= 8 * MOST, "{} visits for {at}", visits.get());
            }
        }
    }

    #[test]
    fn one_large_item_among_small_ones_does_not_slow_the_search_for_others() {
        let visits = Cell::new(0);
        let piece = |at: u32| Rect::new(0, 1, 10 * at, 10 * at + 10);
        let item = |number: u32, rect| Counted { number: number as usize, rect, visits: &visits };
        let mut tree = RTree::new(vec![item(MANY, Rect::new(0, 1, 0, 10 * MANY))]);
        (0..MANY).for_each(|at| tree.insert(item(at, piece(at))));
        visits.set(0);
        assert_eq!(found(&mut tree, &piece(4711)), [4711, MANY as usize]);
        assert!(visits.get() <= 8 * MOST, "{} visits", visits.get());
    }

    fn rects() -> impl Strategy<Value = Rect> {
        (0..50u32, 1..20u32, 0..50u32, 1..20u32)
            .prop_map(|(row, rows, col, cols)| Rect::new(row, row + rows, col, col + cols))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_tree_finds_and_drops_what_overlaps(
            begun in prop::collection::vec(rects(), 1..200),
            steps in prop::collection::vec((rects(), 0..4u32), 0..600),
        ) {
            let visits = Cell::new(0);
            let item = |(number, rect)| Counted { number, rect, visits: &visits };
            let mut list: Vec<(usize, Rect)> = begun.into_iter().enumerate().collect();
            let mut tree = RTree::new(list.iter().copied().map(item).collect());
            for (number, (rect, what)) in (list.len()..).zip(steps) {
                let overlaps = |(_, other): &&(usize, Rect)| other.overlaps(&rect);
                match what {
                    0 => {
                        let all: Vec<_> = list.iter().filter(overlaps).map(|(n, _)| *n).collect();
                        prop_assert_eq!(found(&mut tree, &rect), all);
                    }
                    1 => {
                        let goes = |number: usize| number.is_multiple_of(3);
                        list.retain(|(number, other)| !(other.overlaps(&rect) && goes(*number)));
                        tree.visit(&rect, &mut |item| !goes(item.number));
                    }
                    _ => {
                        list.push((number, rect));
                        tree.insert(item((number, rect)));
                    }
                }
                prop_assert_eq!(tree.len(), list.len());
                if list.is_empty() {
                    break;
                }
            }
            let mut numbers: Vec<_> = list.iter().map(|(number, _)| *number).collect();
            prop_assert!(!tree.any(&mut |item| !numbers.contains(&item.number)));
            let mut left: Vec<_> = tree.into_items().iter().map(|item| item.number).collect();
            left.sort_unstable();
            numbers.sort_unstable();
            prop_assert_eq!(left, numbers);
        }
    }
}
