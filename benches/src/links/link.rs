//! A link: its end in this process, the process of the other end, and what the one asks of the other.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use ibverbs_sim::Rail;
use serde::{Deserialize, Serialize};

use super::{Wanted, cores, end::End, jacobi, join::join, program};
use crate::error::Error;

/// Request to the process at the other end. Between requests that process must not disturb others.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
enum Request {
    /// Serve a sample.
    Serve,
    /// Run a rank of a program, over a rail of its own.
    Run { number: u32, program: Program },
}

/// Program of two ranks.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
enum Program {
    Operations { steps: usize },
    Jacobi(jacobi::Size),
}

/// An end of a link in this process, and the process of the other one.
pub(super) struct Link {
    here: End,
    process: Child,
    /// Core of this process while it measures.
    core: usize,
    wanted: Wanted,
    folder: tempfile::TempDir,
    /// Number of programs so far.
    programs: u32,
}

impl Link {
    pub(super) fn start(wanted: Wanted, core: usize) -> Result<Self, Error> {
        let refused = |reason| Error::System { doing: "starting a peer", reason };
        let folder = tempfile::tempdir().map_err(refused)?;
        let program = std::env::current_exe().map_err(refused)?;
        let process = Command::new(program)
            .args(["links-peer", wanted.kind.name(), &core.to_string()])
            .arg(folder.path())
            .args(["--provider", &wanted.choice.to_string()])
            .stdin(Stdio::piped())
            .spawn()
            .map_err(refused)?;
        let here = End::join(folder.path(), &wanted, 0)?;
        Ok(Self { here, process, core, wanted, folder, programs: 0 })
    }

    /// Returns the name of the rail.
    pub(super) fn name(&self) -> &'static str {
        self.wanted.kind.name()
    }

    /// Measures while the peer serves.
    pub(super) fn sample(&mut self, measure: impl FnOnce(&mut End) -> f64) -> Result<f64, Error> {
        self.ask(Request::Serve)?;
        let here = &mut self.here;
        Ok(cores::on(&cores::only(self.core), || {
            let value = measure(here);
            here.stop();
            value
        }))
    }

    /// Measures supersteps, of which there are so many, puts and gets.
    pub(super) fn operations(&mut self, steps: usize) -> Result<program::Figures, Error> {
        self.run(Program::Operations { steps }, |rail| program::run(rail, steps))
    }

    /// Measures steps of Jacobi.
    pub(super) fn jacobi(&mut self, size: jacobi::Size) -> Result<jacobi::Outcome, Error> {
        let outcome = self.run(Program::Jacobi(size), |rail| jacobi::run(rail, size))?;
        // Rank 0 is here.
        Ok(outcome.unwrap_or_default())
    }

    /// Runs a program of which `run` is the part of this process.
    fn run<T>(
        &mut self,
        program: Program,
        run: impl FnOnce(Arc<dyn Rail>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.programs += 1;
        let folder = program_folder(self.folder.path(), self.programs)?;
        self.ask(Request::Run { number: self.programs, program })?;
        cores::on(&cores::only(self.core), || run(join(&folder, &self.wanted, 0)?))
    }

    fn ask(&mut self, request: Request) -> Result<(), Error> {
        let refused = |reason| Error::System { doing: "asking a peer", reason };
        let Some(stdin) = &mut self.process.stdin else { return Ok(()) };
        let mut line = serde_json::to_vec(&request).map_err(|error| refused(error.into()))?;
        line.push(b'\n');
        stdin.write_all(&line).map_err(refused)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The peer ends with its input. If it has ended otherwise it has said why.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Runs the other end of a link, which [`run`](super::run) has started, until this one ends.
///
/// **Errors**: those of [`run`](super::run).
pub fn run_peer(folder: &Path, wanted: &Wanted, other_core: usize) -> Result<(), Error> {
    cores::avoid(other_core);
    let mut here = End::join(folder, wanted, 1)?;
    for line in std::io::stdin().lines() {
        let refused = |reason| Error::System { doing: "reading a request", reason };
        let request = serde_json::from_str(&line.map_err(refused)?);
        match request.map_err(|error| refused(error.into()))? {
            Request::Serve => here.serve(),
            Request::Run { number, program } => {
                let rail = join(&program_folder(folder, number)?, wanted, 1)?;
                match program {
                    Program::Operations { steps } => program::run(rail, steps).map(drop)?,
                    Program::Jacobi(size) => jacobi::run(rail, size).map(drop)?,
                }
            }
        }
    }
    Ok(())
}

/// Returns the folder in which the processes of a program meet.
fn program_folder(folder: &Path, number: u32) -> Result<PathBuf, Error> {
    let folder = folder.join(number.to_string());
    let made = fs::create_dir_all(&folder);
    made.map_err(|reason| Error::System { doing: "making a folder", reason })?;
    Ok(folder)
}
