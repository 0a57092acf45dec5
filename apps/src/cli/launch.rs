//! Processes of one run on this machine: their start, their output and their end.

use std::env;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use ibverbs_sim::bootstrap::BootstrapServer;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use talpf_apps::Error;
use talpf_apps::run::{Launched, Machine, Place};

use super::number_within::number_within;

/// Time in which some process must end after SIGTERM, before all get SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// Options of `talpf launch`.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// Processes
    #[arg(short = 'n', long, value_name = "P", value_parser = number_within(Machine::RANKS))]
    processes: usize,

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
/// **Errors**: [`Error::Process`]; [`Error::Killed`]; [`Error::Signals`]; [`Error::Interrupted`].
pub(super) fn run(options: &Options) -> Result<Option<u8>, Error> {
    let (sender, events) = channel();
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Error::Signals)?;
    let handle = signals.handle();
    let forward = sender.clone();
    let forwarder = thread::spawn(move || {
        for _ in signals.forever() {
            // The receiver lives as long as the processes.
            let _ = forward.send(Event::Interrupt);
        }
    });
    let processes = options.processes as u32;
    let secret = random();
    let server = BootstrapServer::listen("127.0.0.1:0", processes, secret.as_bytes());
    let server = server.map_err(Error::Meet)?;
    let address = format!("127.0.0.1:{}", server.port().map_err(Error::Meet)?);
    let mut launch = Launch { processes: Vec::new(), is_ending: false, first: None };
    for process in 0..processes {
        let (server, secret) = (address.clone(), secret.clone());
        let place = Place { process, processes, server, secret, timeout: Place::TIMEOUT };
        match Process::start(&Launched::child(place), options, &sender) {
            Ok(process) => launch.processes.push(process),
            Err(source) => {
                launch.fail(Err(Error::Process { process, processes, source }));
                break;
            }
        }
    }
    // The processes that it serves know its error.
    thread::spawn(move || server.run(Place::TIMEOUT));
    launch.watch(&events);
    handle.close();
    // The thread ends with the handle.
    let _ = forwarder.join();
    launch.first.unwrap_or(Ok(None))
}

/// Returns a text that nobody guesses.
fn random() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}

/// News for the launcher.
enum Event {
    /// A process has ended, and its output is written.
    Ended(usize, io::Result<ExitStatus>),
    /// SIGINT or SIGTERM.
    Interrupt,
}

/// A process that was started.
struct Process {
    pidfd: OwnedFd,
    has_ended: bool,
}

impl Process {
    /// Starts the process at a place. The lines of its error stream get its number in front, except
    /// those of process 0.
    fn start(launched: &Launched, options: &Options, sender: &Sender<Event>) -> io::Result<Self> {
        let number = launched.place().process as usize;
        let errors = if number == 0 { Stdio::inherit() } else { Stdio::piped() };
        let (name, value) = launched.variable();
        let mut command = Command::new(env::current_exe()?);
        command.args(options.line()).env(name, value).stdin(Stdio::null()).stderr(errors);
        let mut child = command.spawn()?;
        let pidfd = match open(&child) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error);
            }
        };
        let sender = sender.clone();
        thread::spawn(move || {
            if let Some(errors) = child.stderr.take() {
                copy_lines(errors, number);
            }
            // The receiver lives until all processes have ended.
            let _ = sender.send(Event::Ended(number, child.wait()));
        });
        Ok(Self { pidfd, has_ended: false })
    }

    /// Sends a signal, which a process that has ended does not get.
    fn signal(&self, signal: Signal) {
        if !self.has_ended {
            // It fails only if the process has just ended.
            let _ = pidfd_send_signal(&self.pidfd, signal);
        }
    }
}

fn open(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other(format!("process id {}", child.id())))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Copies lines to the error stream, each with the number of its process.
fn copy_lines(from: impl Read, number: usize) {
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let mut text = format!("[{number}] ").into_bytes();
        text.extend(line);
        text.push(b'\n');
        // A closed error stream must not end the run.
        let _ = io::stderr().write_all(&text);
    }
}

/// The processes of a run.
struct Launch {
    processes: Vec<Process>,
    /// `true` once all are to end.
    is_ending: bool,
    /// Result of the first process that has failed.
    first: Option<Result<Option<u8>, Error>>,
}

impl Launch {
    /// Waits until all processes have ended.
    fn watch(&mut self, events: &Receiver<Event>) {
        while self.processes.iter().any(|process| !process.has_ended) {
            let event = if self.is_ending {
                events.recv_timeout(GRACE)
            } else {
                events.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match event {
                Ok(Event::Ended(number, status)) => self.ended(number, status),
                Ok(Event::Interrupt) => self.fail(Err(Error::Interrupted)),
                Err(_) => self.processes.iter().for_each(|process| process.signal(Signal::KILL)),
            }
        }
    }

    fn ended(&mut self, number: usize, status: io::Result<ExitStatus>) {
        if let Some(process) = self.processes.get_mut(number) {
            process.has_ended = true;
        }
        let (process, processes) = (number as u32, self.processes.len() as u32);
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => self.fail(match (status.code(), status.signal()) {
                (None, Some(signal)) => Err(Error::Killed { process, processes, signal }),
                (code, _) => Ok(Some(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
            }),
            Err(source) => self.fail(Err(Error::Process { process, processes, source })),
        }
    }

    /// Notes a failure, and ends the other processes.
    fn fail(&mut self, result: Result<Option<u8>, Error>) {
        self.first.get_or_insert(result);
        self.processes.iter().for_each(|process| process.signal(Signal::TERM));
        self.is_ending = true;
    }
}
