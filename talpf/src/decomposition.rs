//! The distribution of a matrix to a grid of ranks, and what neighbours exchange.

use std::ops::Range;

use talpf_runtime::{Ix2, Matrix, Rect, Region};

use crate::error::{DecompositionError, Error};
use crate::numbers::Rank;

/// The distribution of a matrix to a grid of ranks, of which each has a rectangle, its *part*.
/// Ranks are numbered row after row of the grid; parts differ by one row and one column at most.
///
/// A rank keeps its part in a matrix of its own with a ring of `width` cells around it. Where the
/// part has a neighbour the ring is a *halo*, the copy of the neighbour's outermost cells, its
/// *edge*; on other sides it is the border of the whole matrix, for the program to fill. A
/// [`Halo`](crate::Halo) exchanges them with puts or gets; a program that sends messages sends the
/// edge and receives into the halo of each [`Face`].
///
/// A decomposition is plain numbers: every rank makes its own, the same as all others, and nothing
/// is communicated.
///
/// ```
/// use talpf::{Decomposition, Rank};
///
/// // 10 x 10 cells on 2 x 2 ranks, with halos of one cell. Rank 3 is the lower right one.
/// let halves = Decomposition::grid([2, 2], [10, 10], 1)?;
/// assert_eq!(halves.part(Rank(3))?, [5..10, 5..10]);
/// assert_eq!(halves.local_shape(Rank(3))?, [7, 7]);
/// let neighbours: Vec<Rank> = halves.faces(Rank(3))?.iter().map(|face| face.neighbour).collect();
/// assert_eq!(neighbours, [Rank(1), Rank(2)]);
/// # Ok::<(), talpf::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decomposition {
    grid: [u32; 2],
    shape: [usize; 2],
    width: usize,
    corners: bool,
    /// Rows and columns of a piece.
    piece: [usize; 2],
}

/// Cells that a rank and one neighbour exchange, all or a piece of them: rectangles of equal shape,
/// two in the matrix of the rank and two in that of the neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    /// The neighbour.
    pub neighbour: Rank,
    /// Number of the piece among those of this neighbour, the same at both.
    pub piece: usize,
    /// Cells of this rank that the neighbour has a copy of.
    pub edge: Rect,
    /// Copy of the neighbour's cells at this rank.
    pub halo: Rect,
    /// Cells of the neighbour that this rank has a copy of.
    pub its_edge: Rect,
    /// Copy of this rank's cells at the neighbour.
    pub its_halo: Rect,
}

/// Steps in the grid to the neighbours: those at the sides, and those at the corners.
const SIDES: [[isize; 2]; 4] = [[-1, 0], [1, 0], [0, -1], [0, 1]];
const CORNERS: [[isize; 2]; 4] = [[-1, -1], [-1, 1], [1, -1], [1, 1]];

impl Decomposition {
    /// Distributes the rows of a matrix of `[rows, cols]` to `ranks`, with halos of `width` rows.
    ///
    /// **Errors**: as [`Decomposition::grid`].
    pub fn rows(ranks: u32, shape: [usize; 2], width: usize) -> Result<Self, Error> {
        Self::grid([ranks, 1], shape, width)
    }

    /// Distributes a matrix of `[rows, cols]` to `grid[0] x grid[1]` ranks, with halos of `width`
    /// cells.
    ///
    /// **Errors**: a grid without ranks; a part with fewer rows or columns than its halos; a width
    /// of 0.
    pub fn grid(grid: [u32; 2], shape: [usize; 2], width: usize) -> Result<Self, Error> {
        if width == 0 {
            return Err(Error::Limit { what: "width of a halo", value: 0, limit: 1 });
        }
        for (axis, what) in ["rows", "columns"].into_iter().enumerate() {
            let (parts, cells) = (grid[axis], shape[axis] as u64);
            if parts == 0 || cells / u64::from(parts) < width as u64 {
                return Err(DecompositionError::TooManyParts {
                    what,
                    cells,
                    parts,
                    width: width as u64,
                }
                .into());
            }
        }
        if grid[0].checked_mul(grid[1]).is_none() {
            let (what, limit) = ("number of ranks of a grid", u64::from(u32::MAX));
            let value = u64::from(grid[0]) * u64::from(grid[1]);
            return Err(Error::Limit { what, value, limit });
        }
        Ok(Decomposition { grid, shape, width, corners: false, piece: [usize::MAX; 2] })
    }

    /// Returns the same decomposition whose ranks also exchange the cells at the corners of their
    /// parts, with up to four more neighbours: for stencils that reach diagonally.
    pub fn with_corners(self) -> Self {
        Decomposition { corners: true, ..self }
    }

    /// Returns the same decomposition with faces cut into pieces of at most `rows x cols`, counted
    /// from the first cell of a part. If these are the extents of a tile, each piece is exchanged as
    /// soon as its tile is computed, and not once the whole edge is.
    pub fn in_pieces(self, rows: usize, cols: usize) -> Self {
        Decomposition { piece: [rows.max(1), cols.max(1)], ..self }
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.grid[0] * self.grid[1]
    }

    /// Returns the numbers of rows and columns of the grid of ranks.
    pub fn grid_shape(&self) -> [u32; 2] {
        self.grid
    }

    /// Returns the rows and columns of the whole matrix that `rank` has.
    ///
    /// **Errors**: no such rank in the grid.
    pub fn part(&self, rank: Rank) -> Result<[Range<usize>; 2], Error> {
        Ok(self.part_at(self.position(rank)?))
    }

    /// Iterates over the rows and columns of the parts of all ranks, in the order of the ranks.
    pub fn parts(&self) -> impl Iterator<Item = [Range<usize>; 2]> {
        let [rows, cols] = self.grid;
        (0..rows).flat_map(move |row| (0..cols).map(move |col| self.part_at([row, col])))
    }

    /// Returns the numbers of rows and columns of the matrix of `rank`: its part and the ring of
    /// cells around it.
    ///
    /// **Errors**: no such rank in the grid.
    pub fn local_shape(&self, rank: Rank) -> Result<[usize; 2], Error> {
        Ok(self.part(rank)?.map(|cells| cells.len() + 2 * self.width))
    }

    /// Returns the faces of `rank`, a piece each: those to the neighbours above, below, left and
    /// right of it, then those to the neighbours at its corners.
    ///
    /// **Errors**: no such rank in the grid.
    pub fn faces(&self, rank: Rank) -> Result<Vec<Face>, Error> {
        let corners = if self.corners { &CORNERS[..] } else { &[] };
        let at = self.position(rank)?;
        let mut faces = Vec::new();
        for step in SIDES.iter().chain(corners) {
            let Some(neighbour) = self.neighbour(at, step) else {
                continue;
            };
            let back = step.map(|step| -step);
            let (here, there) = (self.part_at(at), self.part_at(neighbour));
            let [edge, its_halo] = [self.cells(&here, step, 0), self.cells(&there, &back, 1)];
            let [its_edge, halo] = [self.cells(&there, &back, 0), self.cells(&here, step, 1)];
            let neighbour = Rank(neighbour[0] * self.grid[1] + neighbour[1]);
            for (piece, [rows, cols]) in self.pieces(&edge).enumerate() {
                let of = |[first_row, first_col]: &[Range<usize>; 2]| Rect {
                    row: (first_row.start + rows.start) as u32,
                    row_end: (first_row.start + rows.end) as u32,
                    col: (first_col.start + cols.start) as u32,
                    col_end: (first_col.start + cols.end) as u32,
                };
                let [edge, halo] = [of(&edge), of(&halo)];
                let [its_edge, its_halo] = [of(&its_edge), of(&its_halo)];
                faces.push(Face { neighbour, piece, edge, halo, its_edge, its_halo });
            }
        }
        Ok(faces)
    }

    fn position(&self, rank: Rank) -> Result<[u32; 2], Error> {
        let [rows, cols] = self.grid;
        if rank.0 >= self.ranks() {
            return Err(DecompositionError::NotInGrid { rank, rows, cols }.into());
        }
        Ok([rank.0 / cols, rank.0 % cols])
    }

    fn part_at(&self, at: [u32; 2]) -> [Range<usize>; 2] {
        [0, 1].map(|axis| {
            let parts = u128::from(self.grid[axis]);
            let first = |part: u32| (self.shape[axis] as u128 * u128::from(part) / parts) as usize;
            first(at[axis])..first(at[axis] + 1)
        })
    }

    fn neighbour(&self, at: [u32; 2], step: &[isize; 2]) -> Option<[u32; 2]> {
        let along = |axis: usize| {
            let place = i64::from(at[axis]) + step[axis] as i64;
            u32::try_from(place).ok().filter(|place| *place < self.grid[axis])
        };
        Some([along(0)?, along(1)?])
    }

    /// Returns the outermost cells of a part in a direction (`depth` 0), or the halo beyond them
    /// (`depth` 1), as rows and columns of the matrix of its rank.
    fn cells(
        &self,
        part: &[Range<usize>; 2],
        step: &[isize; 2],
        depth: usize,
    ) -> [Range<usize>; 2] {
        [0, 1].map(|axis| {
            let (width, len) = (self.width, part[axis].len());
            let first = match step[axis] {
                0 => return width..width + len,
                -1 => width - depth * width,
                _ => len + depth * width,
            };
            first..first + width
        })
    }

    /// Iterates over the pieces of a rectangle, counted from its first cell.
    fn pieces(&self, whole: &[Range<usize>; 2]) -> impl Iterator<Item = [Range<usize>; 2]> {
        let [rows, cols] = [0, 1].map(|axis| {
            let (len, size) = (whole[axis].len(), self.piece[axis]);
            (0..len).step_by(size).map(move |first| first..len.min(first.saturating_add(size)))
        });
        rows.flat_map(move |rows| cols.clone().map(move |cols| [rows.clone(), cols]))
    }
}

impl Face {
    /// Returns the edge in the matrix of this rank.
    pub fn edge_of<'m, T>(&self, matrix: &'m Matrix<T>) -> Region<'m, T, Ix2> {
        region_of(matrix, &self.edge)
    }

    /// Returns the halo in the matrix of this rank.
    pub fn halo_of<'m, T>(&self, matrix: &'m Matrix<T>) -> Region<'m, T, Ix2> {
        region_of(matrix, &self.halo)
    }
}

fn region_of<'m, T>(matrix: &'m Matrix<T>, rect: &Rect) -> Region<'m, T, Ix2> {
    let [rows, cols] = ranges(rect);
    matrix.region(rows, cols)
}

/// Returns the rows and columns of a rectangle.
pub(crate) fn ranges(rect: &Rect) -> [Range<usize>; 2] {
    let Rect { row, row_end, col, col_end } = *rect;
    [row as usize..row_end as usize, col as usize..col_end as usize]
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Cells of a rectangle of a rank's matrix, as cells of the whole one, which begins at `1000`.
    fn whole(decomposition: &Decomposition, rank: Rank, rect: &Rect) -> BTreeSet<(usize, usize)> {
        let [rows, cols] = ranges(rect);
        let part = decomposition.part(rank).unwrap();
        let offset = |axis: usize| 1000 + part[axis].start - decomposition.width;
        let cells = |row| cols.clone().map(move |col| (row + offset(0), col + offset(1)));
        rows.flat_map(cells).collect()
    }

    proptest! {
        #[test]
        fn parts_are_the_whole_and_halos_are_copies(
            grid in [1..5u32, 1..5u32], more in [0..9usize, 0..9usize], width in 1..4usize,
            pieces in [1..6usize, 1..6usize], corners: bool,
        ) {
            let shape = [0, 1].map(|axis| grid[axis] as usize * width + more[axis]);
            let mut of = Decomposition::grid(grid, shape, width).unwrap();
            of = of.in_pieces(pieces[0], pieces[1]);
            of = if corners { of.with_corners() } else { of };
            let mut owner = vec![None; shape[0] * shape[1]];
            for rank in (0..of.ranks()).map(Rank) {
                let [rows, cols] = of.part(rank).unwrap();
                prop_assert!(rows.len() >= width && cols.len() >= width);
                for (row, col) in rows.flat_map(|row| cols.clone().map(move |col| (row, col))) {
                    prop_assert_eq!(owner[row * shape[1] + col].replace(rank), None);
                }
            }
            prop_assert!(owner.iter().all(Option::is_some));
            for rank in (0..of.ranks()).map(Rank) {
                let mut received = BTreeSet::new();
                for face in of.faces(rank).unwrap() {
                    // The other side has the same face.
                    let back = of.faces(face.neighbour).unwrap().into_iter();
                    let mut back = back.filter(|b| (b.neighbour, b.piece) == (rank, face.piece));
                    let back = back.next().unwrap();
                    prop_assert_eq!((back.edge, back.halo), (face.its_edge, face.its_halo));
                    prop_assert_eq!((back.its_edge, back.its_halo), (face.edge, face.halo));
                    // A halo is the same cells as the edge that it is a copy of.
                    let halo = whole(&of, rank, &face.halo);
                    prop_assert_eq!(&halo, &whole(&of, face.neighbour, &face.its_edge));
                    let len = received.len() + halo.len();
                    received.extend(halo);
                    prop_assert_eq!(received.len(), len, "no cell is received twice");
                    prop_assert!(face.halo.rows() <= pieces[0] && face.halo.cols() <= pieces[1]);
                }
                // All cells around the part that some rank has.
                let [rows, cols] = of.part(rank).unwrap().map(|cells| cells.start + 1000..cells.end + 1000);
                let near = |cells: &Range<usize>| cells.start - width..cells.end + width;
                let expected: BTreeSet<_> = near(&rows)
                    .flat_map(|row| near(&cols).map(move |col| (row, col)))
                    .filter(|(row, col)| {
                        let inside = [rows.contains(row), cols.contains(col)];
                        let exists = (1000..1000 + shape[0]).contains(row)
                            && (1000..1000 + shape[1]).contains(col);
                        exists && (inside == [true, false] || inside == [false, true]
                            || corners && inside == [false, false])
                    })
                    .collect();
                prop_assert_eq!(received, expected);
            }
        }
    }

    #[test]
    fn every_limit_holds_on_both_sides() {
        let text = |made: Result<Decomposition, Error>| made.unwrap_err().to_string();
        assert!(Decomposition::rows(5, [10, 1], 1).is_ok());
        assert!(Decomposition::grid([5, 2], [10, 4], 2).is_ok());
        assert_eq!(
            text(Decomposition::grid([5, 2], [10, 3], 2)),
            "3 columns are too few for 2 ranks, of which each needs at least 2"
        );
        assert_eq!(
            text(Decomposition::rows(11, [10, 1], 1)),
            "10 rows are too few for 11 ranks, of which each needs at least 1"
        );
        assert_eq!(
            text(Decomposition::rows(0, [10, 1], 1)),
            "10 rows are too few for 0 ranks, of which each needs at least 1"
        );
        let none = text(Decomposition::rows(1, [10, 1], 0));
        assert_eq!(none, "width of a halo is 0, expected at least 1");
        let grid = Decomposition::grid([2, 3], [10, 9], 1).unwrap();
        assert_eq!(grid.part(Rank(5)).unwrap(), [5..10, 6..9]);
        assert_eq!(grid.parts().last().unwrap(), [5..10, 6..9]);
        let error = "rank 6 is not in a grid of 2 x 3 ranks";
        assert_eq!(grid.part(Rank(6)).unwrap_err().to_string(), error);
        assert_eq!(grid.local_shape(Rank(6)).unwrap_err().to_string(), error);
        assert_eq!(grid.faces(Rank(6)).unwrap_err().to_string(), error);
        let many = Decomposition::grid([1 << 16; 2], [1 << 16; 2], 1);
        assert!(text(many).starts_with("number of ranks of a grid is 4294967296"));
    }
}
