//! The same programs in C over the MPIs of this machine.

use std::process::Command;
use std::time::Duration;

use super::sizes::Value;
use crate::error::Error;
use crate::peer::{self, Program};

/// An MPI and the program built with it.
#[derive(Debug)]
pub(super) struct Mpi {
    flavour: Flavour,
    program: Program,
}

/// How an MPI is called and started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flavour {
    /// In reports.
    pub(super) name: &'static str,
    /// In reports where all threads may call it.
    #[cfg(feature = "mpi")]
    multiple: &'static str,
    compiler: &'static str,
    launcher: &'static str,
    /// Options of the launcher for a core for each rank.
    pinned: &'static [&'static str],
    /// Options for more ranks than cores.
    crowded: &'static [&'static str],
}

/// The MPIs that Debian can install side by side.
pub(super) const FLAVOURS: [Flavour; 2] = [
    Flavour {
        name: "mpich",
        #[cfg(feature = "mpi")]
        multiple: "mpich_multiple",
        compiler: "mpicc.mpich",
        launcher: "mpirun.mpich",
        pinned: &["-bind-to", "core"],
        crowded: &["-bind-to", "none"],
    },
    Flavour {
        name: "openmpi",
        #[cfg(feature = "mpi")]
        multiple: "openmpi_multiple",
        compiler: "mpicc.openmpi",
        launcher: "mpirun.openmpi",
        pinned: &["--bind-to", "core"],
        crowded: &["--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
    },
];

/// Longer than a run takes; an MPI whose ranks spin for each other's cores is given up then.
const LIMIT: Duration = Duration::from_secs(30);

impl Mpi {
    /// Compiles the program.
    ///
    /// **Errors**: the MPI is not installed.
    pub(super) fn compile(flavour: Flavour) -> Result<Self, Error> {
        let source = include_str!("../../peers/two_sided.c");
        Ok(Mpi { flavour, program: Program::compile(flavour.compiler, &["-O2"], source)? })
    }

    /// The name in reports.
    pub(super) fn name(&self) -> &'static str {
        self.flavour.name
    }

    /// The MPI and its version, as it names itself.
    ///
    /// **Errors**: the program does not run.
    pub(super) fn version(&self) -> Result<String, Error> {
        let output = peer::run(peer::limited(self.program.path(), LIMIT).arg("version"))?;
        let name: String = output.value("library")?;
        Ok(name.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// What `ranks` ranks measure.
    ///
    /// **Errors**: the run fails or takes too long.
    pub(super) fn sample(
        &self,
        ranks: u32,
        cores: usize,
        budget: Duration,
    ) -> Result<Vec<Value>, Error> {
        values(self.flavour.launch(ranks, cores).arg(self.program.path()).arg(millis(budget)))
    }

    /// The name in reports where all threads may call it.
    #[cfg(feature = "mpi")]
    pub(super) fn name_of_multiple(&self) -> &'static str {
        self.flavour.multiple
    }

    /// As [`Mpi::sample`], for two ranks whose threads may all call MPI.
    #[cfg(feature = "mpi")]
    pub(super) fn sample_multiple(
        &self,
        cores: usize,
        budget: Duration,
    ) -> Result<Vec<Value>, Error> {
        let mut command = self.flavour.launch(2, cores);
        values(command.arg(self.program.path()).args([&millis(budget), "multiple"]))
    }

    /// What two ranks of this command measure over this MPI.
    ///
    /// **Errors**: as [`Mpi::sample`]; this command was built with another MPI.
    #[cfg(feature = "mpi")]
    pub(super) fn sample_ours(&self, cores: usize, budget: Duration) -> Result<Vec<Value>, Error> {
        let ours = std::env::current_exe();
        let ours =
            ours.map_err(|reason| Error::System { doing: "finding this command", reason })?;
        values(self.flavour.launch(2, cores).arg(ours).args(["mpi-rank", &millis(budget)]))
    }
}

impl Flavour {
    /// The launcher with its options, for a program to be added.
    fn launch(&self, ranks: u32, cores: usize) -> Command {
        let mut command = peer::limited(self.launcher, LIMIT);
        let placement = if ranks as usize <= cores { self.pinned } else { self.crowded };
        command.args(["-n", &ranks.to_string()]).args(placement);
        // Open MPI asks root to confirm, twice; in a container everybody is root.
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
