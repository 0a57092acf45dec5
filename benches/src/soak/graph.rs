//! Random task graphs over arrays of several groups, and the result of running them serially.
//!
//! Tasks are drawn one after another and applied at once to a model of the memory. In the model the
//! outputs of a failed task are undefined, and a task that touches an undefined element does not
//! run. Concurrent and commutative tasks run in any order, so they only add. If such a task would
//! fail, or not run, it is drawn as `inout` instead, since the tasks affected would depend on the
//! order.
//!
//! After a phase in which a group is cancelled, only its termination is checked.

use talpf_runtime::Mode;

use super::rng::{Rng, mix};

/// Elements of an array.
pub(super) const LEN: usize = 48;

/// Arrays by number; an element is `None` where a failure left it undefined.
pub(super) type Memory = Vec<Vec<Option<u64>>>;

#[derive(Clone, Debug)]
pub(super) struct Graph {
    pub(super) groups: usize,
    pub(super) arrays: Vec<Shape>,
    pub(super) phases: Vec<Phase>,
}

#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) group: usize,
    pub(super) tile: usize,
}

/// Tasks between two waits.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    /// `true` if a task spawns the others.
    pub(super) from_inside: bool,
    /// `true` if all arrays are overwritten first.
    pub(super) resets: bool,
    pub(super) tasks: Vec<PlannedTask>,
    /// Group that is cancelled, and the number of tasks spawned before that.
    pub(super) cancels: Option<(usize, usize)>,
    /// Contents of the arrays at the end.
    pub(super) memory: Memory,
    /// Flags by group: `true` if the wait for the group reports a failure.
    pub(super) failed: Vec<bool>,
}

/// Planned task.
#[derive(Clone, Debug)]
pub(super) struct PlannedTask {
    pub(super) number: u64,
    pub(super) group: usize,
    pub(super) priority: i32,
    pub(super) inline: bool,
    pub(super) uses: Vec<Use>,
    /// `true` if the body drops its read-only guards before it writes.
    pub(super) drops_early: bool,
    pub(super) manner: Manner,
    pub(super) fate: Fate,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) array: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) mode: Mode,
}

/// Behaviour of a body between reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Writes at once.
    Calls,
    /// Yields to other tasks.
    Yields,
    /// Waits for a time.
    Sleeps,
    /// Waits until a thread outside the runtime wakes it.
    Woken,
    /// Ends; a thread outside writes with its guards and resolves its event.
    Leaves,
}

/// Outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Runs,
    PanicsBeforeWriting,
    PanicsAfterWriting,
    Reports,
    /// Does not run, because an element that it touches is undefined.
    Skipped,
}

const MANNERS: [(u32, Manner); 5] = [
    (8, Manner::Calls),
    (2, Manner::Yields),
    (1, Manner::Sleeps),
    (2, Manner::Woken),
    (2, Manner::Leaves),
];

const MODES: [(u32, Mode); 5] = [
    (6, Mode::In),
    (2, Mode::Out),
    (3, Mode::InOut),
    (2, Mode::Concurrent),
    (2, Mode::Commutative),
];

const FAILURES: [(u32, Fate); 4] = [
    (40, Fate::Runs),
    (1, Fate::PanicsBeforeWriting),
    (1, Fate::PanicsAfterWriting),
    (1, Fate::Reports),
];

/// Returns the value that a reset writes.
pub(super) fn initial(array: usize, element: usize) -> u64 {
    mix(array as u64, element as u64)
}

impl Graph {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let groups = 1 + rng.below(3);
        let shape = |rng: &mut Rng| Shape { group: rng.below(groups), tile: 1 + rng.below(LEN) };
        let arrays: Vec<Shape> = (0..1 + rng.below(4)).map(|_| shape(rng)).collect();
        let mut memory = Memory::new();
        let mut phases = Vec::new();
        for _ in 0..1 + rng.below(4) {
            let phase = Phase::draw(rng, groups, &arrays, memory);
            memory = phase.memory.clone();
            phases.push(phase);
        }
        Graph { groups, arrays, phases }
    }
}

impl Phase {
    fn draw(rng: &mut Rng, groups: usize, arrays: &[Shape], mut memory: Memory) -> Self {
        let resets = memory.iter().flatten().any(Option::is_none) || memory.is_empty();
        if resets {
            let array =
                |array| (0..LEN).map(move |element| Some(initial(array, element))).collect();
            memory = (0..arrays.len()).map(array).collect();
        }
        let fails = rng.one_in(3);
        let mut failed = vec![false; groups];
        let mut tasks = Vec::new();
        for number in 0..1 + rng.below(300) as u64 {
            let mut task = PlannedTask::draw(rng, number, groups, arrays.len());
            task.decide(rng, fails, &memory);
            task.apply(&mut memory);
            if task.fate != Fate::Runs {
                failed[task.group] = true;
                task.writes().for_each(|access| failed[arrays[access.array].group] = true);
            }
            tasks.push(task);
        }
        let from_inside = rng.one_in(2);
        let cancels = rng.one_in(6).then(|| (rng.below(groups), rng.below(tasks.len() + 1)));
        if cancels.is_some() {
            // Tasks that had begun have run.
            memory.iter_mut().for_each(|array| array.fill(None));
        }
        Phase { from_inside, resets, tasks, cancels, memory, failed }
    }
}

impl PlannedTask {
    fn draw(rng: &mut Rng, number: u64, groups: usize, arrays: usize) -> Self {
        let mut uses: Vec<Use> = Vec::new();
        for _ in 0..rng.below(6) {
            let longest = rng.pick(&[LEN, 12, 12, 12, 12, 12]);
            let (from, to) = rng.part(LEN, longest);
            let new = Use { array: rng.below(arrays), from, to, mode: *rng.pick_weighted(&MODES) };
            if !uses.iter().any(|old| old.excludes(&new)) {
                uses.push(new);
            }
        }
        PlannedTask {
            number,
            group: rng.below(groups),
            priority: if rng.one_in(5) { rng.below(5) as i32 - 2 } else { 0 },
            inline: rng.one_in(6),
            uses,
            drops_early: rng.one_in(3),
            manner: *rng.pick_weighted(&MANNERS),
            fate: Fate::Runs,
        }
    }

    fn decide(&mut self, rng: &mut Rng, fails: bool, memory: &Memory) {
        let undefined = |access: &Use| memory[access.array][access.from..access.to].contains(&None);
        if self.uses.iter().any(undefined) {
            self.fate = Fate::Skipped;
        } else if fails {
            self.fate = *rng.pick_weighted(&FAILURES);
        }
        if self.fate != Fate::Runs {
            let unordered = |access: &&mut Use| access.adds();
            self.uses.iter_mut().filter(unordered).for_each(|access| access.mode = Mode::InOut);
        }
    }

    pub(super) fn writes(&self) -> impl Iterator<Item = &Use> {
        self.uses.iter().filter(|access| access.mode != Mode::In)
    }

    fn apply(&self, memory: &mut Memory) {
        if self.fate != Fate::Runs {
            self.writes().for_each(|u| memory[u.array][u.from..u.to].fill(None));
            return;
        }
        let mut seed = self.number;
        for access in self.uses.iter().filter(|access| access.reads()) {
            let cells = memory[access.array][access.from..access.to].iter().flatten();
            cells.for_each(|&value| seed = mix(seed, value));
        }
        for access in self.writes() {
            let cells = &mut memory[access.array][access.from..access.to];
            for (element, cell) in (access.from..).zip(cells) {
                seed = mix(seed, element as u64);
                let before = if access.adds() { cell.unwrap_or(0) } else { 0 };
                *cell = Some(before.wrapping_add(seed));
            }
        }
    }
}

impl Use {
    pub(super) fn reads(&self) -> bool {
        matches!(self.mode, Mode::In | Mode::InOut)
    }

    pub(super) fn adds(&self) -> bool {
        matches!(self.mode, Mode::Concurrent | Mode::Commutative)
    }

    /// Returns `true` if one task must not have both: commutative accesses hold a lock per tile.
    fn excludes(&self, other: &Use) -> bool {
        let both = |mode| self.mode == mode && other.mode == mode;
        let meet = self.from < other.to && other.from < self.to;
        self.array == other.array && (both(Mode::Commutative) || meet && !both(Mode::In))
    }
}
