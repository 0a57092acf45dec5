//! Processes that were started, and their ends.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use talpf_apps::Error;
use talpf_apps::run::{Launched, Membership};
use talpf_runtime::Clock;

use super::event::Event;
use super::forwarded_signal::ForwardedSignal;

/// Time in which some process must end after SIGTERM, before all get SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// Processes that this one has started, of a run.
pub(super) struct Children {
    /// Number of processes of the run.
    processes: u32,
    /// `true` if a process that fails ends no others.
    keep_going: bool,
    children: Vec<Started>,
    /// Signals by which the launcher has ended all that still ran; none before all are to end.
    sent: Vec<Signal>,
    clock: Clock,
    /// Time at which all get SIGKILL; `None` before all are to end.
    kill_at: Option<Duration>,
    /// Result of the first process that has failed.
    first: Option<Result<Option<u8>, Error>>,
}

/// A process that was started.
struct Started {
    process: u32,
    pidfd: OwnedFd,
    has_ended: bool,
    /// Input of a command that runs the process on another machine, which is open until one of the two
    /// ends.
    input: Option<ChildStdin>,
}

impl Children {
    pub(super) fn new(processes: u32, keep_going: bool) -> Self {
        let (children, sent) = (Vec::new(), Vec::new());
        let clock = Clock::start();
        Self { processes, keep_going, children, sent, clock, kill_at: None, first: None }
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
            // Signals to a process that does not read are lost rather than waited for.
            let _ = ioctl_fionbio(&*stdin, true);
        }
        let sender = sender.clone();
        thread::spawn(move || {
            if let Some(errors) = child.stderr.take() {
                copy_lines(errors, process);
            }
            // The receiver lives until all processes have ended.
            let _ = sender.send(Event::Ended(process, child.wait()));
        });
        self.children.push(Started { process, pidfd, has_ended: false, input: stdin });
        Ok(())
    }

    /// Waits until all processes have ended.
    pub(super) fn watch(&mut self, events: &Receiver<Event>) {
        while self.children.iter().any(|child| !child.has_ended) {
            let event = match self.kill_at {
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(time) => events.recv_timeout(time.saturating_sub(self.clock.now())),
            };
            match event {
                Ok(Event::Ended(process, status)) => self.ended(process, status),
                Ok(Event::Missing(error)) => self.end(Err(Error::Meet(error))),
                Ok(Event::Interrupt) => self.end(Err(Error::Interrupted)),
                Ok(Event::Forward(forwarded)) => self.forward(forwarded),
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
            child.input = None;
        }
        if self.kill_at.is_some() {
            self.kill_later();
        }
        let processes = self.processes;
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => match (status.code(), status.signal()) {
                (None, Some(signal)) => {
                    let is_sent = self.sent.iter().any(|sent| sent.as_raw() == signal);
                    if matches!(self.first, Some(Ok(_))) && !is_sent && !self.keep_going {
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

    /// Notes a failure, and ends the other processes unless they keep going.
    fn fail(&mut self, result: Result<Option<u8>, Error>) {
        if self.keep_going || !self.sent.is_empty() {
            self.first.get_or_insert(result);
        } else {
            self.end(result);
        }
    }

    /// Ends all processes, with this result unless one has failed before.
    pub(super) fn end(&mut self, result: Result<Option<u8>, Error>) {
        self.first.get_or_insert(result);
        self.signal(Signal::TERM);
    }

    /// Sends a signal that ends processes, which those that have ended do not get.
    fn signal(&mut self, signal: Signal) {
        self.sent.push(signal);
        self.kill_later();
        for child in self.children.iter_mut().filter(|child| !child.has_ended) {
            child.signal(signal);
            if signal == Signal::KILL {
                // Processes of a command that has not passed SIGTERM on end with their input.
                child.input = None;
            }
        }
    }

    /// Restarts the time after which all get SIGKILL.
    fn kill_later(&mut self) {
        self.kill_at = Some(self.clock.now() + GRACE);
    }

    /// Passes a signal on to all processes.
    fn forward(&mut self, forwarded: ForwardedSignal) {
        for child in self.children.iter_mut().filter(|child| !child.has_ended) {
            match &mut child.input {
                // A command such as `ssh` would die of the signal, and not pass it on.
                Some(input) => drop(input.write_all(forwarded.line().as_bytes())),
                None => child.signal(forwarded.signal()),
            }
        }
    }
}

impl Started {
    fn signal(&self, signal: Signal) {
        // It fails only if the process has just ended.
        let _ = pidfd_send_signal(&self.pidfd, signal);
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
        let mut children = Children::new(3, false);
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
