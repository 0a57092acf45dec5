//! Sizes of blocks by default, and of the strips of blocks that tasks compute.

use talpf_runtime::cores;

use crate::caches::Caches;

/// Bytes of a number.
const NUMBER: usize = size_of::<f64>();

/// Cells of a strip of a large matrix: 64 KiB.
///
/// Strips that are ready follow each other through eight steps, in which sixteen strips are in use: 1 MiB, which
/// second-level caches of 2 MiB have to spare. Smaller tasks would take a microsecond or two, and what a task costs
/// would count.
const LARGE_STRIP_CELLS: usize = 8192;

/// Smallest number of cells in a row of a strip, if the band is that wide: 32 KiB, eight pages.
///
/// A task computes that many blocks side by side. Each row of a block is another range of memory:
/// the hardware's prefetch, which stays within a page, starts anew, so short rows wait for the
/// latency of every line. Square blocks of 256 reach 0.6 of the rate of whole rows on a matrix of
/// 4096 x 4096, rows of 2048 cells 0.9.
const STRIP_COLUMNS: usize = 4096;
/// Smallest number of cells of a strip, if the band is that wide: blocks of one to three rows are in strips of
/// 16384, 8192 or 5463 columns. Where strips lie side by side, twice as many are in use.
const STRIP_CELLS: usize = 16_384;

/// Returns the columns of a strip of blocks, unless the band has fewer.
pub(super) fn strip_columns(block: usize) -> usize {
    block * STRIP_COLUMNS.max(STRIP_CELLS / block).div_ceil(block)
}

/// Returns the rows and columns of a block of a matrix with `cols` columns and about as many rows,
/// on this machine.
///
/// If the part of both matrices that a core computes fits into its second-level cache, with a quarter of that to
/// spare, every core has one strip. If it is up to twice as large as the cache, a strip is an eighth of the cache;
/// otherwise a strip has about 64 KiB, and one row at least.
pub fn block(cols: usize) -> usize {
    block_for(cols, Caches::of_this_machine().l2, cores())
}

/// Returns the block on a machine with these bytes of second-level cache for each of its cores.
fn block_for(cols: usize, l2: usize, cores: usize) -> usize {
    let row = cols.max(1).saturating_mul(NUMBER);
    let part = row.saturating_mul(cols).saturating_mul(2) / cores;
    let rows = match part {
        part if part <= l2 / 4 * 3 => usize::MAX,
        part if part <= 2 * l2 => l2 / 8 / row,
        _ => LARGE_STRIP_CELLS * NUMBER / row,
    };
    rows.min(cols.div_ceil(cores)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const L2: usize = 1 << 20;

    fn blocks<const N: usize>(cols: [usize; N], cores: usize) -> [usize; N] {
        cols.map(|cols| block_for(cols, L2, cores))
    }

    #[test]
    fn every_core_has_a_strip_of_what_fits_into_its_cache() {
        assert_eq!(blocks([3, 256, 313], 2), [2, 128, 157]);
        assert_eq!(blocks([3, 256, 313], 64), [1, 4, 5]);
    }

    #[test]
    fn what_is_little_larger_than_the_caches_is_cut_into_eighths_of_one() {
        assert_eq!(blocks([320, 512], 2), [51, 32]);
    }

    #[test]
    fn larger_matrices_are_cut_into_strips_of_as_many_cells_or_one_row() {
        assert_eq!(blocks([513, 1024, 4096, 8192, 16384], 2), [15, 8, 2, 1, 1]);
        assert_eq!(blocks([1 << 20, usize::MAX], 2), [1, 1]);
    }

    #[test]
    fn strips_of_few_rows_are_wide() {
        let columns = [1, 2, 3, 4, 512, 5000].map(strip_columns);
        assert_eq!(columns, [16384, 8192, 5463, 4096, 4096, 5000]);
    }

    #[test]
    fn a_block_has_a_row_however_small_the_cache() {
        assert_eq!([0, 1, 1 << 40].map(|cols| block_for(cols, 1, 2)), [1, 1, 1]);
    }
}
