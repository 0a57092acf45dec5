//! A process that MPI has started, from its meeting with the others to the start of its run.
//!
//! MPI ends in all processes together, so that one which ends for a mistake of its own would wait for the others,
//! and they for its first message. Therefore all exchange a word in between, those that begin their run and those
//! that leave.

use ibverbs_sim::bootstrap::BootstrapError;
use tampi_shim::mpi::Library;

use crate::Error;

/// Word of a process that leaves; those that begin have none.
const LEAVES: &[u8] = b"leaves";

/// Process that MPI has started, which has met the others. Dropping it says that it leaves, and waits for
/// the word of all.
pub(super) struct MpiMember(Option<Library>);

impl MpiMember {
    pub(super) fn new(library: Library) -> Self {
        Self(Some(library))
    }

    /// Returns the library for the run of this process. Blocks until all processes begin theirs or leave.
    ///
    /// **Errors**: [`Error::Meet`] if a process leaves; [`Error::Tampi`].
    pub(super) fn begin(mut self) -> Result<Library, Error> {
        let library = self.0.take().ok_or(Error::NotJoined)?;
        let words = library.all_gather(&[]).map_err(tampi_shim::Error::from)?;
        match (0..).zip(&words).find(|(_, word)| !word.is_empty()) {
            Some((process, _)) => Err(Error::Meet(BootstrapError::Left { process })),
            None => Ok(library),
        }
    }
}

impl Drop for MpiMember {
    fn drop(&mut self) {
        if let Some(library) = &self.0 {
            // Nobody can act on an error at the end.
            let _ = library.all_gather(LEAVES);
        }
    }
}
