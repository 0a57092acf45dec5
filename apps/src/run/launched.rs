//! Processes that `talpf launch` has started.

use std::env;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use super::{Machine, Membership};
use crate::Error;

/// Environment variable by which a process learns of its membership.
const VARIABLE: &str = "TALPF_LAUNCH";

/// A process that a launcher has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Process that has started this one.
    launcher: i32,
    membership: Membership,
}

impl Launched {
    /// Makes a member of a run a child of this process.
    pub fn child(membership: Membership) -> Self {
        Self { launcher: getpid().as_raw_nonzero().get(), membership }
    }

    /// Returns the environment variable for the process.
    pub fn variable(&self) -> (&'static str, String) {
        let Self { launcher, membership } = self;
        let Membership { process, processes, server, secret, timeout } = membership;
        let timeout = timeout.as_secs();
        (VARIABLE, format!("{launcher},{process},{processes},{server},{secret},{timeout}"))
    }

    /// Returns what a launcher has made of this process; `None` if none has started it. A child of
    /// such a process that has inherited the variable was not started by a launcher. The process ends
    /// when its launcher does.
    ///
    /// **Errors**: [`Error::Launch`] if the variable makes no sense, or its launcher has ended.
    pub fn from_environment() -> Result<Option<Self>, Error> {
        let Some(value) = env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let value = value.to_string_lossy();
        let wrong = |expected| Error::Launch { value: value.to_string(), expected };
        let launched = Self::parse(&value).ok_or_else(|| wrong("what `talpf launch` sets"))?;
        // Asked for first, so that a launcher that ends now is noticed either way.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        if getppid().map(Pid::as_raw_pid) == Some(launched.launcher) {
            return Ok(Some(launched));
        }
        let _ = set_parent_process_death_signal(None);
        let launcher = Pid::from_raw(launched.launcher).ok_or_else(|| wrong("a launcher"))?;
        match rustix::process::test_kill_process(launcher) {
            Err(rustix::io::Errno::SRCH) => Err(wrong("a launcher that runs")),
            _ => Ok(None),
        }
    }

    fn parse(value: &str) -> Option<Self> {
        let mut fields = value.split(',');
        let launcher = fields.next()?.parse().ok().filter(|&launcher: &i32| launcher > 0)?;
        let process = fields.next()?.parse().ok()?;
        let processes = fields.next()?.parse().ok()?;
        let (server, secret) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        let timeout = Duration::from_secs(fields.next()?.parse().ok()?);
        let is_member = process < processes && Machine::PROCESSES.contains(&(processes as usize));
        let membership = Membership { process, processes, server, secret, timeout };
        (is_member && fields.next().is_none()).then_some(Self { launcher, membership })
    }

    /// Returns the membership of the process.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_what_its_variable_says() {
        let launched = Launched::child(Membership {
            process: 2,
            processes: 3,
            server: "[::1]:1234".into(),
            secret: "0123abc".into(),
            timeout: Duration::from_secs(7),
        });
        let (_, value) = launched.variable();
        assert_eq!(Launched::parse(&value), Some(launched));
    }

    #[test]
    fn what_is_no_process_of_a_launcher() {
        for value in [
            "",
            "1",
            "1,0,3,h:1,s",
            "1,0,1,h:1,s,5,",
            "0,0,1,h:1,s,5",
            "-1,0,1,h:1,s,5",
            "1,1,1,h:1,s,5",
            "1,0,0,h:1,s,5",
            "1,0,1025,h:1,s,5",
            "1,0,1,h:1,s,-5",
        ] {
            assert_eq!(Launched::parse(value), None, "{value}");
        }
    }
}
