//! Options of processes that were not started by `talpf launch`, by which they find each other.

use std::env;
use std::time::Duration;

use clap::Args;
use ibverbs_sim::bootstrap::{BootstrapError, PmiLaunch};
use talpf_apps::Error;
use talpf_apps::run::processes::Meeting;
use talpf_apps::run::{Launched, Machine, Membership};

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
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "server",
        value_parser = number_within(1..=86400)
    )]
    timeout: Option<usize>,

    /// Time without a sign of life after which a process counts as lost [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = number_within(1..=86400))]
    peer_timeout: Option<usize>,
}

impl MeetingOptions {
    /// Returns the time without a sign of life after which a process is given up, if one is given.
    pub(super) fn peer_timeout(&self) -> Option<Duration> {
        self.peer_timeout.map(|seconds| Duration::from_secs(seconds as u64))
    }

    /// Returns the way in which this process finds others; `None` if it is alone.
    ///
    /// **Errors**: [`Error::Launch`]; [`Error::NotTogether`]; [`Error::Meet`].
    pub(super) fn meeting(&self) -> Result<Option<Meeting>, Error> {
        let launched = Launched::from_environment()?;
        if self.server.is_none()
            && let Some(pmi) = PmiLaunch::from_environment().map_err(Error::Meet)?
        {
            return match launched {
                None => Ok(Some(Meeting::Pmi(pmi))),
                Some(launched) => of_two_launchers(launched.membership(), pmi).map(Some),
            };
        }
        self.meeting_without_pmi()
    }

    /// As [`meeting`](Self::meeting), for processes that MPI connects if a launcher with PMI has started
    /// them.
    ///
    /// **Errors**: [`Error::Launch`]; [`Error::NotTogether`].
    pub(super) fn meeting_without_pmi(&self) -> Result<Option<Meeting>, Error> {
        let launched = Launched::from_environment()?;
        match (launched, &self.server, self.process.zip(self.processes)) {
            (Some(_), Some(_), _) => {
                Err(Error::NotTogether { option: "--server", with: "talpf launch" })
            }
            (Some(launched), ..) => Ok(Some(Meeting::Launched(launched.membership().clone()))),
            (None, Some(server), Some((process, processes))) => {
                Ok(Some(Meeting::Server(Membership {
                    process: process as u32,
                    processes: processes as u32,
                    server: server.clone(),
                    secret: env::var(SECRET).unwrap_or_default(),
                    timeout: self
                        .timeout
                        .map_or(Membership::TIMEOUT, |seconds| Duration::from_secs(seconds as u64)),
                })))
            }
            _ => Ok(None),
        }
    }
}

/// Returns the meeting of a process to which two launchers have given numbers, if these agree.
///
/// **Errors**: [`Error::Meet`] with [`BootstrapError::Environment`].
fn of_two_launchers(member: &Membership, pmi: PmiLaunch) -> Result<Meeting, Error> {
    let Membership { process, processes, .. } = *member;
    if (process, processes) == (pmi.process, pmi.processes) {
        return Ok(Meeting::Launched(member.clone()));
    }
    let text = format!(
        "TALPF_LAUNCH is of process {process} of {processes}, but PMI_RANK is \"{}\" and PMI_SIZE is \
         \"{}\": which launcher has started this?",
        pmi.process, pmi.processes
    );
    Err(Error::Meet(BootstrapError::Environment { text }))
}
