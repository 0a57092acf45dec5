//! Sizes of blocks by default, and of the strips of blocks that tasks compute.

use std::ops::Range;

use talpf_runtime::cores;

use super::Problem;
use crate::partition::pieces;

/// Smallest number of cells in a row of a strip, except the last: at the beginning and the end of a
/// row the kernel computes fewer rows at a time.
const STRIP_COLUMNS: usize = 256;
/// Smallest number of blocks in a strip: it is half as high as wide, so that there are twice as many
/// tasks as with squares of that width.
const STRIP_BLOCKS: usize = 2;

/// Smallest number of rows of a block by default: a strip of them takes some microseconds.
const LEAST_ROWS: usize = 16;
/// Smallest number of rows of a block by default, unless the matrix is small.
const USUAL_ROWS: usize = 128;
/// Largest number of rows of a block by default: the strip has 16 MiB.
const MOST_ROWS: usize = 1024;

/// Returns the rows and columns of a block of a matrix with `cols` columns and about as many rows.
///
/// Blocks of 128 to 1024 rows lie one above the other, four for each core, so that the wait for a
/// neighbour is a small part of a step. In a small matrix they are two, of at least 16 rows.
pub fn block(cols: usize) -> usize {
    block_for(cols, cores())
}

fn block_for(cols: usize, cores: usize) -> usize {
    let least = (cols / (2 * cores)).clamp(LEAST_ROWS, USUAL_ROWS);
    (cols / (4 * cores)).clamp(least, MOST_ROWS)
}

/// Returns the columns of each strip of blocks, counted without the border.
pub(super) fn strips(problem: &Problem) -> impl Iterator<Item = Range<usize>> {
    let block = problem.block();
    let blocks = match problem.has_single_blocks() {
        true => 1,
        false => STRIP_COLUMNS.div_ceil(block).max(STRIP_BLOCKS),
    };
    pieces(1..problem.cols() + 1, blocks * block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::default_sources;

    #[test]
    fn every_core_has_four_blocks_one_above_the_other_or_two_of_a_small_matrix() {
        let blocks = |cores| [1, 256, 512, 1024, 2048, 8192, 1 << 20].map(|n| block_for(n, cores));
        assert_eq!(blocks(2), [16, 64, 128, 128, 256, 1024, 1024]);
        assert_eq!(blocks(64), [16, 16, 16, 16, 16, 64, 1024]);
    }

    #[test]
    fn strips_are_wide_unless_blocks_are_single() {
        let strips = |block, single| -> Vec<usize> {
            let problem = Problem::new(8, 1000, block, 1, default_sources()).unwrap();
            strips(&problem.in_single_blocks(single)).map(|cols| cols.len()).collect()
        };
        assert_eq!(strips(100, false), [300, 300, 300, 100]);
        assert_eq!(strips(200, false), [400, 400, 200]);
        assert_eq!(strips(500, true), [500, 500]);
        assert_eq!(strips(5000, false), [1000]);
    }
}
