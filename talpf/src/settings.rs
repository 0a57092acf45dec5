//! Settings that a user changes without the program, in a file and in the environment.
//!
//! ```toml
//! # talpf.toml; every line may be left out
//! workers = 8              # 1 to 1024 threads
//! idle = "adaptive:50"     # spin, adaptive, adaptive:N (microseconds), park
//! throttle = 256           # 1 to 16777216 tasks ahead, or "off"
//! polling = "100us"        # adaptive, or a period in ns, us or ms
//! check_conflicts = true   # or false
//! ```
//!
//! A variable of the environment goes before a line of the file, and that before the default.

use std::env;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use talpf_runtime::{IdlePolicy, NoIdlePolicy, NoPolicy, Policies};
use toml::{Spanned, Value};

use crate::config::{Config, PollingFrequency};
use crate::error::Error;

/// Settings of the runtime, of the polling tasks and of checks, as read from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    workers: Option<usize>,
    idle: Option<IdlePolicy>,
    throttle: Option<usize>,
    polling: Option<PollingFrequency>,
    check_conflicts: Option<bool>,
}

impl Settings {
    /// The settings of an empty file.
    pub const NONE: Self = Settings {
        workers: None,
        idle: None,
        throttle: None,
        polling: None,
        check_conflicts: None,
    };
    /// The environment variable that names the file.
    pub const FILE: &'static str = "TALPF_CONFIG";
    /// The environment variable that sets the idle policy.
    pub const IDLE: &'static str = "TALPF_IDLE";
    /// The environment variable that sets [`Config::check_conflicts`].
    pub const CHECK_CONFLICTS: &'static str = "TALPF_CHECK_CONFLICTS";

    /// The environment variable that names scheduling policies to leave out, for measurements.
    #[doc(hidden)]
    pub const WITHOUT: &'static str = "TALPF_WITHOUT";

    /// Reads `file`, or the one that [`Settings::FILE`] names. Without both nothing is set.
    ///
    /// **Errors**: the file cannot be read, or has a name or a value that is not allowed.
    pub fn load(file: Option<&Path>) -> Result<Self, Error> {
        if let Some(file) = file {
            return Self::read(file);
        }
        match env::var_os(Self::FILE) {
            Some(named) if named.is_empty() => Err(Error::Setting {
                name: Self::FILE,
                value: String::new(),
                expected: "give the name of a file, or unset it",
            }),
            Some(named) => Self::read(Path::new(&named)),
            None => Ok(Self::NONE),
        }
    }

    fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::NoSettings {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        parse(&text).map_err(|Refused { at, reason }| Error::BadSettings {
            path: path.to_owned(),
            line: text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1,
            reason,
        })
    }

    /// Returns the number of workers, if set.
    pub fn workers(&self) -> Option<usize> {
        self.workers
    }

    /// Returns the idle policy of workers: from [`Settings::IDLE`], or the file, or the default.
    ///
    /// **Errors**: the variable does not name an idle policy.
    pub fn idle(&self) -> Result<IdlePolicy, Error> {
        let Some(text) = env::var_os(Self::IDLE) else {
            return Ok(self.idle.unwrap_or_default());
        };
        let text = text.to_string_lossy().into_owned();
        text.parse().map_err(|NoIdlePolicy| Error::Setting {
            name: Self::IDLE,
            value: text,
            expected: NoIdlePolicy::EXPECTED,
        })
    }

    /// Returns the polling frequency: from [`PollingFrequency::VARIABLE`], or the file, or the
    /// default.
    ///
    /// **Errors**: the variable is no polling frequency.
    pub fn polling(&self) -> Result<PollingFrequency, Error> {
        match self.polling {
            Some(polling) if env::var_os(PollingFrequency::VARIABLE).is_none() => Ok(polling),
            _ => PollingFrequency::from_environment(),
        }
    }

    /// Returns `true` if the environment or the file sets the polling frequency.
    pub fn sets_polling(&self) -> bool {
        self.polling.is_some() || env::var_os(PollingFrequency::VARIABLE).is_some()
    }

    /// Returns `true` if the run checks for conflicts: from [`Settings::CHECK_CONFLICTS`], or the
    /// file, or the default.
    ///
    /// **Errors**: the variable is neither `true` nor `false`.
    pub fn check_conflicts(&self) -> Result<bool, Error> {
        let Some(text) = env::var_os(Self::CHECK_CONFLICTS) else {
            return Ok(self.check_conflicts.unwrap_or(Config::default().check_conflicts));
        };
        let text = text.to_string_lossy().into_owned();
        text.parse().map_err(|_| Error::Setting {
            name: Self::CHECK_CONFLICTS,
            value: text,
            expected: YES_OR_NO,
        })
    }

    /// Returns the configuration of a runtime, with defaults for values that are not set.
    ///
    /// **Errors**: as [`Settings::idle`]; [`Settings::WITHOUT`] does not name policies.
    pub fn runtime(&self) -> Result<talpf_runtime::Config, Error> {
        let default = talpf_runtime::Config::default();
        Ok(talpf_runtime::Config {
            workers: self.workers.unwrap_or(default.workers),
            idle: self.idle()?,
            throttle: self.throttle.unwrap_or(default.throttle),
            policies: policies()?,
            ..default
        })
    }
}

/// Returns the policies of the scheduler that the environment leaves.
fn policies() -> Result<Policies, Error> {
    let text = env::var_os(Settings::WITHOUT).unwrap_or_default().to_string_lossy().into_owned();
    text.parse().map_err(|NoPolicy| Error::Setting {
        name: Settings::WITHOUT,
        value: text,
        expected: NoPolicy::EXPECTED,
    })
}

/// The lines of a file, before their values are checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    workers: Option<Spanned<Value>>,
    idle: Option<Spanned<Value>>,
    throttle: Option<Spanned<Value>>,
    polling: Option<Spanned<Value>>,
    check_conflicts: Option<Spanned<Value>>,
}

/// The reason why a text is refused, and the first byte of the mistake.
struct Refused {
    at: usize,
    reason: String,
}

/// The end of an error about a text that is not a truth value.
const YES_OR_NO: &str = "give `true` or `false`";

/// Largest number of tasks ahead in a file, the most that can be alive.
const MOST_AHEAD: usize = 1 << 24;

fn parse(text: &str) -> Result<Settings, Refused> {
    let lines: Lines = toml::from_str(text).map_err(|error| Refused {
        at: error.span().map_or(0, |span| span.start),
        reason: error.message().replace('\n', ", "),
    })?;
    let workers = talpf_runtime::Config::WORKERS;
    let within = |value: &Value, most: usize| {
        let number = usize::try_from(value.as_integer()?).ok()?;
        (1..=most).contains(&number).then_some(number)
    };
    Ok(Settings {
        workers: line("workers", lines.workers, "give a whole number from 1 to 1024", |value| {
            within(value, *workers.end())
        })?,
        idle: line("idle", lines.idle, NoIdlePolicy::EXPECTED, |value| {
            value.as_str()?.parse().ok()
        })?,
        throttle: line(
            "throttle",
            lines.throttle,
            "give a whole number from 1 to 16777216, or \"off\"",
            |value| match value.as_str() {
                Some("off") => Some(usize::MAX),
                _ => within(value, MOST_AHEAD),
            },
        )?,
        polling: line("polling", lines.polling, PollingFrequency::EXPECTED, |value| {
            let digits = value.as_integer().map(|number| number.to_string());
            PollingFrequency::parse(digits.as_deref().or(value.as_str())?).ok()
        })?,
        check_conflicts: line("check_conflicts", lines.check_conflicts, YES_OR_NO, Value::as_bool)?,
    })
}

/// Checks one line by `read`.
fn line<T>(
    name: &str,
    value: Option<Spanned<Value>>,
    expected: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, Refused> {
    let Some(value) = value else { return Ok(None) };
    match read(value.get_ref()) {
        Some(read) => Ok(Some(read)),
        None => Err(Refused {
            at: value.span().start,
            reason: format!("{name} = {}: {expected}", value.get_ref()),
        }),
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;
    use std::time::Duration;

    fn refusal(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talpf.toml");
        fs::write(&path, text).unwrap();
        let error = Settings::load(Some(&path)).unwrap_err().to_string();
        let folder = format!("{}/", folder.path().display());
        error.replace(&folder, "")
    }

    fn settings(text: &str) -> Settings {
        parse(text).unwrap_or_else(|refused| panic!("{text}: {}", refused.reason))
    }

    #[test]
    fn every_line_is_read() {
        let all = "workers = 3\nidle = 'adaptive:7' # why\nthrottle = 9\npolling = '20us'\n\
                   check_conflicts = true\n";
        let all = settings(all);
        let spin = Duration::from_micros(7);
        assert_eq!(all.workers(), Some(3));
        assert_eq!(all.idle, Some(IdlePolicy::Adaptive { spin }));
        assert_eq!(all.throttle, Some(9));
        assert_eq!(all.polling, Some(PollingFrequency::Every(Duration::from_micros(20))));
        assert_eq!(all.check_conflicts, Some(true));
        assert_eq!(settings("polling = 4").polling, settings("polling = '4us'").polling);
        assert_eq!(settings("throttle = 'off'").throttle, Some(usize::MAX));
    }

    #[test]
    fn what_is_not_set_is_the_default() {
        assert_eq!(settings(""), Settings::NONE);
        let set = settings("throttle = 5").runtime().unwrap();
        assert_eq!(set.workers, talpf_runtime::Config::default().workers);
        assert_eq!(set.throttle, 5);
    }

    #[test]
    fn every_limit_holds_on_both_sides() {
        for good in ["workers = 1", "workers = 1024", "throttle = 1", "throttle = 16777216"] {
            settings(good);
        }
        for (bad, said) in [
            ("workers = 0", "workers = 0: give a whole number from 1 to 1024"),
            ("workers = 1025", "workers = 1025: give a whole number from 1 to 1024"),
            ("workers = 'two'", "workers = \"two\": give a whole number from 1 to 1024"),
            ("throttle = 0", "throttle = 0: give a whole number from 1 to 16777216, or \"off\""),
            ("throttle = 16777217", "throttle = 16777217: give a whole number from 1 to 16777216"),
            ("idle = 'fast'", "idle = \"fast\": give `spin`, `adaptive`, `adaptive:N`"),
            ("idle = 1", "idle = 1: give `spin`, `adaptive`, `adaptive:N`"),
            ("polling = '10s'", "polling = \"10s\": give a whole number of microseconds"),
            ("polling = -1", "polling = -1: give a whole number of microseconds"),
            ("check_conflicts = 1", "check_conflicts = 1: give `true` or `false`"),
            ("check_conflicts = 'on'", "check_conflicts = \"on\": give `true` or `false`"),
        ] {
            let error = refusal(&format!("# settings\n\n{bad}\n"));
            assert!(error.starts_with(&format!("talpf.toml:3: {said}")), "{bad}: {error}");
        }
    }

    #[test]
    fn a_text_that_is_no_settings_is_refused_with_its_line() {
        for (bad, said) in [
            ("workers = 1\nworker = 2\n", "talpf.toml:2: unknown field `worker`"),
            ("workers = 1\nworkers = 2\n", "talpf.toml:2: "),
            ("\n\nidle = \n", "talpf.toml:3: "),
            ("[runtime]\n", "talpf.toml:1: unknown field `runtime`"),
        ] {
            let error = refusal(bad);
            assert!(error.starts_with(said) && !error.contains('\n'), "{bad:?}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Settings::load(Some(Path::new("no/talpf.toml"))).unwrap_err().to_string();
        assert!(error.starts_with("cannot read no/talpf.toml: "), "{error}");
    }
}
