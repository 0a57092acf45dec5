//! The constant part of a recorded graph: its edges.
//!
//! The accesses of one iteration go through maps like those of discovery twice. The first pass
//! finds the tasks that a task waits for in its own iteration, the second those of the iteration
//! before. No edge leads further back: between an access and a conflicting one two iterations later
//! lies the repetition of either. Nor does an edge lead from an earlier task to a later one of the
//! next iteration: tasks wait for themselves.
//!
//! Two tasks have one edge, however many of their accesses conflict. It names the accesses of the
//! earlier task that have to close, and is listed with each of them.

use std::any::TypeId;
use std::collections::HashMap;
use std::ops::Range;

use crate::data::{Mode, Rect};
use crate::dependency::{Declared, Item, Placed, SpatialList};

/// Accesses of a task beyond this many share the last bit: they are released together.
pub(super) const BITS: usize = 32;

/// The accesses of a graph, on which its edges depend.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sketch {
    /// Number of accesses of each task.
    pub(super) counts: Vec<usize>,
    /// Accesses of all tasks, one after another.
    uses: Vec<PlannedAccess>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlannedAccess {
    array: u64,
    rect: Rect,
    mode: Mode,
    /// Operator of a reduction.
    operator: Option<TypeId>,
}

/// A link from a task to one that waits for it: in the same iteration if that comes later in
/// program order, in the next one otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) to: u32,
    /// The accesses that have to close.
    pub(super) accesses: u32,
}

/// A tile that the graph touches.
#[derive(Debug)]
pub(super) struct Tile {
    /// An access to the tile, by its number among all.
    pub(super) access: usize,
    /// The number of the tile in its array.
    pub(super) number: usize,
    pub(super) writes: bool,
    /// Number of accesses that touch the tile.
    pub(super) users: u32,
}

/// A recorded graph.
#[derive(Debug)]
pub(crate) struct Plan {
    sketch: Sketch,
    edges: Vec<Edge>,
    /// The edges that wait for each access, by its number among all, as ranges of `edges`.
    waiting: Vec<Range<u32>>,
    /// The successors of each task, as ranges of `successors`.
    followed_by: Vec<Range<u32>>,
    successors: Vec<u32>,
    /// Edges to each task from its own iteration.
    pub(super) within: Vec<u32>,
    /// Edges to each task from the iteration before.
    pub(super) across: Vec<u32>,
    pub(super) tiles: Vec<Tile>,
    /// The tiles that each access touches, as ranges of `touched`.
    touches: Vec<Range<u32>>,
    touched: Vec<u32>,
}

/// The reason why there is no plan.
#[derive(Debug)]
pub(super) enum NoPlan {
    /// Two accesses of one task exclude each other: their numbers in the task.
    Overlap { task: usize, first: usize, second: usize },
    /// More links, of tasks or of accesses and tiles, than have numbers.
    TooMany(usize),
}

/// Largest number of links.
pub(super) const LINKS: usize = u32::MAX as usize;

impl Sketch {
    /// Adds an access of the task that is added next.
    pub(super) fn add(&mut self, access: &Declared<'_>, operator: Option<TypeId>) {
        let (array, rect, mode) = (access.core().id(), access.rect(), access.mode());
        self.uses.push(PlannedAccess { array, rect, mode, operator });
    }
}

/// An access in a map.
#[derive(Clone, Copy)]
struct Entry {
    task: u32,
    access: u32,
    /// Part of the access in the tile.
    part: Rect,
    whole: PlannedAccess,
    repeated: bool,
}

impl Placed for Entry {
    fn rect(&self) -> &Rect {
        &self.part
    }
}

impl Item for Entry {
    /// Returns `true`: no access closes while a graph is recorded.
    fn is_open(&self) -> bool {
        true
    }
}

/// The accesses of a tile. Reads are not compared with reads.
#[derive(Default)]
struct Map {
    reads: SpatialList<Entry>,
    others: SpatialList<Entry>,
}

type Maps = HashMap<(u64, usize), Map>;

impl Plan {
    /// Finds the edges of `sketch`, whose accesses are `declared`.
    ///
    /// **Errors**: accesses of one task that exclude each other.
    pub(super) fn new(sketch: Sketch, declared: &[Declared<'_>]) -> Result<Self, NoPlan> {
        let (mut found, mut touched) = (Vec::new(), 0);
        let mut maps = Maps::default();
        for repeated in [false, true] {
            let mut number = 0;
            for (task, count) in sketch.counts.iter().enumerate() {
                for access in 0..*count {
                    let new = &declared[number];
                    let entry = Entry {
                        task: task as u32,
                        access: access as u32,
                        part: new.rect(),
                        whole: sketch.uses[number],
                        repeated,
                    };
                    number += 1;
                    if new.rect().is_empty() {
                        continue;
                    }
                    let mut overlap = None;
                    new.core().tiles().for_each(&new.rect(), |tile, part| {
                        let map = maps.entry((new.core().id(), tile)).or_default();
                        overlap = overlap.or(enter(map, Entry { part, ..entry }, &mut found));
                        touched += 1;
                    });
                    if let Some(first) = overlap {
                        return Err(NoPlan::Overlap {
                            task,
                            first: first as usize,
                            second: access,
                        });
                    }
                    let links = number.max(touched).max(found.len());
                    if links > LINKS {
                        return Err(NoPlan::TooMany(links));
                    }
                }
            }
        }
        let mut plan = Plan {
            edges: Vec::new(),
            waiting: Vec::new(),
            followed_by: Vec::new(),
            successors: Vec::new(),
            within: vec![0; sketch.counts.len()],
            across: vec![0; sketch.counts.len()],
            tiles: Vec::new(),
            touches: Vec::new(),
            touched: Vec::new(),
            sketch,
        };
        plan.add_edges(found);
        plan.add_tiles(declared);
        #[cfg(debug_assertions)]
        plan.check();
        Ok(plan)
    }

    /// Returns `true` if this is the plan of `sketch`.
    pub(super) fn is_of(&self, sketch: &Sketch) -> bool {
        self.sketch == *sketch
    }

    /// Returns the edges that wait for an access, given by its number among all.
    #[inline]
    pub(super) fn edges_of(&self, access: usize) -> &[Edge] {
        let Range { start, end } = self.waiting[access];
        &self.edges[start as usize..end as usize]
    }

    /// Returns the successors of a task.
    #[inline]
    pub(super) fn successors_of(&self, task: usize) -> &[u32] {
        let Range { start, end } = self.followed_by[task];
        &self.successors[start as usize..end as usize]
    }

    /// Returns all edges, from task to task.
    pub(super) fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.followed_by.len())
            .flat_map(|from| self.successors_of(from).iter().map(move |to| (from, *to as usize)))
    }

    /// Returns the tiles that an access touches, given by its number among all.
    pub(super) fn touched_by(&self, access: usize) -> &[u32] {
        let Range { start, end } = self.touches[access];
        &self.touched[start as usize..end as usize]
    }

    /// Returns the number of accesses of each task.
    pub(super) fn counts(&self) -> &[usize] {
        &self.sketch.counts
    }

    fn add_edges(&mut self, mut found: Vec<(u32, Edge)>) {
        found.sort_unstable_by_key(|(from, edge)| (*from, edge.to));
        found.dedup_by(|(from, edge), (first_from, first)| {
            let same = (*from, edge.to) == (*first_from, first.to);
            if same {
                first.accesses |= edge.accesses;
            }
            same
        });
        let mut left = found.into_iter().peekable();
        for (from, accesses) in self.sketch.counts.iter().enumerate() {
            let mut own: Vec<Edge> = Vec::new();
            while let Some((_, edge)) = left.next_if(|(task, _)| *task as usize == from) {
                let counts =
                    if edge.to as usize > from { &mut self.within } else { &mut self.across };
                counts[edge.to as usize] += 1;
                own.push(edge);
            }
            let begin = self.successors.len() as u32;
            self.successors.extend(own.iter().map(|edge| edge.to));
            self.followed_by.push(begin..self.successors.len() as u32);
            for access in 0..*accesses {
                let begin = self.edges.len() as u32;
                if access < BITS {
                    let waits = |edge: &&Edge| edge.accesses & 1 << access != 0;
                    self.edges.extend(own.iter().filter(waits));
                }
                self.waiting.push(begin..self.edges.len() as u32);
            }
        }
    }

    fn add_tiles(&mut self, declared: &[Declared<'_>]) {
        let mut known = HashMap::new();
        for (access, new) in declared.iter().enumerate() {
            let begin = self.touched.len() as u32;
            let is_empty = new.rect().is_empty();
            let mut touch = |number: usize| {
                let tile = *known.entry((new.core().id(), number)).or_insert_with(|| {
                    self.tiles.push(Tile { access, number, writes: false, users: 0 });
                    self.tiles.len() - 1
                });
                self.tiles[tile].users += 1;
                self.tiles[tile].writes |= !is_empty && new.mode().writes();
                self.touched.push(tile as u32);
            };
            if is_empty {
                // Only to keep the array alive.
                touch(0);
            } else {
                new.core().tiles().for_each(&new.rect(), |tile, _| touch(tile));
            }
            self.touches.push(begin..self.touched.len() as u32);
        }
    }

    /// Compares the edges with discovery, pair by pair: of two accesses that conflict, here or an
    /// iteration apart, the later one comes after the earlier one.
    #[cfg(debug_assertions)]
    fn check(&self) {
        let counts = &self.sketch.counts;
        let tasks = counts.len();
        if tasks > CHECKED {
            return;
        }
        let mut uses = Vec::new();
        let mut left = &self.sketch.uses[..];
        for count in counts {
            let (own, others) = left.split_at(*count);
            uses.push(own.iter().filter(|used| !used.rect.is_empty()).collect::<Vec<_>>());
            left = others;
        }
        let mut followers = vec![Vec::new(); tasks];
        self.edges().for_each(|(from, to)| followers[from].push(to));
        let conflict = |a: &PlannedAccess, b: &PlannedAccess| {
            a.array == b.array && are_ordered(a, b) && a.rect.overlaps(&b.rect)
        };
        for from in 0..tasks {
            let mut reached = vec![false; 2 * tasks];
            let mut open = vec![from];
            while let Some(at) = open.pop() {
                if std::mem::replace(&mut reached[at], true) {
                    continue;
                }
                let (base, task) = (at - at % tasks, at % tasks);
                let next = followers[task].iter();
                let next = next.map(|&to| if to > task { base + to } else { base + tasks + to });
                open.extend(next.chain([at + tasks]).filter(|next| *next < 2 * tasks));
            }
            for to in from + 1..2 * tasks {
                let conflicts =
                    uses[from].iter().any(|a| uses[to % tasks].iter().any(|b| conflict(a, b)));
                assert!(reached[to] || !conflicts, "task {to} must wait for task {from}");
            }
        }
    }
}

/// Largest number of tasks in a graph that is checked.
#[cfg(debug_assertions)]
const CHECKED: usize = 400;

/// Returns `true` if accesses of different tasks to one element keep their order. Commutative ones
/// do in a recorded graph, those of one reduction do not.
fn are_ordered(one: &PlannedAccess, other: &PlannedAccess) -> bool {
    match one.mode {
        Mode::In | Mode::Concurrent => one.mode != other.mode,
        Mode::Reduction => one != other,
        Mode::Out | Mode::InOut | Mode::Commutative => true,
    }
}

/// Adds an access to the map of a tile, and an edge from every conflicting access there. Returns a
/// conflicting access of the same task.
fn enter(map: &mut Map, new: Entry, found: &mut Vec<(u32, Edge)>) -> Option<u32> {
    let mut overlap = None;
    let mode = new.whole.mode;
    let supersedes = mode.writes() && !matches!(mode, Mode::Concurrent | Mode::Reduction);
    let mut stays = |old: &mut Entry| {
        let same_iteration = old.repeated == new.repeated;
        let own = old.task == new.task && same_iteration;
        // A task cannot have two copies.
        let meets = own && mode == Mode::Reduction || are_ordered(&old.whole, &new.whole);
        if !meets {
            return true;
        }
        if own {
            overlap = Some(old.access);
        } else if old.task != new.task && (!new.repeated || !same_iteration && old.task > new.task)
        {
            let accesses = 1 << old.access.min(BITS as u32 - 1);
            found.push((old.task, Edge { to: new.task, accesses }));
        }
        !(supersedes && new.part.covers(&old.part))
    };
    map.others.visit(&new.part, &mut stays);
    if mode == Mode::In {
        map.reads.add(new);
    } else {
        map.reads.visit(&new.part, &mut stays);
        map.others.add(new);
    }
    overlap
}
