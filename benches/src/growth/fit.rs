//! Exponent of a cost that grows as a power of the size.

/// Fits the power `n^k` to costs per unit, given by size `n`, and returns the exponent `k`: the
/// slope of the least squares line through the logarithms. NaN for fewer than two sizes.
pub(super) fn exponent(costs: &[(usize, f64)]) -> f64 {
    let points = costs.iter().map(|(size, cost)| ((*size as f64).ln(), cost.ln()));
    let count = costs.len() as f64;
    let (sum_x, sum_y) =
        points.clone().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let (mut above, mut below) = (0.0, 0.0);
    for (x, y) in points {
        above += (x - mean_x) * (y - mean_y);
        below += (x - mean_x) * (x - mean_x);
    }
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cost: impl Fn(f64) -> f64) -> f64 {
        let costs = [100, 1_000, 10_000, 100_000].map(|size| (size, cost(size as f64)));
        exponent(&costs)
    }

    #[test]
    fn a_power_is_found() {
        for power in [-0.5, 0.0, 0.5, 1.0, 2.0] {
            let found = of(|size| 3.0 * size.powf(power));
            assert!((found - power).abs() < 1e-9, "{found} instead of {power}");
        }
    }

    #[test]
    fn a_list_beside_a_constant_shows() {
        let found = of(|size| 200.0 + 0.1 * size);
        assert!((0.2..0.8).contains(&found), "{found}");
    }

    #[test]
    fn one_size_has_no_exponent() {
        assert!(exponent(&[(100, 1.0)]).is_nan());
    }
}
