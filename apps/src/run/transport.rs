//! Where ranks are, and what carries data between them.

/// What a machine connects its ranks with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// Software verbs. All ranks are in this process.
    #[default]
    Verbs,
    /// MPI. Every rank is a process that `mpirun` has started.
    #[cfg(feature = "mpi")]
    Mpi {
        /// The rank of this process.
        rank: usize,
    },
}

impl Transport {
    /// Whether rank 0 is in this process: the one that has the result.
    pub fn has_first_rank(self) -> bool {
        match self {
            Self::Verbs => true,
            #[cfg(feature = "mpi")]
            Self::Mpi { rank } => rank == 0,
        }
    }
}
