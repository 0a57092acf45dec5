//! METG: the smallest task for which half of the peak rate remains.

/// Granularity and efficiency of one run of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Core time per task: `seconds * cores / tasks`, in microseconds.
    pub granularity_us: f64,
    /// Iterations per second relative to the peak.
    pub efficiency: f64,
}

/// Wanted efficiency.
pub const HALF: f64 = 0.5;

/// Returns the smallest granularity whose efficiency is at least `wanted`, interpolated linearly to
/// `wanted` with the next smaller granularity. `None` if no sample reaches it, or if no smaller one
/// falls short of it.
pub fn metg(samples: &[Sample], wanted: f64) -> Option<f64> {
    let mut samples = samples.to_vec();
    samples.sort_by(|a, b| a.granularity_us.total_cmp(&b.granularity_us));
    let reached = samples.iter().position(|sample| sample.efficiency >= wanted)?;
    let (below, above) = (samples.get(reached.checked_sub(1)?)?, samples[reached]);
    let part = (wanted - below.efficiency) / (above.efficiency - below.efficiency);
    Some(below.granularity_us + part * (above.granularity_us - below.granularity_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Vec<Sample> {
        let sample = |&(granularity_us, efficiency)| Sample { granularity_us, efficiency };
        points.iter().map(sample).collect()
    }

    #[test]
    fn metg_is_interpolated_between_the_samples_around_it() {
        let samples = curve(&[(8.0, 0.9), (4.0, 0.7), (2.0, 0.3), (1.0, 0.1)]);
        assert_eq!(metg(&samples, 0.5), Some(3.0));
    }

    #[test]
    fn metg_does_not_depend_on_the_order_of_samples() {
        let samples = curve(&[(1.0, 0.1), (4.0, 0.7), (8.0, 0.9), (2.0, 0.3)]);
        assert_eq!(metg(&samples, 0.5), Some(3.0));
    }

    #[test]
    fn a_sample_at_the_wanted_efficiency_is_metg() {
        assert_eq!(metg(&curve(&[(4.0, 0.5), (2.0, 0.1)]), 0.5), Some(4.0));
    }

    #[test]
    fn the_smallest_granularity_that_reaches_it_counts() {
        let samples = curve(&[(8.0, 0.9), (4.0, 0.4), (2.0, 0.6), (1.0, 0.4)]);
        assert_eq!(metg(&samples, 0.5), Some(1.5));
    }

    #[test]
    fn without_samples_on_both_sides_there_is_no_metg() {
        assert_eq!(metg(&curve(&[(8.0, 0.9), (4.0, 0.7)]), 0.5), None);
        assert_eq!(metg(&curve(&[(8.0, 0.4), (4.0, 0.3)]), 0.5), None);
        assert_eq!(metg(&[], 0.5), None);
    }
}
