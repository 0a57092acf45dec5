//! Expected results of collectives, computed from the buffers of all ranks.

/// A number that depends on all three, of a size that differs widely: sums of such numbers depend
/// on the order.
pub(crate) fn datum(seed: u64, rank: usize, index: usize) -> f64 {
    let mut bits = seed ^ (rank as u64) << 48 ^ (index as u64) << 8 ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..3 {
        bits ^= bits >> 31;
        bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    let unit = (bits >> 12) as f64 / (1u64 << 52) as f64 - 0.5;
    unit * 10f64.powi((bits % 9) as i32)
}

/// Returns the elements of rank `rank`.
pub(crate) fn data(seed: u64, rank: usize, len: usize) -> Vec<f64> {
    (0..len).map(|index| datum(seed, rank, index)).collect()
}

/// Returns the elements of all ranks, one after another.
pub(crate) fn all_data(seed: u64, counts: &[usize]) -> Vec<f64> {
    counts.iter().enumerate().flat_map(|(rank, len)| data(seed, rank, *len)).collect()
}

/// Folds the vectors of all ranks: neighbours first, then their results.
pub(crate) fn reduced<T: Copy>(operands: Vec<Vec<T>>, fold: impl Fn(T, T) -> T) -> Vec<T> {
    let len = operands[0].len();
    let one = |index: usize| {
        let mut values: Vec<T> = operands.iter().map(|operand| operand[index]).collect();
        while values.len() > 1 {
            let pairs = values.chunks(2);
            values =
                pairs.map(|pair| pair.iter().copied().reduce(&fold).expect("a pair")).collect();
        }
        values[0]
    };
    (0..len).map(one).collect()
}

/// Folds the vectors of the ranks before and including each, from left to right.
pub(crate) fn prefixes<T: Copy>(operands: Vec<Vec<T>>, fold: impl Fn(T, T) -> T) -> Vec<Vec<T>> {
    let mut prefixes = operands;
    for rank in 1..prefixes.len() {
        let (before, rest) = prefixes.split_at_mut(rank);
        let pairs = before[rank - 1].iter().zip(&mut rest[0]);
        pairs.for_each(|(left, right)| *right = fold(*left, *right));
    }
    prefixes
}

/// The bits, to compare what is equal and what is not a number.
pub(crate) fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}
