//! Location of the ranks, and transport between them.

use ibverbs_sim::bootstrap::Connections;

/// Transport between the ranks of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Software verbs, with all ranks in this process.
    #[default]
    Verbs,
    /// Software verbs over a rail, with as many ranks in each process.
    Processes {
        /// Number of this process.
        process: usize,
        /// Number of processes.
        processes: usize,
        /// Connections between the processes, if we have chosen them.
        connections: Option<Connections>,
    },
    /// MPI, with as many ranks in each process that `mpirun` has started.
    #[cfg(feature = "mpi")]
    Mpi {
        /// Number of this process.
        process: usize,
        /// Number of processes.
        processes: usize,
    },
}

impl Transport {
    /// Returns `true` if rank 0, which has the result, is in this process.
    pub fn has_first_rank(self) -> bool {
        self.process().is_none_or(|(process, _)| process == 0)
    }

    /// Returns the number of this process, and the number of processes, if the ranks are in several.
    pub(super) fn process(self) -> Option<(usize, usize)> {
        let process = match self {
            Self::Verbs => (0, 1),
            Self::Processes { process, processes, .. } => (process, processes),
            #[cfg(feature = "mpi")]
            Self::Mpi { process, processes } => (process, processes),
        };
        Some(process).filter(|(_, processes)| *processes > 1)
    }

    /// Returns `true` if MPI connects the processes.
    pub(super) fn is_mpi(self) -> bool {
        #[cfg(feature = "mpi")]
        if matches!(self, Self::Mpi { .. }) {
            return true;
        }
        false
    }

    /// Returns the connections between processes, if we have chosen them.
    pub fn connections(self) -> Option<Connections> {
        match self {
            Self::Processes { connections, .. } => connections,
            _ => None,
        }
    }
}
