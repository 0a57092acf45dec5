//! Options of processes that were not started by `talpf launch`, by which they find each other.

use std::env;
use std::time::Duration;

use clap::{Args, ValueEnum};
use talpf::Progress;
use talpf_apps::Error;
use talpf_apps::run::processes::Meeting;
use talpf_apps::run::{Launched, Machine, Membership};

use super::launcher;
use super::number_within::number_within;

/// Environment variable with a text that the processes of a run, and nobody else, know.
const SECRET: &str = "TALPF_SECRET";

/// Server of the processes of a run, and the number of this one.
#[derive(Args, Debug)]
pub(super) struct MeetingOptions {
    /// Take part in a run of several processes, which meet at this address; process 0 listens there
    #[arg(long, value_name = "HOST:PORT", requires_all = ["process", "processes"])]
    server: Option<String>,

    /// Number of this process, from 0
    #[arg(
        long,
        value_name = "I",
        requires = "server",
        value_parser = number_within(0..=*Machine::PROCESSES.end() - 1)
    )]
    process: Option<usize>,

    /// Number of processes, each of which has as many of the ranks
    #[arg(
        long,
        value_name = "N",
        requires = "server",
        value_parser = number_within(Machine::PROCESSES)
    )]
    processes: Option<usize>,

    /// Time in which all processes must have met [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = number_within(1..=86400))]
    timeout: Option<usize>,

    /// Time without a sign of life after which a process counts as lost [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = number_within(1..=86400))]
    peer_timeout: Option<usize>,

    /// Server of other processes in this one [default: workers]
    #[arg(long, value_name = "SERVER")]
    progress: Option<ServedBy>,
}

/// Server of other processes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ServedBy {
    /// Idle workers, and workers between two tasks
    Workers,
    /// A thread of its own, for tasks that compute for long
    Thread,
}

impl MeetingOptions {
    /// Returns the time without a sign of life after which a process is given up, if one is given.
    pub(super) fn peer_timeout(&self) -> Option<Duration> {
        self.peer_timeout.map(|seconds| Duration::from_secs(seconds as u64))
    }

    /// Returns what serves other processes.
    pub(super) fn progress(&self) -> Progress {
        match self.progress {
            None | Some(ServedBy::Workers) => Progress::Workers,
            Some(ServedBy::Thread) => Progress::Thread,
        }
    }

    /// Returns the option that is of no use to a process that is alone, if one is given.
    pub(super) fn only_for_several(&self) -> Option<&'static str> {
        let given = [
            ("--timeout", self.timeout.is_some()),
            ("--peer-timeout", self.peer_timeout.is_some()),
            ("--progress", self.progress.is_some()),
        ];
        given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// Returns the time in which all processes must have met.
    fn timeout(&self) -> Duration {
        let given = self.timeout.map(|seconds| Duration::from_secs(seconds as u64));
        given.unwrap_or(Membership::TIMEOUT)
    }

    /// Returns the way in which this process finds others; `None` if it is alone.
    ///
    /// **Errors**: [`Error::Launch`]; [`Error::NotTogether`]; [`Error::Meet`].
    pub(super) fn meeting(&self) -> Result<Option<Meeting>, Error> {
        if self.server.is_some() {
            return self.meeting_without_pmi();
        }
        let meeting = launcher::meeting(self.timeout())?;
        self.check_timeout(meeting)
    }

    /// As [`meeting`](Self::meeting), for processes that MPI connects if a launcher with PMI or PMIx has
    /// started them.
    ///
    /// **Errors**: [`Error::Launch`]; [`Error::NotTogether`].
    pub(super) fn meeting_without_pmi(&self) -> Result<Option<Meeting>, Error> {
        let launched = Launched::from_environment()?;
        let meeting = match (launched, &self.server, self.process.zip(self.processes)) {
            (Some(_), Some(_), _) => {
                return Err(Error::NotTogether { option: "--server", with: "talpf launch" });
            }
            (Some(launched), ..) => Some(Meeting::Launched(launched.membership().clone())),
            (None, Some(server), Some((process, processes))) => Some(Meeting::Server(Membership {
                process: process as u32,
                processes: processes as u32,
                server: server.clone(),
                secret: env::var(SECRET).unwrap_or_default(),
                timeout: self.timeout(),
            })),
            _ => None,
        };
        self.check_timeout(meeting)
    }

    /// Checks that the launcher has not set the timeout, if one is given.
    fn check_timeout(&self, meeting: Option<Meeting>) -> Result<Option<Meeting>, Error> {
        match meeting {
            Some(Meeting::Launched(_)) if self.timeout.is_some() => {
                Err(Error::NotTogether { option: "--timeout", with: "talpf launch" })
            }
            meeting => Ok(meeting),
        }
    }
}
