//! Processes of one run, on this machine or on several: their start, their output and their end.

mod children;
mod event;
mod forwarded_signal;
mod forwarder;
mod options;
mod part;
mod remote;

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ibverbs_sim::bootstrap::{BootstrapError, BootstrapServer};
use talpf_apps::Error;
use talpf_apps::run::Membership;

use self::children::{Children, local};
use self::event::Event;
use self::forwarder::Forwarder;
pub(super) use self::options::Options;
use self::remote::Remote;

/// Runs the processes. Ends all of them once one has failed, unless the options say that the others
/// keep going. Returns the exit code of the first that has failed; its own error says why.
///
/// **Errors**: [`Error::Process`]; [`Error::Killed`]; [`Error::Signals`]; [`Error::Interrupted`].
/// Before anything starts: [`Error::Meet`]; [`Error::Host`], and those of hosts files.
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
    let mut children = Children::new(processes, options.keep_going);
    let line = options.line();
    for process in 0..processes {
        let (server, secret) = (server_address.clone(), secret.clone());
        let member = Membership { process, processes, server, secret, timeout };
        let line = line.iter().map(OsString::as_os_str);
        let command = match &remote {
            None => local(member, line).map(|command| (command, None)),
            Some(remote) => remote.command(&member, line),
        };
        let errors = if process == 0 { Stdio::inherit() } else { Stdio::piped() };
        let started = command
            .and_then(|(command, input)| children.start(process, command, input, errors, &sender));
        if let Err(source) = started {
            children.end(Err(Error::Process { process, processes, source }));
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

/// Returns a text that nobody guesses.
fn random() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}

/// Runs the process that a launcher on another machine describes on the standard input.
///
/// **Errors**: [`Error::NoPart`], and those of [`run`] once it has started.
pub(super) fn run_part() -> Result<Option<u8>, Error> {
    part::run()
}
