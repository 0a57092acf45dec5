//! The rounds of a program that is measured, and the part of each that counts.

use std::time::{Duration, Instant};

use super::marker;

/// Rounds whose times count, for a size: many of short ones, some of long ones.
const UNITS_IN_ALL: usize = 20_000;
const FEWEST: usize = 5;
const MOST: usize = 101;

/// The rounds of one program, or of one rank of it. All ranks go through the same rounds.
///
/// The first round does not count: it is for caches and pools. Then times are taken, or, under
/// callgrind, one round is counted.
#[derive(Debug)]
pub(super) struct Meter {
    kind: Kind,
    /// Rounds to come.
    left: usize,
    is_warm: bool,
    start: Option<Instant>,
    samples: Vec<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Nanoseconds a unit.
    Times,
    /// The number of units; instructions are counted by callgrind.
    Counts,
    /// Nothing: another rank measures.
    Silent,
}

/// Rounds of a size whose times count.
pub(super) fn repetitions(size: usize) -> usize {
    (UNITS_IN_ALL / size.max(1)).clamp(FEWEST, MOST)
}

impl Meter {
    /// Takes times.
    pub(super) fn of_times(size: usize) -> Self {
        Meter::new(Kind::Times, 1 + repetitions(size))
    }

    /// Has one round counted.
    pub(super) fn of_counts() -> Self {
        Meter::new(Kind::Counts, 2)
    }

    fn new(kind: Kind, left: usize) -> Self {
        Meter { kind, left, is_warm: false, start: None, samples: Vec::new() }
    }

    /// Goes through the same rounds and measures nothing.
    pub(super) fn silent(self) -> Self {
        Meter { kind: Kind::Silent, ..self }
    }

    /// Begins the next round, if there is another.
    pub(super) fn again(&mut self) -> bool {
        let is_another = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_another
    }

    /// Begins the part of a round that counts.
    pub(super) fn start(&mut self) {
        match self.kind {
            Kind::Times => self.start = Some(Instant::now()),
            Kind::Counts if self.is_warm => marker::begin(),
            Kind::Counts | Kind::Silent => {}
        }
    }

    /// Ends the part of a round that counts, in which `units` were done.
    pub(super) fn stop(&mut self, units: usize) {
        self.stop_but(Duration::ZERO, units);
    }

    /// As [`Meter::stop`], without a time that had to pass anyway.
    pub(super) fn stop_but(&mut self, idle: Duration, units: usize) {
        let is_warm = std::mem::replace(&mut self.is_warm, true);
        match (self.kind, self.start.take()) {
            (Kind::Times, Some(start)) if is_warm => {
                let spent = start.elapsed().saturating_sub(idle);
                self.samples.push(spent.as_nanos() as f64 / units as f64);
            }
            (Kind::Counts, _) if is_warm => {
                marker::end();
                self.samples.push(units as f64);
            }
            _ => {}
        }
    }

    /// Nanoseconds a unit of each round that counts; counted, the number of units.
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
