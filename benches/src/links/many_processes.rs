//! More processes than cores: the time until they have met, and that of their supersteps.
//!
//! The processes are started as a launcher starts them, and meet at its server; they share memory. Each has a rank,
//! which puts 8 bytes into a window of the next one, round a ring.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Error as IoError};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ibverbs_sim::OfiChoice;
use ibverbs_sim::bootstrap::{
    BootstrapError, BootstrapServer, Fabric, PEER_TIMEOUT, TcpBootstrap, connect,
};
use talpf::{Config, hook_on_rail};
use talpf_apps::run::{Launched, Membership};

use super::join::TIMEOUT;
use super::program;
use crate::error::Error;

/// Number of processes.
pub(super) const PROCESSES: u32 = 8;
/// Line of a process that has met all others.
const MET: &str = "met";

/// Figures of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// Time until all processes have met, beyond that of as many processes that do nothing.
    pub(super) start_ms: f64,
    /// Time of a superstep.
    pub(super) superstep_us: f64,
}

/// Runs the processes on the cores of this thread, with so many supersteps.
pub(super) fn run(steps: usize) -> Result<Figures, Error> {
    let idle = start_idle()?;
    let start = Instant::now();
    let word = || RandomState::new().build_hasher().finish();
    let secret = format!("{:016x}{:016x}", word(), word());
    let server = BootstrapServer::listen("127.0.0.1:0", PROCESSES, secret.as_bytes());
    let server = server.map_err(not_met)?;
    let address = format!("127.0.0.1:{}", server.port().map_err(not_met)?);
    let mut members = (0..PROCESSES)
        .map(|process| Member::start(process, &address, &secret, steps))
        .collect::<Result<Vec<_>, _>>()?;
    // A process that does not come is named by the others.
    let server = thread::spawn(move || server.run(TIMEOUT));
    for member in &mut members {
        member.line()?;
    }
    let met = start.elapsed();
    let superstep = members[0].line()?;
    for member in &mut members {
        member.end()?;
    }
    if let Ok(served) = server.join() {
        served.map_err(not_met)?;
    }
    let superstep_us = superstep.parse().map_err(|_| garbled(&superstep))?;
    Ok(Figures { start_ms: (met.as_secs_f64() - idle.as_secs_f64()) * 1e3, superstep_us })
}

/// Returns the time in which as many processes start and end that do nothing.
fn start_idle() -> Result<Duration, Error> {
    let failed = |reason| Error::System { doing: "starting `true`", reason };
    let start = Instant::now();
    let started = (0..PROCESSES).map(|_| Command::new("true").spawn());
    for mut process in started.collect::<Result<Vec<_>, _>>().map_err(failed)? {
        process.wait().map_err(failed)?;
    }
    Ok(start.elapsed())
}

/// A process that was started.
struct Member {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Member {
    fn start(process: u32, server: &str, secret: &str, steps: usize) -> Result<Self, Error> {
        let failed = |reason| Error::System { doing: "starting a process", reason };
        let (variable, value) = Launched::child(Membership {
            process,
            processes: PROCESSES,
            server: server.to_owned(),
            secret: secret.to_owned(),
            timeout: TIMEOUT,
        })
        .variable();
        let mut process = Command::new(std::env::current_exe().map_err(failed)?)
            .args([COMMAND, &steps.to_string()])
            .env(variable, value)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let missing = || failed(std::io::ErrorKind::BrokenPipe.into());
        let output = BufReader::new(process.stdout.take().ok_or_else(missing)?);
        Ok(Self { process, output })
    }

    /// Waits for the next line. One that has failed has said why.
    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.map_err(|reason| Error::System { doing: "reading from a process", reason })?;
        match line.strip_suffix('\n') {
            Some(line) => Ok(line.to_owned()),
            None => Err(garbled(&line)),
        }
    }

    fn end(&mut self) -> Result<(), Error> {
        let ended = self.process.wait();
        let status = ended.map_err(|reason| Error::System { doing: "ending a process", reason })?;
        match status.success() {
            true => Ok(()),
            false => Err(Error::Failed { command: COMMAND.into(), status, output: String::new() }),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // It has ended, unless something else has failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Name of the command that [`run_member`] carries out.
const COMMAND: &str = "links-member";

/// Runs a process that [`run`](super::run) has started, with so many supersteps.
///
/// **Errors**: it was started otherwise; the processes do not meet; those of the supersteps.
pub fn run_member(steps: usize) -> Result<(), Error> {
    let launched = Launched::from_environment()?;
    let launched = launched.ok_or_else(|| {
        let reason = IoError::other("it is started by `talpf-bench links` alone");
        Error::System { doing: "joining other processes", reason }
    })?;
    let Membership { process, processes, server, secret, timeout } = launched.membership();
    let (secret, settings) = (secret.as_bytes(), &[]);
    let joined = TcpBootstrap::join(server, *process, *processes, secret, settings, *timeout);
    let connected = joined.and_then(|mut bootstrap| {
        connect(&mut bootstrap, Fabric::Auto, &OfiChoice::default(), PEER_TIMEOUT)
    });
    let rail = connected.map_err(not_met)?.rail;
    crate::print_line::print_line(MET);
    let mut config = Config::default();
    config.runtime.workers = 1;
    let us = hook_on_rail(rail, config, |ctx| program::supersteps(ctx, steps))?;
    if *process == 0 {
        crate::print_line::print_line(us);
    }
    Ok(())
}

fn not_met(error: BootstrapError) -> Error {
    Error::System { doing: "meeting other processes", reason: IoError::other(error) }
}

fn garbled(line: &str) -> Error {
    Error::Garbled { command: COMMAND.to_owned(), line: line.to_owned() }
}
