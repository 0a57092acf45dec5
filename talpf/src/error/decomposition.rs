//! The errors of decompositions.

use talpf_runtime::ArrayLabel;

use crate::numbers::Rank;

/// An error of a [`Decomposition`](crate::Decomposition), or of a [`Halo`](crate::Halo) in one.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecompositionError {
    /// A decomposition has parts that are smaller than their halos, or none.
    #[error("{cells} {what} are too few for {parts} ranks, of which each needs at least {width}")]
    TooManyParts {
        /// `rows` or `columns`.
        what: &'static str,
        /// Number of rows or columns of the matrix.
        cells: u64,
        /// Number of ranks that they are distributed to.
        parts: u32,
        /// Width of the halos.
        width: u64,
    },
    /// A grid has no such rank.
    #[error("{rank} is not in a grid of {rows} x {cols} ranks")]
    NotInGrid {
        /// The rank.
        rank: Rank,
        /// Number of rows of the grid.
        rows: u32,
        /// Number of columns of the grid.
        cols: u32,
    },
    /// A decomposition is for another number of ranks than the run has.
    #[error(
        "a grid of {rows} x {cols} has {} ranks, the run has {ranks}",
        u64::from(*rows) * u64::from(*cols)
    )]
    OtherGrid {
        /// Number of rows of the grid.
        rows: u32,
        /// Number of columns of the grid.
        cols: u32,
        /// Number of ranks of the run.
        ranks: u32,
    },
    /// A matrix has not the shape of its rank's part of a decomposition with its halos.
    #[error(
        "{array} is {} x {}, the part of {rank} with its halos is {} x {}",
        shape[0], shape[1], expected[0], expected[1]
    )]
    OtherShape {
        /// The matrix.
        array: ArrayLabel,
        /// Numbers of its rows and columns.
        shape: [usize; 2],
        /// The rank.
        rank: Rank,
        /// The numbers of rows and columns of the part with its halos.
        expected: [usize; 2],
    },
}
