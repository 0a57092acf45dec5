//! Polling period: the time between two polls, as programs and their users set it.

use std::fmt;
use std::time::Duration;

use talpf_runtime::service::Pace;

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

    /// Returns the pace of the polling task.
    pub(super) fn pace(self) -> Pace {
        match self {
            PollingPeriod::Adaptive => Pace::Adaptive,
            PollingPeriod::Within { least, most } => Pace::Naps { least, most },
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
}
