//! The rows of one rank, as a matrix that its neighbours reach.

use talpf::{Context, MemorySlot};
use talpf_runtime::{Matrix, Tiling};

use super::{Border, Problem};
use crate::{Error, matrix};

/// The band of a rank with the border columns and a row above and below
/// (`(rows + 2) x (cols + 2)`): the border of the problem, or a *halo*, the copy of a neighbour's
/// outermost row.
pub(crate) struct Field {
    pub(crate) matrix: Matrix<f64>,
    pub(crate) slot: MemorySlot<f64>,
}

impl Field {
    /// Makes the matrix of this rank, with the border in its place and zeros elsewhere. Tiles have
    /// `rows x cols` cells; halo rows and border columns are tiles of their own.
    pub(crate) async fn new(
        ctx: &Context,
        problem: &Problem,
        border: &Border,
        (rows, cols): (usize, usize),
    ) -> Result<Self, Error> {
        let tiling = Tiling { rows, cols, first_rows: 1, first_cols: 1 };
        let band = problem.band(ctx.rank().0 as usize, ctx.ranks() as usize);
        let mut cells = matrix::Matrix::zeros(band.len() + 2, problem.cols() + 2);
        border.apply(band.start, 0, cells.view_mut());
        let matrix = Matrix::new(ctx.group(), cells.into_cells(), problem.cols() + 2, tiling)?;
        let slot = ctx.register_global(&matrix).await?;
        Ok(Self { matrix, slot })
    }

    /// Gives up the matrix for the rows of the rank, with their border columns.
    pub(crate) async fn collect(self, ctx: &Context) -> Result<Vec<f64>, Error> {
        let last = self.matrix.rows() - 2;
        let task = ctx.group().task("collect").input(&self.matrix.region(1..=last, ..));
        let read = task.run(|cells| cells.view().iter().copied().collect())?;
        Ok(read.await?)
    }

    /// Gives up a matrix that nobody needs any more.
    pub(crate) fn discard(self, ctx: &Context) -> Result<(), Error> {
        Ok(ctx.deregister(self.slot)?)
    }
}

impl Problem {
    /// The whole matrix from the rows of all ranks.
    pub(crate) fn assemble(&self, border: &Border, bands: Vec<Vec<f64>>) -> matrix::Matrix {
        let cols = self.cols() + 2;
        let mut matrix = matrix::Matrix::zeros(self.rows() + 2, cols);
        border.apply(0, 0, matrix.view_mut());
        let mut row = 1;
        for band in bands {
            for cells in band.chunks_exact(cols) {
                matrix.row_mut(row).copy_from_slice(cells);
                row += 1;
            }
        }
        matrix
    }
}
