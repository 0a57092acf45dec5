//! Times of a piece on the clock of its run.

use crate::processes::ClockReading;

/// Conversion of the times of a piece to those of the run: from its begin on its own clock, by the first
/// and the last reading of the clock of process 0. Between them, and beyond, the difference of the clocks
/// changes evenly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PieceClock {
    /// Begin of the piece on its own clock.
    pub(super) begin_ns: u64,
    first: Option<ClockReading>,
    last: Option<ClockReading>,
    /// Begin of the new trace.
    base_ns: i128,
}

impl PieceClock {
    /// Adds a reading.
    pub(super) fn add(&mut self, reading: ClockReading) {
        self.first.get_or_insert(reading);
        self.last = Some(reading);
    }

    /// Returns the largest error of the readings, if there are any.
    pub(super) fn error_ns(&self) -> Option<u64> {
        let readings = self.first.into_iter().chain(self.last);
        readings.map(|reading| reading.error_ns).max()
    }

    /// Begins the new trace at a time of the run.
    pub(super) fn set_base(&mut self, base_ns: i128) {
        self.base_ns = base_ns;
    }

    /// Returns the time of the run at a time of the piece.
    pub(super) fn of_run(&self, time_ns: u64) -> i128 {
        let own_ns = i128::from(self.begin_ns) + i128::from(time_ns);
        let (Some(first), Some(last)) = (self.first, self.last) else { return own_ns };
        let [here, there] = [first.here_ns, first.there_ns].map(i128::from);
        let here_passed = i128::from(last.here_ns) - here;
        let there_passed = i128::from(last.there_ns) - there;
        if here_passed <= 0 || there_passed <= 0 {
            return own_ns - here + there;
        }
        there + ((own_ns - here) * there_passed).div_euclid(here_passed)
    }

    /// Returns the time of the new trace at a time of the piece.
    pub(super) fn time(&self, time_ns: u64) -> u64 {
        let time_ns = self.of_run(time_ns) - self.base_ns;
        u64::try_from(time_ns.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paraver::EXACT_LIMIT;

    fn reading(here_ns: u64, there_ns: u64) -> ClockReading {
        ClockReading { here_ns, there_ns, error_ns: here_ns }
    }

    #[test]
    fn without_a_reading_the_clock_is_that_of_the_run() {
        let clock = PieceClock { begin_ns: 5, ..PieceClock::default() };
        assert_eq!((clock.of_run(2), clock.error_ns()), (7, None));
    }

    #[test]
    fn one_reading_is_an_offset() {
        let mut clock = PieceClock::default();
        clock.add(reading(100, 30));
        assert_eq!([0, 70, 100].map(|time| clock.of_run(time)), [-70, 0, 30]);
        clock.set_base(-70);
        assert_eq!([0, 70, 100].map(|time| clock.time(time)), [0, 70, 100]);
    }

    #[test]
    fn between_two_readings_the_offset_changes_evenly() {
        let mut clock = PieceClock::default();
        clock.add(reading(100, 1_000));
        clock.add(reading(300, 1_220));
        let times = [0, 100, 200, 300, 400].map(|time| clock.of_run(time));
        assert_eq!(times, [890, 1_000, 1_110, 1_220, 1_330]);
        assert_eq!(clock.error_ns(), Some(300));
    }

    #[test]
    fn extreme_readings_do_not_overflow() {
        let mut clock = PieceClock { begin_ns: u64::MAX, ..PieceClock::default() };
        clock.add(reading(0, 0));
        clock.add(reading(1, EXACT_LIMIT));
        assert_eq!(clock.time(u64::MAX), u64::MAX);
    }
}
