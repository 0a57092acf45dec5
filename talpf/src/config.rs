//! Settings of a run.

use std::fmt;
use std::time::Duration;

use crate::endpoint;
use crate::error::Error;

/// The frequency with which the polling task polls the completion queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollingFrequency {
    /// Continuous while a worker has nothing else to do. After 0.1 ms without success, or 1 ms with
    /// ranks in other processes, the task sleeps until something arrives. Over MPI, and wires without a
    /// descriptor, it polls five thousand times a second then.
    #[default]
    Adaptive,
    /// Pauses of this length between polls.
    Every(Duration),
}

impl PollingFrequency {
    /// The environment variable that sets the polling frequency.
    pub const VARIABLE: &'static str = "TALPF_POLLING_FREQUENCY";

    /// The end of an error about a text that is no polling frequency.
    pub(crate) const EXPECTED: &str =
        "give a whole number of microseconds up to 1 h, or one with ns, us or ms, or `adaptive`";

    /// Reads the environment variable: `adaptive`, a number of microseconds, or a number with `ns`,
    /// `us` or `ms`. Unset means adaptive.
    ///
    /// **Errors**: anything else.
    pub fn from_environment() -> Result<Self, Error> {
        match std::env::var_os(Self::VARIABLE) {
            Some(text) => Self::parse(&text.to_string_lossy()),
            None => Ok(PollingFrequency::Adaptive),
        }
    }

    /// Parses the text of the environment variable.
    ///
    /// **Errors**: no number, a negative one, an unknown unit, more than an hour.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = || Error::Setting {
            name: Self::VARIABLE,
            value: text.to_owned(),
            expected: Self::EXPECTED,
        };
        let text = text.trim();
        if text == "adaptive" {
            return Ok(PollingFrequency::Adaptive);
        }
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: u64 = digits.trim_end().parse().map_err(|_| refuse())?;
        let unit_ns = match &text[digits.len()..] {
            "ns" => 1,
            "" | "us" => 1_000,
            "ms" => 1_000_000,
            _ => return Err(refuse()),
        };
        let period = number.checked_mul(unit_ns).map(Duration::from_nanos);
        match period {
            Some(period) if period <= Duration::from_secs(3600) => {
                Ok(PollingFrequency::Every(period))
            }
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for PollingFrequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PollingFrequency::Adaptive => f.write_str("adaptive"),
            PollingFrequency::Every(period) => write!(f, "every {period:?}"),
        }
    }
}

/// Server of the ranks of other processes: it carries out their requests and takes in what they send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// Idle workers, and workers between two tasks. While all are in long tasks nothing is served.
    #[default]
    Workers,
    /// A thread of its own in their place, whatever they do. It polls until nothing has come for 0.1 ms, for which it
    /// needs a core, and then sleeps until something arrives: the first of several messages takes a wake-up longer than
    /// with an idle worker. Only over rails with an event, and of no effect in a run of one process.
    Thread,
}

/// The settings of [`exec`](crate::exec()).
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of ranks, 1 to 4096. In one process each pair of ranks that communicate takes two
    /// queue pairs, one at each end, of the `max_qp` of the device; one that exceeds them fails the
    /// run.
    pub ranks: u32,
    /// The runtime that all ranks share. Its sets of workers
    /// ([`worker_sets`](talpf_runtime::Config::worker_sets)) are divided among the ranks of the process:
    /// with as many sets as ranks, each rank has workers of its own.
    pub runtime: talpf_runtime::Config,
    /// Polling frequency of the ranks.
    pub polling: PollingFrequency,
    /// Server of the ranks of other processes.
    pub progress: Progress,
    /// Completions taken from a queue at once (`POLL_BATCH` of the thesis).
    pub poll_batch: usize,
    /// Completions handled in one pass (`MAX_POLLING` of the thesis).
    pub max_polling: usize,
    /// Largest number of operations of one rank that may be parked at another, waiting for a
    /// window. Further operations wait at their own rank. Short puts to elements side by side that
    /// are posted together count as one. Between processes, of short puts, eight for each of these may
    /// be under way or parked, as they are not asked about before.
    pub credits: usize,
    /// `true` to fail a round that reads and writes one location (R6). The rank that owns the
    /// memory finds this when its sync has all arrivals: [`Error::Conflict`] at that rank and at
    /// those that issued the two operations. The default is `true` in builds with debug assertions.
    ///
    /// A get conflicts with puts and atomics, and an atomic with puts; puts have some order.
    /// Windows exclude conflicts of gets in any case, so this is for atomics in windows and for raw
    /// slots.
    /// **Cost**: a note for each operation, kept at the target until the round ends.
    pub check_conflicts: bool,
    /// Settings of the device. Transfers longer than its largest are split. A link model is for ranks in
    /// one process: in virtual time messages arrive exactly when it says, in real time no earlier.
    pub device: ibverbs_sim::DeviceConfig,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            ranks: 1,
            runtime: talpf_runtime::Config::default(),
            polling: PollingFrequency::Adaptive,
            progress: Progress::Workers,
            poll_batch: 8,
            max_polling: 128,
            credits: 64,
            check_conflicts: cfg!(debug_assertions),
            device: ibverbs_sim::DeviceConfig::default(),
        }
    }
}

/// Largest number of ranks in one process.
const MAX_RANKS: u32 = 4096;

impl Config {
    /// Estimates the bytes that ranks in one process need for their connections, if each
    /// communicates with `peers` others.
    pub fn connections_bytes(&self, peers: u32) -> u64 {
        endpoint::bytes(self.ranks, peers.min(self.ranks))
    }

    /// Returns `true` if messages are held by a link model until the time of a real clock.
    pub(crate) fn has_link_in_real_time(&self) -> bool {
        self.device.link.is_some() && self.runtime.virtual_time.is_none()
    }

    /// Returns `true` if what is sent to a rank of this process need not be announced by the device.
    pub(crate) fn signals_directly(&self) -> bool {
        let device = &self.device;
        device.link.is_none() && device.fault.is_none() && self.runtime.recorder.is_none()
    }

    /// Returns `true` if supersteps of plain BSP need no rounds between ranks of this process: nobody traces
    /// operations, or models their time.
    pub(crate) fn shares_supersteps(&self) -> bool {
        self.signals_directly() && self.runtime.virtual_time.is_none()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        limit("number of ranks", u64::from(self.ranks), 1, u64::from(MAX_RANKS))?;
        limit("poll batch", self.poll_batch as u64, 1, 1024)?;
        limit("max polling", self.max_polling as u64, 1, 1 << 20)?;
        limit("credits", self.credits as u64, 1, 1 << 20)
    }
}

fn limit(what: &'static str, value: u64, least: u64, most: u64) -> Result<(), Error> {
    if value < least {
        Err(Error::Limit { what, value, limit: least })
    } else if value > most {
        Err(Error::Limit { what, value, limit: most })
    } else {
        Ok(())
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn periods_with_and_without_unit() {
        let parsed = |text| PollingFrequency::parse(text).unwrap();
        let every = |ns| PollingFrequency::Every(Duration::from_nanos(ns));
        assert_eq!(parsed("500"), every(500_000));
        assert_eq!(parsed("100ns"), every(100));
        assert_eq!(parsed(" 7us "), every(7_000));
        assert_eq!(parsed("3 ms"), every(3_000_000));
        assert_eq!(parsed("0"), every(0));
        assert_eq!(parsed("adaptive"), PollingFrequency::Adaptive);
        assert_eq!(parsed("3600000ms"), every(3_600_000_000_000));
        for bad in ["", "us", "-1", "1.5", "10s", "99999999999999999999", "3600001ms"] {
            let error = PollingFrequency::parse(bad).unwrap_err();
            assert!(error.to_string().contains("TALPF_POLLING_FREQUENCY"), "{bad}: {error}");
        }
    }

    #[test]
    fn limits_on_both_sides() {
        let with = |ranks| Config { ranks, ..Config::default() }.check();
        assert!(with(0).is_err());
        assert!(with(1).is_ok());
        assert!(with(4096).is_ok());
        assert!(with(4097).is_err());
        assert!(Config { credits: 0, ..Config::default() }.check().is_err());
        assert!(Config { poll_batch: 0, ..Config::default() }.check().is_err());
        assert!(Config { max_polling: 0, ..Config::default() }.check().is_err());
    }
}
