//! Options of a heat problem.

use std::path::PathBuf;

use clap::Args;
use talpf_apps::Error;
use talpf_apps::heat::{self, Problem};

use super::number_within::number_within;
use super::run_options::Preset;

#[derive(Args, Debug)]
pub(super) struct JacobiOptions {
    #[command(flatten)]
    heat: HeatOptions,

    /// Rows and columns of a grid of ranks, of which each has a rectangle of the matrix, such as
    /// 2x3 [default: every rank has a band of rows]
    #[arg(long, value_name = "PYxPX", value_parser = grid)]
    grid: Option<[u32; 2]>,
}

impl JacobiOptions {
    /// Returns the problem, as [`HeatOptions::problem`].
    pub(super) fn problem(
        &self,
        steps: usize,
        block: impl FnOnce(usize) -> usize,
    ) -> Result<Problem, Error> {
        let problem = self.heat.problem(steps, block)?;
        Ok(problem.on_grid(self.grid))
    }
}

/// Parses the rows and columns of a grid.
fn grid(text: &str) -> Result<[u32; 2], String> {
    let numbers = text.split_once('x').map(|(rows, cols)| [rows, cols].map(str::parse));
    match numbers {
        Some([Ok(rows), Ok(cols)])
            if (1..=MOST_RANKS).contains(&rows) && (1..=MOST_RANKS).contains(&cols) =>
        {
            Ok([rows, cols])
        }
        _ => Err(format!("expected rows and columns from 1 to {MOST_RANKS}, such as 2x3")),
    }
}

/// Parses a tolerance.
fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number of at least 0".to_owned())
}

/// Largest extent of a grid of ranks.
const MOST_RANKS: u32 = 1 << 16;

#[derive(Args, Debug)]
pub(super) struct HeatOptions {
    /// Rows and columns of a square matrix [default: 1024]
    #[arg(long, value_name = "S", value_parser = number_within(Problem::EXTENTS),
          conflicts_with_all = ["rows", "cols"])]
    size: Option<usize>,

    /// Rows of the matrix
    #[arg(long, value_name = "R", value_parser = number_within(Problem::EXTENTS), requires = "cols")]
    rows: Option<usize>,

    /// Columns of the matrix
    #[arg(long, value_name = "C", value_parser = number_within(Problem::EXTENTS), requires = "rows")]
    cols: Option<usize>,

    /// Rows and columns of a block
    #[arg(long, value_name = "B", value_parser = number_within(Problem::EXTENTS))]
    block: Option<usize>,

    /// Compute each block in a task of its own, instead of as many side by side as make long rows:
    /// more tasks for many cores, and more time for each cell
    #[arg(long)]
    single_blocks: bool,

    /// Steps to compute
    #[arg(long, value_name = "T", value_parser = number_within(Problem::STEPS))]
    steps: Option<usize>,

    /// End the run once no cell changes by more than T in a step; --steps is the limit then
    /// [checked in every 16th step, seen 16 steps later]
    #[arg(long, value_name = "T", value_parser = tolerance, allow_hyphen_values = true)]
    tolerance: Option<f64>,

    /// Heat sources, a text file: their number, then row, column, size and temperature per line;
    /// positions are from 0 to 1
    #[arg(long, value_name = "heat.conf")]
    config: Option<PathBuf>,

    /// Sizes for options that are not given: 16384 x 16384 in blocks of 512, 100 steps
    #[arg(long, value_enum)]
    preset: Option<Preset>,
}

impl HeatOptions {
    /// Returns the problem. `steps`, and `block` of a number of columns, apply if neither an option
    /// nor a preset gives a value.
    pub(super) fn problem(
        &self,
        steps: usize,
        block: impl FnOnce(usize) -> usize,
    ) -> Result<Problem, Error> {
        let sources = match &self.config {
            Some(path) => heat::load(path)?,
            None => heat::default_sources(),
        };
        let (size, usual, steps) = match self.preset {
            None => (1024, None, steps),
            Some(Preset::Thesis) => (16_384, Some(512), 100),
        };
        let size = self.size.unwrap_or(size);
        let (rows, cols) = self.rows.zip(self.cols).unwrap_or((size, size));
        let block = self.block.or(usual).unwrap_or_else(|| block(cols));
        let steps = self.steps.unwrap_or(steps);
        let problem = Problem::new(rows, cols, block, steps, sources)?;
        problem.in_single_blocks(self.single_blocks).until(self.tolerance)
    }
}
