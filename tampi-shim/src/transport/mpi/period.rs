//! Polling period: the time that the poller waits between two passes.

use std::fmt;
use std::time::Duration;

use crate::error::Error;

/// Period of testing the requests under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollingPeriod {
    /// Tests continuously while a worker is idle, and less often the longer nothing completes.
    #[default]
    Adaptive,
    /// Tests after `least`; after each pass in vain the period doubles, up to `most`.
    Within {
        /// Period while requests start and complete.
        least: Duration,
        /// Longest period.
        most: Duration,
    },
}

/// Longest period that a program can set.
const LONGEST: Duration = Duration::from_secs(10);

impl PollingPeriod {
    /// Environment variable that sets the period.
    pub const VARIABLE: &'static str = "TAMPI_POLLING_PERIOD";

    /// Reads the environment variable. An unset variable means adaptive.
    ///
    /// **Errors**: as [`PollingPeriod::parse`].
    pub fn from_environment() -> Result<Self, Error> {
        match std::env::var(Self::VARIABLE) {
            Ok(text) => Self::parse(&text),
            Err(std::env::VarError::NotPresent) => Ok(PollingPeriod::Adaptive),
            Err(std::env::VarError::NotUnicode(text)) => Err(refuse(&text.to_string_lossy())),
        }
    }

    /// Parses `min[:max[:slowstart]]`. Without a maximum the period is always the minimum;
    /// `slowstart` names the only policy for periods between the two.
    ///
    /// **Units**: whole microseconds. **Errors**: any other text; a maximum below the minimum; more
    /// than 10 s.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = text.split(':').map(str::trim);
        let least = parts.next().and_then(microseconds);
        let most = parts.next().map_or(least, microseconds);
        let policy = matches!(parts.next(), None | Some("slowstart"));
        match (least, most, parts.next()) {
            (Some(least), Some(most), None) if policy && least <= most => {
                Ok(PollingPeriod::Within { least, most })
            }
            _ => Err(refuse(text)),
        }
    }
}

fn microseconds(text: &str) -> Option<Duration> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten()?;
    Some(Duration::from_micros(number)).filter(|period| *period <= LONGEST)
}

fn refuse(text: &str) -> Error {
    Error::Setting {
        name: PollingPeriod::VARIABLE,
        value: text.to_owned(),
        expected: "give min[:max[:slowstart]] in whole microseconds, min <= max <= 10000000",
    }
}

impl fmt::Display for PollingPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PollingPeriod::Adaptive => f.write_str("adaptive"),
            PollingPeriod::Within { least, most } if least == most => write!(f, "{least:?}"),
            PollingPeriod::Within { least, most } => write!(f, "{least:?} to {most:?}"),
        }
    }
}

/// Period that grows while nothing completes.
#[derive(Debug)]
pub(super) struct SlowStart {
    least: Duration,
    most: Duration,
    current: Duration,
}

impl SlowStart {
    pub(super) fn new(least: Duration, most: Duration) -> Self {
        SlowStart { least, most, current: least }
    }

    /// Returns the time to wait after a pass that ended `completed` operations.
    pub(super) fn after(&mut self, completed: usize) -> Duration {
        /// First period after a minimum of 0.
        const STEP: Duration = Duration::from_micros(1);
        if completed > 0 {
            self.current = self.least;
            return self.current;
        }
        let period = self.current;
        self.current = (self.current * 2).max(STEP).min(self.most);
        period
    }
}

/// Time without polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pause {
    For(Duration),
    /// Until an operation is started.
    UntilStarted,
}

/// Decides when to poll again.
#[derive(Debug)]
pub(super) struct Pace {
    /// Polls in vain before the period grows. `None` if the program has set a period.
    patience: Option<u32>,
    in_vain: u32,
    slow: SlowStart,
}

impl Pace {
    /// Creates the pace for a period. `oversubscribed` if there are more workers than cores on this
    /// machine.
    pub(super) fn new(period: PollingPeriod, oversubscribed: bool) -> Self {
        /// About half a millisecond of an idle worker.
        const PATIENCE: u32 = 200;
        const PATIENCE_OVERSUBSCRIBED: u32 = 20;
        const LEAST: Duration = Duration::from_micros(10);
        const MOST: Duration = Duration::from_micros(200);
        let patience = if oversubscribed { PATIENCE_OVERSUBSCRIBED } else { PATIENCE };
        let (patience, least, most) = match period {
            PollingPeriod::Adaptive => (Some(patience), LEAST, MOST),
            PollingPeriod::Within { least, most } => (None, least, most),
        };
        Pace { patience, in_vain: 0, slow: SlowStart::new(least, most) }
    }

    /// Returns the pause after a poll of one or several passes, or `None` to poll again as soon as
    /// there is nothing else to do. `news` counts the operations that were started or have ended
    /// since the last poll; `is_busy` if some are under way.
    pub(super) fn next(&mut self, news: usize, is_busy: bool) -> Option<Pause> {
        /// Divisor of the patience without operations under way: the next operation may start soon,
        /// and a wake-up costs more than a few polls.
        const WITHOUT_WORK: u32 = 10;
        self.in_vain = if news > 0 { 0 } else { self.in_vain.saturating_add(1) };
        let patience =
            self.patience.map_or(0, |most| if is_busy { most } else { most / WITHOUT_WORK });
        if self.in_vain < patience {
            self.slow.after(1);
            return None;
        }
        Some(if is_busy { Pause::For(self.slow.after(news)) } else { Pause::UntilStarted })
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn within(least: u64, most: u64) -> PollingPeriod {
        let (least, most) = (Duration::from_micros(least), Duration::from_micros(most));
        PollingPeriod::Within { least, most }
    }

    #[test]
    fn a_period_has_one_to_three_parts() {
        let parsed = |text| PollingPeriod::parse(text).unwrap();
        assert_eq!(parsed("0"), within(0, 0));
        assert_eq!(parsed(" 100 "), within(100, 100));
        assert_eq!(parsed("10:200"), within(10, 200));
        assert_eq!(parsed("10:10:slowstart"), within(10, 10));
        assert_eq!(parsed("0:10000000"), within(0, 10_000_000));
    }

    #[test]
    fn a_bad_period_is_named_with_the_variable() {
        let bad = [
            "",
            ":",
            "1:",
            ":1",
            "-1",
            "+1",
            "1.5",
            "us",
            "5us",
            "2:1",
            "1:2:",
            "1:2:fast",
            "1:2:slowstart:",
            "10000001",
            "1:10000001",
            "99999999999999999999",
        ];
        for text in bad {
            let error = PollingPeriod::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("TAMPI_POLLING_PERIOD={text}: ")), "{error}");
        }
    }

    #[test]
    fn the_period_doubles_up_to_its_maximum_and_falls_back() {
        let us = Duration::from_micros;
        let mut period = SlowStart::new(us(10), us(35));
        let waits: Vec<_> = [0, 0, 0, 0, 3, 0, 0].map(|done| period.after(done)).into();
        assert_eq!(waits, [10, 20, 35, 35, 10, 10, 20].map(us));
        let mut from_zero = SlowStart::new(us(0), us(2));
        let waits: Vec<_> = [0, 0, 0, 0].map(|done| from_zero.after(done)).into();
        assert_eq!(waits, [0, 1, 2, 2].map(us));
    }

    #[test]
    fn an_adaptive_pace_slows_down_after_many_passes_in_vain() {
        let mut pace = Pace::new(PollingPeriod::Adaptive, true);
        let soon = (0..100).take_while(|_| pace.next(0, true).is_none()).count();
        assert_eq!(soon, 19);
        let slow = std::iter::repeat_with(|| pace.next(0, true)).take(10).last();
        assert_eq!(slow, Some(Some(Pause::For(Duration::from_micros(200)))));
        assert_eq!(pace.next(1, true), None);
    }

    #[test]
    fn a_started_operation_is_polled_at_once_after_any_number_of_polls_in_vain() {
        let mut pace = Pace::new(PollingPeriod::Adaptive, false);
        assert!((0..5_000).any(|_| pace.next(0, true).is_some()));
        assert_eq!(pace.next(1, true), None);
        // Waiting tasks start and end operations before the poller comes.
        assert!((0..5_000).all(|_| pace.next(0, false) == pace.next(1, true)));
    }

    #[test]
    fn a_pace_without_work_sleeps_after_a_while() {
        for (oversubscribed, polls) in [(false, 19), (true, 1)] {
            let mut pace = Pace::new(PollingPeriod::Adaptive, oversubscribed);
            let soon = (0..1_000).take_while(|_| pace.next(0, false).is_none()).count();
            assert_eq!(soon, polls);
        }
        assert_eq!(Pace::new(within(0, 0), false).next(0, false), Some(Pause::UntilStarted));
    }

    #[test]
    fn a_given_period_is_kept_from_the_first_pass_on() {
        let mut pace = Pace::new(within(7, 7), false);
        assert_eq!(pace.next(0, true), Some(Pause::For(Duration::from_micros(7))));
        assert_eq!(pace.next(5, true), Some(Pause::For(Duration::from_micros(7))));
    }
}
