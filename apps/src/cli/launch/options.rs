//! Options of `talpf launch`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use talpf_apps::run::{Machine, Membership};

use super::super::number_within::number_within;

/// Options of `talpf launch`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Processes [default: as many as the hosts have]
    #[arg(
        short = 'n',
        long,
        value_name = "P",
        value_parser = number_within(Machine::PROCESSES),
        required_unless_present = "hosts"
    )]
    pub(super) processes: Option<usize>,

    /// Ranks of each process
    #[arg(long, value_name = "R", value_parser = number_within(Machine::RANKS))]
    ranks_per_process: Option<usize>,

    /// Run on other machines: a name in each line, and the number of its processes if that is not 1
    #[arg(long, value_name = "FILE")]
    pub(super) hosts: Option<PathBuf>,

    /// Command that runs a program on a machine, with the same path of this program there
    #[arg(long, value_name = "COMMAND", requires = "hosts", default_value = "ssh {host}")]
    pub(super) via: String,

    /// Address of this machine that the others reach [default: that by which this one reaches the
    /// first of them]
    #[arg(long, value_name = "ADDRESS", requires = "hosts")]
    pub(super) address: Option<String>,

    /// Leave the others to end by themselves when a process fails
    #[arg(long)]
    pub(super) keep_going: bool,

    /// Time in which all processes must have met
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = number_within(1..=86400),
        default_value_t = Membership::TIMEOUT.as_secs() as usize
    )]
    pub(super) timeout: usize,

    /// Application and its options, as after `talpf`
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "APP"
    )]
    line: Vec<OsString>,
}

impl Options {
    /// Returns the arguments of each process.
    pub(crate) fn line(&self) -> Vec<OsString> {
        let mut line = self.line.clone();
        if let Some(each) = self.ranks_per_process {
            line.extend(["--ranks-per-process".into(), each.to_string().into()]);
        }
        line
    }
}
