//! The random trees of the tests.

use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;
use talpf_runtime::Tiling;

use super::{COLS, LEN, ROWS};

/// A task as it is drawn: its uses are parts of its parent's.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    uses: Vec<DraftUse>,
    children: Vec<Draft>,
    habits: Habits,
}

#[derive(Clone, Debug)]
struct DraftUse {
    /// Index of the parent's use that contains this one, and the part of it.
    of: prop::sample::Index,
    rows: (prop::sample::Index, prop::sample::Index),
    cols: (prop::sample::Index, prop::sample::Index),
    writes: bool,
    weak: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Habits {
    pub(super) inline: bool,
    pub(super) awaits: usize,
    pub(super) drops_early: bool,
    pub(super) waits: bool,
    pub(super) fails: bool,
    pub(super) joins: Option<Joins>,
    pub(super) has_back: Option<prop::sample::Index>,
}

/// The mode in which a task writes together with others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Joins {
    Commutes,
    Reduces,
}

/// An access, with its position in the array.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) of: usize,
    pub(super) matrix: bool,
    pub(super) rows: Range<usize>,
    pub(super) cols: Range<usize>,
    pub(super) writes: bool,
    pub(super) weak: bool,
    pub(super) joins: Option<Joins>,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) number: u64,
    pub(super) uses: Vec<Use>,
    pub(super) children: Vec<Arc<Task>>,
    pub(super) habits: Habits,
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) tile: usize,
    pub(super) tiling: Tiling,
    pub(super) workers: usize,
    pub(super) roots: Vec<Draft>,
    /// Steps of a replayed graph after the first root.
    pub(super) replayed: usize,
}

fn draft_use() -> impl Strategy<Value = DraftUse> {
    let part = || (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let often = || prop::bool::weighted(0.6);
    (any::<prop::sample::Index>(), part(), part(), often(), any::<bool>())
        .prop_map(|(of, rows, cols, writes, weak)| DraftUse { of, rows, cols, writes, weak })
}

fn habits() -> impl Strategy<Value = Habits> {
    let has_back = prop::option::weighted(0.2, any::<prop::sample::Index>());
    let seldom = || prop::bool::weighted(0.3);
    let joins = prop_oneof![
        2 => Just(None),
        1 => Just(Some(Joins::Commutes)),
        1 => Just(Some(Joins::Reduces)),
    ];
    let fails = prop::bool::weighted(0.1);
    (any::<bool>(), 0..3usize, any::<bool>(), seldom(), fails, joins, has_back).prop_map(
        |(inline, awaits, drops_early, waits, fails, joins, has_back)| Habits {
            inline,
            awaits,
            drops_early,
            waits,
            fails,
            joins,
            has_back,
        },
    )
}

fn draft() -> impl Strategy<Value = Draft> {
    let uses = || prop::collection::vec(draft_use(), 0..4);
    let leaf =
        (uses(), habits()).prop_map(|(uses, habits)| Draft { uses, children: Vec::new(), habits });
    leaf.prop_recursive(3, 24, 4, move |inner| {
        (uses(), prop::collection::vec(inner, 0..5), habits())
            .prop_map(|(uses, children, habits)| Draft { uses, children, habits })
    })
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let tiling = (1..=ROWS, 1..=COLS, 0..3usize, 0..3usize).prop_map(
        |(rows, cols, first_rows, first_cols)| {
            Tiling::new(rows, cols).first(first_rows, first_cols)
        },
    );
    let workers = prop_oneof![Just(1usize), Just(2), Just(8)];
    let roots = prop::collection::vec(draft(), 1..8);
    (1..=LEN, tiling, workers, roots, 0..4usize).prop_map(
        |(tile, tiling, workers, roots, replayed)| Case { tile, tiling, workers, roots, replayed },
    )
}

/// Returns the two arrays, as if a task around all others had lent them.
pub(super) fn everything() -> [Use; 2] {
    let whole = |matrix, rows, cols| {
        let (rows, cols) = (0..rows, 0..cols);
        Use { of: usize::from(matrix), matrix, rows, cols, writes: true, weak: false, joins: None }
    };
    [whole(false, 1, LEN), whole(true, ROWS, COLS)]
}

/// Gives drafts numbers and places; uses that conflict with an earlier one of the task are left
/// out. Those that `may_join` others write as they are drawn.
pub(super) fn settle(draft: &Draft, lent: &[Use], may_join: bool, next: &mut u64) -> Arc<Task> {
    let number = *next;
    let joins = draft.habits.joins.filter(|_| may_join && draft.children.is_empty());
    *next += 1;
    let mut uses: Vec<Use> = Vec::new();
    for wanted in draft.uses.iter().filter(|_| !lent.is_empty()) {
        let of = wanted.of.index(lent.len());
        let lender = &lent[of];
        let part = |whole: &Range<usize>, (a, b): (prop::sample::Index, prop::sample::Index)| {
            let a = whole.start + a.index(whole.len() + 1);
            let b = whole.start + b.index(whole.len() + 1);
            a.min(b)..a.max(b)
        };
        let rows = if lender.matrix { part(&lender.rows, wanted.rows) } else { 0..1 };
        let cols = part(&lender.cols, wanted.cols);
        let writes = wanted.writes && lender.writes;
        let (weak, joins) = (wanted.weak && joins.is_none(), joins.filter(|_| writes));
        let new = Use { of, matrix: lender.matrix, rows, cols, writes, weak, joins };
        let commutes = |access: &Use| access.joins == Some(Joins::Commutes);
        let meet = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        let conflicts = |old: &Use| {
            // Commutative accesses exclude each other by tile.
            old.matrix == new.matrix
                && (commutes(old) && commutes(&new)
                    || (old.writes || new.writes)
                        && meet(&old.rows, &new.rows)
                        && meet(&old.cols, &new.cols))
        };
        if !uses.iter().any(conflicts) {
            uses.push(new);
        }
    }
    let child = |child| settle(child, &uses, may_join, next);
    let children = draft.children.iter().map(child).collect();
    Arc::new(Task { number, uses, children, habits: Habits { joins, ..draft.habits.clone() } })
}
