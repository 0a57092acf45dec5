//! Part of a matrix that a rank has, as a matrix that its neighbours access.

use talpf::{Decomposition, Rank};
use talpf_runtime::{Matrix, Tiling};

use super::{Border, Problem};
use crate::run::{Machine, RankContext};
use crate::{Error, matrix, memory};

impl Problem {
    /// Creates the part of a rank with a ring of one cell around it (`(rows + 2) x (cols + 2)`):
    /// the border of the problem, or a *halo*, the copy of a neighbour's outermost cells. The
    /// border has its values, all other cells are zero. Tiles have `rows x cols` cells; the ring is
    /// tiles of its own.
    pub(crate) fn field(
        &self,
        ctx: &RankContext,
        machine: Machine,
        parts: &Decomposition,
        border: &Border,
        (rows, cols): (usize, usize),
    ) -> Result<Matrix<f64>, Error> {
        let rank = Rank(ctx.rank() as u32);
        let [first_row, first_col] = parts.part(rank)?.map(|cells| cells.start);
        let [height, width] = parts.local_shape(rank)?;
        let cells = if machine.executes() {
            let mut cells = matrix::Matrix::zeros(height, width);
            border.apply(first_row, first_col, cells.view_mut());
            cells.into_cells()
        } else {
            memory::untouched(height * width)
        };
        let tiling = Tiling::new(rows, cols).first(1, 1);
        Ok(Matrix::new(ctx.group(), cells, width, tiling)?)
    }

    /// Assembles the whole matrix from the cells of all ranks.
    pub(crate) fn assemble(
        &self,
        parts: &Decomposition,
        border: &Border,
        cells: Vec<Vec<f64>>,
    ) -> matrix::Matrix {
        let mut matrix = matrix::Matrix::zeros(self.rows() + 2, self.cols() + 2);
        border.apply(0, 0, matrix.view_mut());
        for ([rows, cols], cells) in parts.parts().zip(cells) {
            for (row, cells) in rows.zip(cells.chunks_exact(cols.len())) {
                matrix.row_mut(row + 1)[cols.start + 1..=cols.end].copy_from_slice(cells);
            }
        }
        matrix
    }
}

/// Converts a field into the cells of the rank, without the ring; into none if the run had no
/// execution.
pub(crate) async fn collect_field(
    ctx: &RankContext,
    machine: Machine,
    field: Matrix<f64>,
) -> Result<Vec<f64>, Error> {
    let (rows, cols) = (field.rows() - 1, field.cols() - 1);
    let task = ctx.group().task("collect").input(&field.region(1..rows, 1..cols));
    let read = task.run(move |cells| match machine.executes() {
        true => cells.view().iter().copied().collect(),
        false => Vec::new(),
    })?;
    Ok(read.await?)
}
