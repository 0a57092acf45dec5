//! Measurement of the same programs in C over the MPIs of this machine.

use std::process::Command;
use std::time::Duration;

use super::sizes::Value;
use crate::error::Error;
use crate::peer::{self, Program};

/// MPI and the program built with it.
#[derive(Debug)]
pub(super) struct Mpi {
    flavour: Flavour,
    program: Program,
}

/// Commands and options of an MPI.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flavour {
    /// Name in reports.
    pub(super) name: &'static str,
    /// Name in reports of measurements at `MPI_THREAD_MULTIPLE`.
    #[cfg(feature = "mpi")]
    multiple: &'static str,
    compiler: &'static str,
    launcher: &'static str,
    /// Options of the launcher that give each rank a core of its own.
    pinned: &'static [&'static str],
    /// Options of the launcher for more ranks than cores.
    oversubscribed: &'static [&'static str],
}

/// MPIs that Debian can install side by side.
pub(super) const FLAVOURS: [Flavour; 2] = [
    Flavour {
        name: "mpich",
        #[cfg(feature = "mpi")]
        multiple: "mpich_multiple",
        compiler: "mpicc.mpich",
        launcher: "mpirun.mpich",
        pinned: &["-bind-to", "core"],
        oversubscribed: &["-bind-to", "none"],
    },
    Flavour {
        name: "openmpi",
        #[cfg(feature = "mpi")]
        multiple: "openmpi_multiple",
        compiler: "mpicc.openmpi",
        launcher: "mpirun.openmpi",
        pinned: &["--bind-to", "core"],
        oversubscribed: &[
            "--bind-to",
            "none",
            "--oversubscribe",
            "--mca",
            "mpi_yield_when_idle",
            "1",
        ],
    },
];

/// Time limit of a run, longer than any successful one; ranks that spin and take the cores from
/// each other may exceed it.
const LIMIT: Duration = Duration::from_secs(30);

impl Mpi {
    /// Compiles the program.
    ///
    /// **Errors**: MPI not installed.
    pub(super) fn compile(flavour: Flavour) -> Result<Self, Error> {
        let source = include_str!("../../peers/two_sided.c");
        Ok(Mpi { flavour, program: Program::compile(flavour.compiler, &["-O2"], source)? })
    }

    /// Returns the name in reports.
    pub(super) fn name(&self) -> &'static str {
        self.flavour.name
    }

    /// Returns the name and version that the MPI reports.
    ///
    /// **Errors**: program failed.
    pub(super) fn version(&self) -> Result<String, Error> {
        let output = peer::run(peer::limited(self.program.path(), LIMIT).arg("version"))?;
        let name: String = output.value("library")?;
        Ok(name.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Measures `ranks` ranks.
    ///
    /// **Errors**: run failed or timed out.
    pub(super) fn sample(
        &self,
        ranks: u32,
        cores: usize,
        budget: Duration,
    ) -> Result<Vec<Value>, Error> {
        values(self.flavour.launch(ranks, cores).arg(self.program.path()).arg(millis(budget)))
    }

    /// Returns the name in reports of measurements at `MPI_THREAD_MULTIPLE`.
    #[cfg(feature = "mpi")]
    pub(super) fn name_of_multiple(&self) -> &'static str {
        self.flavour.multiple
    }

    /// Measures two ranks at `MPI_THREAD_MULTIPLE`.
    #[cfg(feature = "mpi")]
    pub(super) fn sample_multiple(
        &self,
        cores: usize,
        budget: Duration,
    ) -> Result<Vec<Value>, Error> {
        let mut command = self.flavour.launch(2, cores);
        values(command.arg(self.program.path()).args([&millis(budget), "multiple"]))
    }

    /// Measures two ranks of this command over this MPI.
    ///
    /// **Errors**: those of [`Mpi::sample`]; this command was built with another MPI.
    #[cfg(feature = "mpi")]
    pub(super) fn sample_ours(&self, cores: usize, budget: Duration) -> Result<Vec<Value>, Error> {
        let ours = std::env::current_exe();
        let ours =
            ours.map_err(|reason| Error::System { doing: "finding this command", reason })?;
        values(self.flavour.launch(2, cores).arg(ours).args(["mpi-rank", &millis(budget)]))
    }
}

impl Flavour {
    /// Creates the command of the launcher with its options; the caller appends the program.
    fn launch(&self, ranks: u32, cores: usize) -> Command {
        let mut command = peer::limited(self.launcher, LIMIT);
        let placement = if ranks as usize <= cores { self.pinned } else { self.oversubscribed };
        command.args(["-n", &ranks.to_string()]).args(placement);
        // Open MPI asks root to confirm, twice; in a container every user is root.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }
}

fn millis(budget: Duration) -> String {
    budget.as_millis().max(1).to_string()
}

fn values(command: &mut Command) -> Result<Vec<Value>, Error> {
    let output = peer::run(command)?;
    let values = output.values()?;
    Ok(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_compiles_with_every_installed_mpi() {
        for flavour in FLAVOURS {
            match Mpi::compile(flavour).and_then(|mpi| mpi.version()) {
                Ok(version) => assert!(version.contains("MPI"), "{version}"),
                Err(Error::NotInstalled { command }) => eprintln!("no {command}: nothing to check"),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
