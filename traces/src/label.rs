//! Names of tasks, stored once and recorded as small numbers.

use std::collections::HashMap;
use std::sync::Arc;

/// Number of a name, given by [`Recorder::label`](crate::Recorder::label).
///
/// Only meaningful for the recorder that gave it; in another one it may stand for another name, or
/// for [`UNNAMED`](Self::UNNAMED).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(u32);

impl LabelId {
    /// Number of tasks without a name, valid in every recorder.
    pub const UNNAMED: Self = Self(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of the name at an index.
    pub(crate) const fn of(index: u32) -> Self {
        Self(index)
    }
}

/// Names of one recorder.
#[derive(Debug)]
pub(crate) struct LabelTable {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, LabelId>,
}

impl Default for LabelTable {
    fn default() -> Self {
        let mut table = Self { names: Vec::new(), ids: HashMap::new() };
        table.intern("(unnamed)");
        table
    }
}

impl LabelTable {
    /// Returns the number of `name`, and adds the name if it is new. A table of 2^31 - 2 names, all
    /// that Paraver can label, accepts no more.
    pub(crate) fn intern(&mut self, name: &str) -> LabelId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let next = self.names.len();
        if next >= i32::MAX as usize - 1 {
            return LabelId::UNNAMED;
        }
        let (id, name) = (LabelId(next as u32), Arc::from(name));
        self.names.push(Arc::clone(&name));
        self.ids.insert(name, id);
        id
    }

    /// Returns the names; an id is an index.
    pub(crate) fn names(&self) -> &[Arc<str>] {
        &self.names
    }
}
