//! Heat problem.

use std::ops::{Range, RangeInclusive};

use talpf::Decomposition;

use super::{Border, Source};
use crate::partition::share;
use crate::run::{self, Machine, Work};
use crate::{Error, Matrix};

/// Heat problem: `rows x cols` cells inside a border of fixed temperatures, and the number of
/// steps. Blocks are the units of work of the task variants, one or several side by side per task;
/// neither the number of ranks nor the block needs to divide the matrix.
#[derive(Clone, Debug)]
pub struct Problem {
    rows: usize,
    cols: usize,
    block: usize,
    steps: usize,
    sources: Vec<Source>,
    /// Rows and columns of the grid of ranks, if ranks have no whole rows.
    grid: Option<[u32; 2]>,
    /// Residual at which a run ends before its last step.
    tolerance: Option<f64>,
    /// `true` if each task computes one block.
    single_blocks: bool,
}

impl Problem {
    /// Limits of the numbers of rows and columns, and of the size of a block.
    pub const EXTENTS: RangeInclusive<usize> = 1..=1 << 24;
    /// Limits of the number of steps.
    pub const STEPS: RangeInclusive<usize> = 1..=1_000_000_000;

    /// Creates a problem of `rows x cols` inner cells in blocks of `block x block`.
    ///
    /// **Errors**: [`Error::OutOfRange`].
    pub fn new(
        rows: usize,
        cols: usize,
        block: usize,
        steps: usize,
        sources: Vec<Source>,
    ) -> Result<Self, Error> {
        Ok(Self {
            rows: Error::check_range("rows", rows, Self::EXTENTS)?,
            cols: Error::check_range("cols", cols, Self::EXTENTS)?,
            block: Error::check_range("block", block, Self::EXTENTS)?,
            steps: Error::check_range("steps", steps, Self::STEPS)?,
            sources,
            grid: None,
            tolerance: None,
            single_blocks: false,
        })
    }

    /// Distributes the matrix to a grid of ranks instead of its rows. Jacobi does.
    pub fn on_grid(self, grid: Option<[u32; 2]>) -> Self {
        Self { grid, ..self }
    }

    /// Lets each task compute one block if `single_blocks`, instead of as many side by side as make
    /// long rows: as the benchmarks of the thesis, with more time for each cell.
    pub fn in_single_blocks(self, single_blocks: bool) -> Self {
        Self { single_blocks, ..self }
    }

    /// Returns `true` if each task computes one block.
    pub(crate) fn has_single_blocks(&self) -> bool {
        self.single_blocks
    }

    /// Lets runs end once the largest absolute change of a cell in a step is at most `tolerance`;
    /// the number of steps is their limit then. Changes are computed in every sixteenth step, and
    /// a run ends sixteen steps later, so that no rank waits for the others.
    ///
    /// **Errors**: [`Error::Tolerance`].
    pub fn until(self, tolerance: Option<f64>) -> Result<Self, Error> {
        match tolerance {
            Some(value) if !(value.is_finite() && value >= 0.0) => Err(Error::Tolerance { value }),
            _ => Ok(Self { tolerance, ..self }),
        }
    }

    /// Returns the residual at which a run ends before its last step.
    pub fn tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    /// Returns the rows and columns of the grid of ranks, if ranks have no whole rows.
    pub(crate) fn grid(&self) -> Option<[u32; 2]> {
        self.grid
    }

    /// Returns the distribution of the matrix to `ranks`, with halos of one cell.
    ///
    /// **Errors**: [`Error::Grid`]; [`Error::Talpf`] for parts without cells.
    pub(crate) fn decomposition(&self, ranks: usize) -> Result<Decomposition, Error> {
        let grid @ [rows, cols] = self.grid.unwrap_or([ranks as u32, 1]);
        if rows as usize * cols as usize != ranks {
            return Err(Error::Grid { rows, cols, ranks });
        }
        Ok(Decomposition::grid(grid, [self.rows, self.cols], 1)?)
    }

    /// Returns the number of inner rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of inner columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the number of rows and columns of a block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Returns the number of steps, or their limit if there is a tolerance.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the rows of band `index` of `bands`, counted without the border. Bands differ by one
    /// row at most.
    pub fn band(&self, index: usize, bands: usize) -> Range<usize> {
        share(self.rows, index, bands)
    }

    /// Returns the bytes of one matrix with its border.
    pub fn matrix_bytes(&self) -> u64 {
        self.band_bytes(1)
    }

    /// Returns the bytes of one matrix in `bands` bands, each with a row above and one below.
    pub fn band_bytes(&self, bands: usize) -> u64 {
        let cells = (self.rows as u64 + 2 * bands as u64) * (self.cols as u64 + 2);
        cells * size_of::<f64>() as u64
    }

    /// Computes the fixed temperatures around the matrix.
    pub fn border(&self) -> Border {
        Border::new(self.rows, self.cols, &self.sources)
    }

    /// Creates the matrix before the first step (`(rows + 2) x (cols + 2)`): the border, and zero
    /// inside.
    pub fn initial_matrix(&self) -> Matrix {
        let mut matrix = Matrix::zeros(self.rows + 2, self.cols + 2);
        self.border().apply(0, 0, matrix.view_mut());
        matrix
    }

    /// Checks that the problem can be solved on `machine`: a tolerance needs results.
    ///
    /// **Errors**: [`Error::NotTogether`].
    pub(crate) fn check_execution(&self, machine: Machine) -> Result<(), Error> {
        match self.tolerance {
            Some(_) if !machine.executes() => {
                Err(Error::NotTogether { option: "--tolerance", with: "--execute no" })
            }
            _ => Ok(()),
        }
    }

    /// Checks that each of `ranks` gets a row. One rank needs no grid.
    ///
    /// **Errors**: [`Error::MoreRanks`]; those of `decomposition`.
    pub(crate) fn check_ranks(&self, ranks: usize) -> Result<(), Error> {
        if self.grid.is_some() && ranks > 1 {
            return self.decomposition(ranks).map(|_| ());
        }
        Error::check_ranks(ranks, self.rows, "rows")
    }
}

impl run::Problem for Problem {
    fn parameters(&self) -> Vec<(&'static str, usize)> {
        let Self { rows, cols, block, steps, .. } = *self;
        vec![("rows", rows), ("cols", cols), ("block", block), ("steps", steps)]
    }

    fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the number of computed cells.
    fn work(&self) -> Work {
        let amount = self.rows as f64 * self.cols as f64 * self.steps as f64;
        Work { amount, unit: "Mupdates/s", field: "mupdates_per_s" }
    }

    fn result_bytes(&self) -> u64 {
        self.matrix_bytes()
    }

    /// Returns a problem with `factor` times the rows.
    fn scaled(&self, factor: usize) -> Result<Self, Error> {
        let rows = self.rows.saturating_mul(factor);
        Ok(Self { rows: Error::check_range("rows", rows, Self::EXTENTS)?, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::default_sources;
    use crate::limit_tests::assert_limits;

    #[test]
    fn every_limit_holds_on_both_sides() {
        let extents = Problem::EXTENTS;
        let limits = [extents.clone(), extents.clone(), extents, Problem::STEPS];
        let new = |n: [usize; 4]| Problem::new(n[0], n[1], n[2], n[3], default_sources());
        assert_limits(["rows", "cols", "block", "steps"], limits, new);
    }

    #[test]
    fn matrix_bytes_count_the_border() {
        let problem = Problem::new(3, 5, 1, 1, default_sources()).unwrap();
        assert_eq!(problem.matrix_bytes(), 5 * 7 * 8);
        assert_eq!(problem.band_bytes(3), (3 + 6) * 7 * 8);
        assert_eq!(problem.initial_matrix().cells().len() as u64 * 8, problem.matrix_bytes());
    }
}
