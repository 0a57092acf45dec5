//! Rounds of a measured program, and the measured part of each round.

use std::time::{Duration, Instant};

use crate::callgrind::marker;

/// Units of all measured rounds together: small sizes get many rounds, large ones few.
const UNITS_IN_ALL: usize = 20_000;
const FEWEST: usize = 5;
const MOST: usize = 101;

/// Rounds of one program, or of one of its ranks. All ranks run the same number of rounds.
///
/// The first round warms up caches and pools and does not count. The others are timed, or, under
/// callgrind, one round is counted.
#[derive(Debug)]
pub(super) struct Meter {
    mode: MeterMode,
    /// Remaining rounds.
    left: usize,
    is_warm: bool,
    start: Option<Instant>,
    samples: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum MeterMode {
    /// Nanoseconds per unit.
    Times,
    /// Number of units, while callgrind counts instructions.
    Counts,
    /// Nothing, because another rank measures.
    Silent,
}

/// Returns the number of timed rounds of a size.
pub(super) fn repetitions(size: usize) -> usize {
    (UNITS_IN_ALL / size.max(1)).clamp(FEWEST, MOST)
}

impl Meter {
    /// Creates a meter that takes times.
    pub(super) fn of_times(size: usize) -> Self {
        Meter::new(MeterMode::Times, 1 + repetitions(size))
    }

    /// Creates a meter of one round that callgrind counts.
    pub(super) fn of_counts() -> Self {
        Meter::new(MeterMode::Counts, 2)
    }

    fn new(mode: MeterMode, left: usize) -> Self {
        Meter { mode, left, is_warm: false, start: None, samples: Vec::new() }
    }

    /// Makes the meter into one that runs the same rounds and measures nothing.
    pub(super) fn silent(self) -> Self {
        Meter { mode: MeterMode::Silent, ..self }
    }

    /// Begins the next round. Returns `false` if all rounds are over.
    pub(super) fn again(&mut self) -> bool {
        let is_another = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_another
    }

    /// Begins the measured part of a round.
    pub(super) fn start(&mut self) {
        match self.mode {
            MeterMode::Times => self.start = Some(Instant::now()),
            MeterMode::Counts if self.is_warm => marker::begin(),
            MeterMode::Counts | MeterMode::Silent => {}
        }
    }

    /// Ends the measured part of a round, in which `units` units were processed.
    pub(super) fn stop(&mut self, units: usize) {
        self.stop_but(Duration::ZERO, units);
    }

    /// Ends the measured part like [`Meter::stop`], and subtracts time that had to pass anyway.
    pub(super) fn stop_but(&mut self, idle: Duration, units: usize) {
        let is_warm = std::mem::replace(&mut self.is_warm, true);
        match (self.mode, self.start.take()) {
            (MeterMode::Times, Some(start)) if is_warm => {
                let spent = start.elapsed().saturating_sub(idle);
                self.samples.push(spent.as_nanos() as f64 / units as f64);
            }
            (MeterMode::Counts, _) if is_warm => {
                marker::end();
                self.samples.push(units as f64);
            }
            _ => {}
        }
    }

    /// Returns nanoseconds per unit of each timed round, or the number of units of the counted
    /// round.
    pub(super) fn into_samples(self) -> Vec<f64> {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(mut meter: Meter) -> (usize, Vec<f64>) {
        let mut rounds = 0;
        while meter.again() {
            rounds += 1;
            meter.start();
            meter.stop(7);
        }
        (rounds, meter.into_samples())
    }

    #[test]
    fn the_first_round_does_not_count() {
        let (rounds, samples) = rounds(Meter::of_times(1_000));
        assert_eq!((rounds, samples.len()), (21, 20));
    }

    #[test]
    fn long_rounds_are_few_and_short_ones_bounded() {
        assert_eq!((repetitions(1), repetitions(1_000_000)), (MOST, FEWEST));
    }

    #[test]
    fn one_round_is_counted_and_its_units_are_the_sample() {
        assert_eq!(rounds(Meter::of_counts()), (2, vec![7.0]));
    }

    #[test]
    fn silent_ranks_go_through_the_same_rounds() {
        assert_eq!(rounds(Meter::of_times(1_000).silent()), (21, vec![]));
    }

    #[test]
    fn time_that_had_to_pass_does_not_count() {
        let mut meter = Meter::of_times(1);
        for _ in 0..2 {
            meter.start();
            meter.stop_but(Duration::from_secs(3600), 1);
        }
        assert_eq!(meter.into_samples(), [0.0]);
    }
}
