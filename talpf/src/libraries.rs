//! The libraries that the ranks of a run have called and not all left yet.
//!
//! A library has a world `W` of its own, which the first rank that enters makes for all, and the last
//! one that leaves takes away.

use std::collections::BTreeMap;
use std::sync::Arc;

use talpf_primitives::Mutex;

use crate::error::Error;

/// The libraries of a run, by the number of the collective call that has entered them.
pub(crate) struct Libraries<W> {
    open: Mutex<BTreeMap<u64, Library<W>>>,
}

struct Library<W> {
    world: Arc<W>,
    /// Number of ranks that have not left.
    inside: u32,
}

impl<W> Libraries<W> {
    pub(crate) fn new() -> Self {
        Libraries { open: Mutex::new(BTreeMap::new()) }
    }

    /// Returns the world of a library that all `ranks` enter, and makes it if this is the first.
    ///
    /// **Errors**: that of `make`.
    pub(crate) fn enter(
        &self,
        number: u64,
        ranks: u32,
        make: impl FnOnce() -> Result<Arc<W>, Error>,
    ) -> Result<Arc<W>, Error> {
        let mut open = self.open.lock();
        if let Some(library) = open.get(&number) {
            return Ok(Arc::clone(&library.world));
        }
        let world = make()?;
        open.insert(number, Library { world: Arc::clone(&world), inside: ranks });
        Ok(world)
    }

    /// Leaves a library. Returns its world to the last rank that does.
    pub(crate) fn leave(&self, number: u64) -> Option<Arc<W>> {
        let mut open = self.open.lock();
        let library = open.get_mut(&number)?;
        library.inside -= 1;
        if library.inside > 0 { None } else { open.remove(&number).map(|library| library.world) }
    }

    /// Returns the worlds of all libraries.
    pub(crate) fn worlds(&self) -> Vec<Arc<W>> {
        self.open.lock().values().map(|library| Arc::clone(&library.world)).collect()
    }

    /// Takes away the libraries that ranks have not left, at the end of the run.
    pub(crate) fn drain(&self) -> impl Iterator<Item = Arc<W>> {
        std::mem::take(&mut *self.open.lock()).into_values().map(|library| library.world)
    }
}
