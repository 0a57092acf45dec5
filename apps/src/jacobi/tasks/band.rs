//! Part of the matrix that a rank has, and the tasks that compute it.

use std::ops::Range;

use ndarray::s;
use talpf::Decomposition;
use talpf_runtime::{Ix2, Matrix, Region, Scope};

use crate::Error;
use crate::heat::{Border, CheckedStep, collect_field, largest_change};
use crate::jacobi::{Problem, WORK, kernel, strip_columns};
use crate::partition::pieces;
use crate::run::{Machine, RankContext, RankSpeed, RunInput, Step, spawn_on};

/// Matrices of a rank, cut into strips.
pub(super) struct Band {
    parts: Decomposition,
    rows: usize,
    cols: usize,
    /// Rows and columns of a strip.
    strip: (usize, usize),
    /// Matrices of alternate steps.
    fields: [Matrix<f64>; 2],
}

impl Band {
    pub(super) fn new(
        ctx: &RankContext,
        input: &RunInput<Problem>,
        border: &Border,
    ) -> Result<Self, Error> {
        let (problem, machine) = (&input.problem, input.machine);
        let block = problem.block();
        let columns = if problem.has_single_blocks() { block } else { strip_columns(block) };
        let strip = (block, columns);
        let parts = problem.decomposition(ctx.size())?.in_pieces(strip.0, strip.1);
        let field = || problem.field(ctx, machine, &parts, border, strip);
        let fields = [field()?, field()?];
        let (rows, cols) = (fields[0].rows() - 2, fields[0].cols() - 2);
        Ok(Self { parts, rows, cols, strip, fields })
    }

    /// Returns the distribution to all ranks, whose halos are exchanged in a piece for each strip.
    pub(super) fn parts(&self) -> &Decomposition {
        &self.parts
    }

    /// Returns the matrix that a step reads.
    pub(super) fn before(&self, step: usize) -> &Matrix<f64> {
        &self.fields[step % 2]
    }

    /// Returns the matrix that a step writes.
    pub(super) fn after(&self, step: usize) -> &Matrix<f64> {
        self.before(step + 1)
    }

    /// Declares a task for every strip: the top and bottom ones first, since neighbours wait for
    /// them. In a checked step each computes its largest change.
    pub(super) fn declare_step<'a>(
        &'a self,
        number: usize,
        step: Step<'_, 'a>,
        speed: &RankSpeed,
        checked: Option<CheckedStep<'a>>,
    ) -> Result<(), Error> {
        let (old, new) = (self.before(number), self.after(number));
        for (strip, (rows, cols)) in self.strips().enumerate() {
            let around = (rows.start - 1..rows.end + 1, cols.start - 1..cols.end + 1);
            // The lookahead is the throttle.
            let cells = (rows.len() * cols.len()) as u64;
            let task = step.task("jacobi").unthrottled().work(WORK, cells);
            let task = task.input(&old.region(around.0, around.1)).output(&new.region(rows, cols));
            let core = speed.core();
            let Some(checked) = checked else {
                spawn_on!(core, task, |old, new| {
                    kernel::sweep(old.view(), new.view_mut());
                })?;
                continue;
            };
            let is_checked = checked.condition();
            let task = task.output(&checked.change(strip));
            spawn_on!(core, task, |old, new, change| {
                kernel::sweep(old.view(), new.view_mut());
                if is_checked() {
                    let (rows, cols) = new.view().dim();
                    let old = old.view().slice_move(s![1..=rows, 1..=cols]);
                    change[0] = largest_change(old, new.view());
                }
            })?;
        }
        Ok(())
    }

    /// Returns the region of the task that is declared last in a step.
    pub(super) fn last_strip(&self, step: usize) -> Option<Region<'_, f64, Ix2>> {
        self.strips().last().map(|(rows, cols)| self.after(step).region(rows, cols))
    }

    /// Returns the number of tasks of a step.
    pub(super) fn tasks(&self) -> usize {
        self.strips().count()
    }

    fn strips(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let mut strips = pieces(1..self.rows + 1, self.strip.0);
        let first = strips.next();
        let last = strips.next_back();
        let rows = first.into_iter().chain(last).chain(strips);
        let cols = pieces(1..self.cols + 1, self.strip.1);
        rows.flat_map(move |rows| cols.clone().map(move |cols| (rows.clone(), cols)))
    }

    /// Converts the matrices into the cells after `steps` steps.
    pub(super) async fn collect(
        self,
        ctx: &RankContext,
        machine: Machine,
        steps: usize,
    ) -> Result<Vec<f64>, Error> {
        let [even, odd] = self.fields;
        let field = if steps.is_multiple_of(2) { even } else { odd };
        collect_field(ctx, machine, field).await
    }
}
