//! Processes of one run, on this machine or on several: their start, their output and their end.

mod children;
mod part;
mod remote;

use std::env;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use clap::Args;
use ibverbs_sim::bootstrap::{BootstrapError, BootstrapServer};
use talpf_apps::Error;
use talpf_apps::run::{Launched, Machine, Place};

use self::children::{Children, Event, Forwarder};
pub(super) use self::part::run as run_part;
use self::remote::Remote;
use super::number_within::number_within;

/// Options of `talpf launch`.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// Processes [default: as many as the hosts have]
    #[arg(
        short = 'n',
        long,
        value_name = "P",
        value_parser = number_within(Machine::RANKS),
        required_unless_present = "hosts"
    )]
    processes: Option<usize>,

    /// Run on other machines: a name in each line, and the number of its processes if that is not 1
    #[arg(long, value_name = "FILE")]
    hosts: Option<PathBuf>,

    /// Command that runs a program on a machine, with the same path of this program there
    #[arg(long, value_name = "COMMAND", requires = "hosts", default_value = "ssh {host}")]
    via: String,

    /// Address of this machine that the others reach [default: that by which this one reaches the
    /// first of them]
    #[arg(long, value_name = "ADDRESS", requires = "hosts")]
    address: Option<String>,

    /// Time in which all processes must have met
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = number_within(1..=86400),
        default_value_t = Place::TIMEOUT.as_secs() as usize
    )]
    timeout: usize,

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
    pub(super) fn line(&self) -> impl Iterator<Item = &OsStr> {
        self.line.iter().map(OsString::as_os_str)
    }
}

/// Runs the processes. Ends all of them once one has failed. Returns the exit code of the first that
/// has failed; its own error says why.
///
/// **Errors**: [`Error::Process`]; [`Error::Killed`]; [`Error::Signals`]; [`Error::Interrupted`];
/// [`Error::Meet`]; those of hosts files, and [`Error::Host`].
pub(super) fn run(options: &Options) -> Result<Option<u8>, Error> {
    let remote = options.hosts.as_ref().map(|file| Remote::new(file, options)).transpose()?;
    let everywhere = remote.as_ref().map_or(1, Remote::processes);
    let processes = options.processes.unwrap_or(everywhere) as u32;
    let (interface, address) = match &remote {
        None => ("127.0.0.1", "127.0.0.1".to_owned()),
        Some(remote) => ("0.0.0.0", remote.address()?),
    };
    let secret = random();
    let server = BootstrapServer::listen(format!("{interface}:0"), processes, secret.as_bytes());
    let server = server.map_err(Error::Meet)?;
    let server_address = format!("{address}:{}", server.port().map_err(Error::Meet)?);
    let timeout = Duration::from_secs(options.timeout as u64);

    let (sender, events) = channel();
    let forwarder = Forwarder::start(&sender)?;
    let mut children = Children::new(processes);
    for process in 0..processes {
        let (server, secret) = (server_address.clone(), secret.clone());
        let place = Place { process, processes, server, secret, timeout };
        let line = options.line();
        let command = match &remote {
            None => local(place, line).map(|command| (command, None)),
            Some(remote) => remote.command(&place, line),
        };
        let errors = if process == 0 { Stdio::inherit() } else { Stdio::piped() };
        let started = command
            .and_then(|(command, input)| children.start(process, command, input, errors, &sender));
        if let Err(source) = started {
            children.fail(Err(Error::Process { process, processes, source }));
            break;
        }
    }
    thread::spawn(move || {
        // Processes that have come know any other error.
        if let Err(error @ BootstrapError::Missing { .. }) = server.run(timeout) {
            let _ = sender.send(Event::Missing(error));
        }
    });
    children.watch(&events);
    forwarder.end();
    children.result()
}

/// Returns the command of a process of this machine.
fn local<'a>(place: Place, line: impl Iterator<Item = &'a OsStr>) -> io::Result<Command> {
    let (name, value) = Launched::child(place).variable();
    let mut command = Command::new(env::current_exe()?);
    command.args(line).env(name, value);
    Ok(command)
}

/// Returns a text that nobody guesses.
fn random() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}
