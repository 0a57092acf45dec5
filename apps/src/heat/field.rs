//! Rows of one rank as a matrix that its neighbours access.

use talpf_runtime::{Matrix, Tiling};

use super::{Border, Problem};
use crate::run::RankContext;
use crate::{Error, matrix};

impl Problem {
    /// Creates the band of a rank with the border columns and a row above and below (`(rows + 2) x
    /// (cols + 2)`): the border of the problem, or a *halo*, the copy of a neighbour's outermost
    /// row. The border has its values, all other cells are zero. Tiles have `rows x cols` cells;
    /// halo rows and border columns are tiles of their own.
    pub(crate) fn field(
        &self,
        ctx: &RankContext,
        border: &Border,
        (rows, cols): (usize, usize),
    ) -> Result<Matrix<f64>, Error> {
        let tiling = Tiling::new(rows, cols).first(1, 1);
        let band = self.band(ctx.rank(), ctx.size());
        let mut cells = matrix::Matrix::zeros(band.len() + 2, self.cols() + 2);
        border.apply(band.start, 0, cells.view_mut());
        Ok(Matrix::new(ctx.group(), cells.into_cells(), self.cols() + 2, tiling)?)
    }

    /// Assembles the whole matrix from the rows of all ranks.
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

/// Converts a field into the rows of the rank, with their border columns.
pub(crate) async fn collect_field(
    ctx: &RankContext,
    field: Matrix<f64>,
) -> Result<Vec<f64>, Error> {
    let last = field.rows() - 2;
    let task = ctx.group().task("collect").input(&field.region(1..=last, ..));
    Ok(task.run(|cells| cells.view().iter().copied().collect())?.await?)
}
