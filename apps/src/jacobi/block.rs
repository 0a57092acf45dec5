//! Default number of rows of a block.

use talpf_runtime::cores;

use super::STRIP_CELLS;
use crate::caches::Caches;

/// Bytes of a number.
const NUMBER: usize = size_of::<f64>();

/// Returns the rows and columns of a block of a matrix with `cols` columns and about as many rows,
/// on this machine.
///
/// If both matrices fit into the last-level cache, a strip is at most half of a core's second-level
/// cache, and every core has one. Otherwise it is an eighth: then the strips of two matrices
/// between which a worker alternates for some steps stay in its caches.
pub fn block(cols: usize) -> usize {
    block_for(cols, Caches::of_this_machine(), cores())
}

/// Returns the block on a machine with these caches and cores.
fn block_for(cols: usize, caches: Caches, cores: usize) -> usize {
    let both = cols.saturating_mul(cols).saturating_mul(2 * NUMBER);
    let part = if both <= caches.last { 2 } else { 8 };
    let row = cols.clamp(1, STRIP_CELLS) * NUMBER;
    (caches.l2 / part / row).min(cols.div_ceil(cores)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHES: Caches = Caches { l2: 1 << 20, last: 32 << 20, are_known: true };

    fn blocks<const N: usize>(cols: [usize; N], cores: usize) -> [usize; N] {
        cols.map(|cols| block_for(cols, CACHES, cores))
    }

    #[test]
    fn matrices_in_the_cache_are_cut_into_halves_of_a_second_level() {
        assert_eq!(blocks([512, 1024, 1448], 2), [128, 64, 45]);
    }

    #[test]
    fn larger_matrices_are_cut_into_eighths() {
        assert_eq!(blocks([1449, 2048, 4096], 2), [11, 8, 4]);
        assert_eq!(blocks([8192, 16384], 2), [4, 4], "strips are no wider than some cells");
    }

    #[test]
    fn every_core_has_a_block() {
        assert_eq!((blocks([256, 3], 2), blocks([256, 3], 64)), ([128, 2], [4, 1]));
    }

    #[test]
    fn a_block_has_a_row_however_small_the_cache() {
        let caches = Caches { l2: 1, last: 1, are_known: true };
        assert_eq!([0, 1, 1 << 40].map(|cols| block_for(cols, caches, 2)), [1, 1, 1]);
    }
}
