//! Processes that were started, and their ends.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use ibverbs_sim::bootstrap::BootstrapError;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use talpf_apps::Error;
use talpf_apps::run::{Launched, Membership};

/// Time in which some process must end after SIGTERM, before all get SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// News for a launcher.
pub(super) enum Event {
    /// A process has ended, and its output is written.
    Ended(u32, io::Result<ExitStatus>),
    /// Processes have not met in time.
    Missing(BootstrapError),
    /// SIGINT or SIGTERM, or the end of the launcher on another machine.
    Interrupt,
}

/// Thread that makes events of SIGINT and SIGTERM.
pub(super) struct Forwarder {
    handle: Handle,
    thread: thread::JoinHandle<()>,
}

impl Forwarder {
    /// Starts the thread.
    ///
    /// **Errors**: [`Error::Signals`].
    pub(super) fn start(sender: &Sender<Event>) -> Result<Self, Error> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Error::Signals)?;
        let (handle, sender) = (signals.handle(), sender.clone());
        let thread = thread::spawn(move || {
            for _ in signals.forever() {
                // The receiver lives as long as the processes.
                let _ = sender.send(Event::Interrupt);
            }
        });
        Ok(Self { handle, thread })
    }

    /// Ends the thread.
    pub(super) fn end(self) {
        self.handle.close();
        let _ = self.thread.join();
    }
}

/// Processes that this one has started, of a run.
pub(super) struct Children {
    /// Number of processes of the run.
    processes: u32,
    children: Vec<Started>,
    /// Signals that were sent to all that still ran; none before all are to end.
    sent: Vec<Signal>,
    /// Result of the first process that has failed.
    first: Option<Result<Option<u8>, Error>>,
}

/// A process that was started.
struct Started {
    process: u32,
    pidfd: OwnedFd,
    has_ended: bool,
    /// Input of the process, which is open until the launcher ends.
    _input: Option<ChildStdin>,
}

impl Children {
    pub(super) fn new(processes: u32) -> Self {
        Self { processes, children: Vec::new(), sent: Vec::new(), first: None }
    }

    /// Starts a process, which gets `input`. If its error stream is piped, its lines get the number
    /// in front.
    pub(super) fn start(
        &mut self,
        process: u32,
        mut command: Command,
        input: Option<Vec<u8>>,
        errors: Stdio,
        sender: &Sender<Event>,
    ) -> io::Result<()> {
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = command.stdin(stdin).stderr(errors).spawn()?;
        let pidfd = match open(&child) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                child.kill()?;
                child.wait()?;
                return Err(error);
            }
        };
        let mut stdin = child.stdin.take();
        if let (Some(stdin), Some(input)) = (&mut stdin, input) {
            // A process that does not read it says why as it ends.
            let _ = stdin.write_all(&input);
        }
        let sender = sender.clone();
        thread::spawn(move || {
            if let Some(errors) = child.stderr.take() {
                copy_lines(errors, process);
            }
            // The receiver lives until all processes have ended.
            let _ = sender.send(Event::Ended(process, child.wait()));
        });
        self.children.push(Started { process, pidfd, has_ended: false, _input: stdin });
        Ok(())
    }

    /// Waits until all processes have ended.
    pub(super) fn watch(&mut self, events: &Receiver<Event>) {
        while self.children.iter().any(|child| !child.has_ended) {
            let event = if self.sent.is_empty() {
                events.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                events.recv_timeout(GRACE)
            };
            match event {
                Ok(Event::Ended(process, status)) => self.ended(process, status),
                Ok(Event::Missing(error)) => self.fail(Err(Error::Meet(error))),
                Ok(Event::Interrupt) => self.fail(Err(Error::Interrupted)),
                Err(_) => self.signal(Signal::KILL),
            }
        }
    }

    /// Returns the result of the first process that has failed.
    pub(super) fn result(self) -> Result<Option<u8>, Error> {
        self.first.unwrap_or(Ok(None))
    }

    fn ended(&mut self, process: u32, status: io::Result<ExitStatus>) {
        let child = self.children.iter_mut().find(|child| child.process == process);
        if let Some(child) = child {
            child.has_ended = true;
        }
        let processes = self.processes;
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => match (status.code(), status.signal()) {
                (None, Some(signal)) => {
                    let is_sent = self.sent.iter().any(|sent| sent.as_raw() == signal);
                    if matches!(self.first, Some(Ok(_))) && !is_sent {
                        // Others have failed because of it, and their ends were seen before.
                        self.first = None;
                    }
                    self.fail(Err(Error::Killed { process, processes, signal }));
                }
                (code, _) => {
                    let code = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
                    self.fail(Ok(Some(code)));
                }
            },
            Err(source) => self.fail(Err(Error::Process { process, processes, source })),
        }
    }

    /// Notes a failure, and ends the other processes.
    pub(super) fn fail(&mut self, result: Result<Option<u8>, Error>) {
        self.first.get_or_insert(result);
        self.signal(Signal::TERM);
    }

    /// Sends a signal, which processes that have ended do not get.
    fn signal(&mut self, signal: Signal) {
        self.sent.push(signal);
        for child in self.children.iter().filter(|child| !child.has_ended) {
            // It fails only if the process has just ended.
            let _ = pidfd_send_signal(&child.pidfd, signal);
        }
    }
}

/// Variable by which libfabric watches no memory: what it uses is registered explicitly.
const MONITOR: &str = "FI_MR_CACHE_MONITOR";

/// Returns the command of a process of this machine.
pub(super) fn local<'a>(
    member: Membership,
    line: impl Iterator<Item = &'a OsStr>,
) -> io::Result<Command> {
    let (name, value) = Launched::child(member).variable();
    let mut command = Command::new(env::current_exe()?);
    command.args(line).env(name, value);
    if env::var_os(MONITOR).is_none() {
        command.env(MONITOR, "disabled");
    }
    Ok(command)
}

fn open(child: &Child) -> io::Result<OwnedFd> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other(format!("process id {}", child.id())))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Copies lines to the error stream, each with the number of its process.
fn copy_lines(from: impl Read, process: u32) {
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let mut text = format!("[{process}] ").into_bytes();
        text.extend(line);
        text.push(b'\n');
        // A closed error stream must not end the run.
        let _ = io::stderr().write_all(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of processes whose ends were seen in this order: an exit code times 256, or a
    /// signal.
    fn result(ends: &[(u32, i32)]) -> String {
        let mut children = Children::new(3);
        for &(process, status) in ends {
            children.ended(process, Ok(ExitStatus::from_raw(status)));
        }
        match children.result() {
            Ok(code) => format!("code {code:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_process_that_was_killed_is_the_cause_of_failures_that_are_seen_before() {
        let killed = "process 1 of 3 was ended by signal 9";
        assert_eq!(result(&[(1, 9), (0, 256)]), killed);
        assert_eq!(result(&[(0, 256), (1, 9), (2, 512)]), killed);
    }

    #[test]
    fn a_process_that_the_launcher_has_ended_is_no_cause() {
        assert_eq!(result(&[(2, 512), (0, 15), (1, 256)]), "code Some(2)");
        assert_eq!(result(&[(2, 0), (0, 0), (1, 0)]), "code None");
    }
}
