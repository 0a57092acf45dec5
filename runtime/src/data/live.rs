//! All existing arrays, by address.
//!
//! A report on a running program may read the address of an array from a record that is being
//! reused: the address is searched for here and never followed.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::Mutex;

use super::{ArrayLabel, Rect};

static LIVE: LazyLock<Mutex<HashMap<usize, ArrayLabel>>> = LazyLock::new(Mutex::default);

/// Adds an array, or changes its label.
pub(super) fn add(address: usize, label: ArrayLabel) {
    LIVE.lock().insert(address, label);
}

pub(super) fn remove(address: usize) {
    LIVE.lock().remove(&address);
}

impl ArrayLabel {
    /// Finds the label of the array with number `id`. If there is no such array any more, the label
    /// has no name and no element.
    ///
    /// **Cost**: searches all arrays of the process.
    #[doc(hidden)]
    pub fn of_id(id: u64) -> Self {
        let live = LIVE.lock();
        let label = live.values().find(|label| label.id() == id).cloned();
        label.unwrap_or_else(|| ArrayLabel::of_gone(id))
    }

    /// Creates the label of an array that does not exist any more.
    pub(crate) fn of_gone(id: u64) -> Self {
        ArrayLabel::new(id, None, Rect::new(0, 0, 0, 0))
    }

    /// Finds the label of the array at an address, if there is one.
    pub(crate) fn at(address: usize) -> Option<Self> {
        LIVE.lock().get(&address).cloned()
    }
}
