//! Place of this process among those that `talpf launch` has started.

use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use ibverbs_sim::{ShmConfig, ShmRail};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use super::Machine;
use crate::Error;

/// Environment variable by which a process learns its place.
const VARIABLE: &str = "TALPF_LAUNCH";
/// Time in which all processes must have met.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Place of a process among those of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Process that has started this one.
    launcher: i32,
    /// Random number of the run, since launchers in other containers may have the same number.
    run: u64,
    process: u32,
    processes: u32,
}

impl Launched {
    /// Creates the places of `processes` processes that this one is about to start.
    pub fn children(processes: u32) -> Vec<Self> {
        let launcher = getpid().as_raw_nonzero().get();
        let run = RandomState::new().build_hasher().finish();
        (0..processes).map(|process| Self { launcher, run, process, processes }).collect()
    }

    /// Returns the environment variable for the process at this place.
    pub fn variable(&self) -> (&'static str, String) {
        let Self { launcher, run, process, processes } = self;
        (VARIABLE, format!("{launcher}:{run}:{process}:{processes}"))
    }

    /// Returns the place of this process; `None` if no launcher has started it. A child of such a
    /// process that has inherited the variable has no place. The process ends when its launcher does.
    ///
    /// **Errors**: [`Error::Launch`] if the variable makes no sense, or its launcher has ended.
    pub fn from_environment() -> Result<Option<Self>, Error> {
        let Some(value) = env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let value = value.to_string_lossy();
        let wrong = |expected| Error::Launch { value: value.to_string(), expected };
        let place = Self::parse(&value)
            .ok_or_else(|| wrong("LAUNCHER:RUN:PROCESS:PROCESSES, as `talpf launch` sets it"))?;
        // Asked for first, so that a launcher that ends now is noticed either way.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        if getppid().map(Pid::as_raw_pid) == Some(place.launcher) {
            return Ok(Some(place));
        }
        let _ = set_parent_process_death_signal(None);
        let launcher = Pid::from_raw(place.launcher).ok_or_else(|| wrong("a launcher"))?;
        match rustix::process::test_kill_process(launcher) {
            Err(rustix::io::Errno::SRCH) => Err(wrong("a launcher that runs")),
            _ => Ok(None),
        }
    }

    fn parse(value: &str) -> Option<Self> {
        let mut fields = value.split(':');
        let launcher = fields.next()?.parse().ok().filter(|&launcher: &i32| launcher > 0)?;
        let run = fields.next()?.parse().ok()?;
        let process = fields.next()?.parse().ok()?;
        let processes = fields.next()?.parse().ok()?;
        let is_place = process < processes && Machine::RANKS.contains(&(processes as usize));
        (is_place && fields.next().is_none()).then_some(Self { launcher, run, process, processes })
    }

    /// Returns the number of this process, from 0.
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Returns the number of processes.
    pub fn processes(&self) -> u32 {
        self.processes
    }

    /// Connects this process to the others, through memory that they share.
    ///
    /// **Errors**: [`Error::Meet`].
    pub(super) fn join(&self) -> Result<ShmRail, Error> {
        let Self { launcher, run, process, processes } = *self;
        let run = format!("talpf-{launcher}-{run}");
        ShmRail::join(&run, process, processes, TIMEOUT, &ShmConfig::default())
            .map_err(|source| Error::Meet { process, processes, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_what_its_variable_says() {
        for place in Launched::children(3) {
            let (_, value) = place.variable();
            assert_eq!(Launched::parse(&value), Some(place));
        }
    }

    #[test]
    fn what_is_no_place() {
        for value in [
            "",
            "1",
            "1:2:3",
            "1:2:0:1:5",
            "0:2:0:1",
            "-1:2:0:1",
            "1:2:1:1",
            "1:2:0:0",
            "1:2:0:1025",
        ] {
            assert_eq!(Launched::parse(value), None, "{value}");
        }
    }
}
