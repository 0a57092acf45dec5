//! The ids of one rank: those that its program names, and private ones, of listeners.

use std::ops::Range;
use std::sync::Arc;

use super::id::Id;
use super::listener::Listener;

/// First of the private ids, which no program names.
pub(crate) const FIRST_PRIVATE: u32 = 1 << 31;
/// Id of puts whose notification nobody takes, at every rank.
pub(super) const QUIET: u32 = FIRST_PRIVATE;

/// The ids of one rank. Those of a program exist once they are used, private ones once they are
/// added.
pub(super) struct Ids {
    program: Vec<Id>,
    private: Vec<Private>,
}

/// An id that no program names.
#[derive(Default)]
struct Private {
    of_id: Id,
    /// The end that takes in the notifications. Without one they are for nobody.
    listener: Option<Arc<dyn Listener>>,
}

impl Default for Ids {
    fn default() -> Self {
        let mut ids = Ids { program: Vec::new(), private: Vec::new() };
        // The first one, `QUIET`, has no listener.
        ids.add_listener();
        ids
    }
}

impl Ids {
    /// Returns the number of ids of the program that exist.
    pub(super) fn used(&self) -> u32 {
        self.program.len() as u32
    }

    /// Adds an id for a listener.
    pub(super) fn add_listener(&mut self) -> u32 {
        self.private.push(Private::default());
        FIRST_PRIVATE + (self.private.len() as u32 - 1)
    }

    fn private(&self, id: u32) -> Option<&Private> {
        self.private.get(id.checked_sub(FIRST_PRIVATE)? as usize)
    }

    /// Returns the place of the listener of an id.
    pub(super) fn listener_mut(&mut self, id: u32) -> Option<&mut Option<Arc<dyn Listener>>> {
        let private = self.private.get_mut(id.checked_sub(FIRST_PRIVATE)? as usize)?;
        Some(&mut private.listener)
    }

    /// Returns the listener of an id.
    pub(super) fn listener(&self, id: u32) -> Option<&Arc<dyn Listener>> {
        self.private(id)?.listener.as_ref()
    }

    /// Iterates over all listeners.
    pub(super) fn listeners(&self) -> impl Iterator<Item = &Arc<dyn Listener>> {
        self.private.iter().filter_map(|private| private.listener.as_ref())
    }

    /// Returns `true` if the id is a private one, which was added here.
    pub(super) fn has_private(&self, id: u32) -> bool {
        self.private(id).is_some()
    }

    /// Returns the state of an id: a private one that was added here, or one of the program.
    #[inline]
    pub(super) fn of(&mut self, id: u32) -> &mut Id {
        let index = match id.checked_sub(FIRST_PRIVATE) {
            Some(index) => return &mut self.private[index as usize].of_id,
            None => id as usize,
        };
        if self.program.len() <= index {
            self.program.resize_with(index + 1, Id::default);
        }
        &mut self.program[index]
    }

    /// Iterates over those of some ids of the program that exist.
    pub(super) fn among(&mut self, ids: Range<u32>) -> impl Iterator<Item = &mut Id> {
        let end = (ids.end as usize).min(self.program.len());
        self.program[(ids.start as usize).min(end)..end].iter_mut()
    }

    /// Iterates over all ids that exist.
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, &Id)> {
        let private = self.private.iter().map(|private| &private.of_id);
        (0..).zip(&self.program).chain((FIRST_PRIVATE..).zip(private))
    }

    /// As `each`, to be changed.
    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = (u32, &mut Id)> {
        let private = self.private.iter_mut().map(|private| &mut private.of_id);
        (0..).zip(&mut self.program).chain((FIRST_PRIVATE..).zip(private))
    }
}
