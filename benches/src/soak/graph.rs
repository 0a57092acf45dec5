//! Random task graphs over arrays of several groups, and what running them serially gives.
//!
//! Tasks are drawn one after another and applied to a model of the memory at once, in which what a
//! failed task would have written is undefined: a task that touches any of that does not run (R4).
//! Concurrent and commutative tasks run in any order, so they only add. Those of them that would
//! fail, or not run, are drawn as `inout` instead: whom they take along depends on the order.
//!
//! Of a phase in which a group is cancelled nothing is known at its end but that it ends.

use talpf_runtime::Mode;

use super::dice::{Dice, mix};

/// Elements of an array.
pub(super) const LEN: usize = 48;

/// Arrays by number, `None` where a failure left an element undefined.
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
    /// Whether a task spawns the others.
    pub(super) from_inside: bool,
    /// Whether all arrays are overwritten first.
    pub(super) resets: bool,
    pub(super) steps: Vec<Step>,
    /// The group that is cancelled, before that many steps are spawned.
    pub(super) cancels: Option<(usize, usize)>,
    /// What is in the arrays at the end.
    pub(super) memory: Memory,
    /// The groups whose waits tell of failures.
    pub(super) failed: Vec<bool>,
}

/// One task.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) number: u64,
    pub(super) group: usize,
    pub(super) priority: i32,
    pub(super) inline: bool,
    pub(super) uses: Vec<Use>,
    /// Whether it lets go of what it only reads before it writes.
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

/// How a body gets from reading to writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// At once.
    Calls,
    /// It lets others run.
    Yields,
    /// It waits for a time.
    Sleeps,
    /// A thread outside wakes it.
    Woken,
    /// It ends, and a thread outside writes with its guards and resolves its event.
    Leaves,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Runs,
    PanicsBeforeWriting,
    PanicsAfterWriting,
    Reports,
    /// Something it touches is undefined.
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

/// What a reset writes.
pub(super) fn initial(array: usize, element: usize) -> u64 {
    mix(array as u64, element as u64)
}

impl Graph {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        let groups = 1 + dice.below(3);
        let shape =
            |dice: &mut Dice| Shape { group: dice.below(groups), tile: 1 + dice.below(LEN) };
        let arrays: Vec<Shape> = (0..1 + dice.below(4)).map(|_| shape(dice)).collect();
        let mut memory = Memory::new();
        let mut phases = Vec::new();
        for _ in 0..1 + dice.below(4) {
            let phase = Phase::draw(dice, groups, &arrays, memory);
            memory = phase.memory.clone();
            phases.push(phase);
        }
        Graph { groups, arrays, phases }
    }
}

impl Phase {
    fn draw(dice: &mut Dice, groups: usize, arrays: &[Shape], mut memory: Memory) -> Self {
        let resets = memory.iter().flatten().any(Option::is_none) || memory.is_empty();
        if resets {
            let array =
                |array| (0..LEN).map(move |element| Some(initial(array, element))).collect();
            memory = (0..arrays.len()).map(array).collect();
        }
        let fails = dice.one_in(3);
        let mut failed = vec![false; groups];
        let mut steps = Vec::new();
        for number in 0..1 + dice.below(300) as u64 {
            let mut step = Step::draw(dice, number, groups, arrays.len());
            step.decide(dice, fails, &memory);
            step.apply(&mut memory);
            if step.fate != Fate::Runs {
                failed[step.group] = true;
                step.writes().for_each(|access| failed[arrays[access.array].group] = true);
            }
            steps.push(step);
        }
        let from_inside = dice.one_in(2);
        let cancels = dice.one_in(6).then(|| (dice.below(groups), dice.below(steps.len() + 1)));
        if cancels.is_some() {
            // Whatever had begun has run.
            memory.iter_mut().for_each(|array| array.fill(None));
        }
        Phase { from_inside, resets, steps, cancels, memory, failed }
    }
}

impl Step {
    fn draw(dice: &mut Dice, number: u64, groups: usize, arrays: usize) -> Self {
        let mut uses: Vec<Use> = Vec::new();
        for _ in 0..dice.below(6) {
            let longest = dice.pick(&[LEN, 12, 12, 12, 12, 12]);
            let (from, to) = dice.part(LEN, longest);
            let new = Use { array: dice.below(arrays), from, to, mode: *dice.weigh(&MODES) };
            if !uses.iter().any(|old| old.excludes(&new)) {
                uses.push(new);
            }
        }
        Step {
            number,
            group: dice.below(groups),
            priority: if dice.one_in(5) { dice.below(5) as i32 - 2 } else { 0 },
            inline: dice.one_in(6),
            uses,
            drops_early: dice.one_in(3),
            manner: *dice.weigh(&MANNERS),
            fate: Fate::Runs,
        }
    }

    fn decide(&mut self, dice: &mut Dice, fails: bool, memory: &Memory) {
        let undefined = |access: &Use| memory[access.array][access.from..access.to].contains(&None);
        if self.uses.iter().any(undefined) {
            self.fate = Fate::Skipped;
        } else if fails {
            self.fate = *dice.weigh(&FAILURES);
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

    /// Whether one task must not have both: commutative accesses take turns by tile.
    fn excludes(&self, other: &Use) -> bool {
        let both = |mode| self.mode == mode && other.mode == mode;
        let meet = self.from < other.to && other.from < self.to;
        self.array == other.array && (both(Mode::Commutative) || meet && !both(Mode::In))
    }
}
