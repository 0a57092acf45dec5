//! All existing arrays, by address.
//!
//! A report on a running program may read the address of an array from a record that is being
//! reused: the address is searched for here and never followed.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::Mutex;

use super::{ArrayCore, ArrayLabel};

static LIVE: LazyLock<Mutex<HashMap<usize, ArrayLabel>>> = LazyLock::new(Mutex::default);

/// Adds an array, or changes its label.
pub(super) fn add(array: &ArrayCore) {
    LIVE.lock().insert(std::ptr::from_ref(array).addr(), array.label());
}

pub(super) fn remove(array: &ArrayCore) {
    LIVE.lock().remove(&std::ptr::from_ref(array).addr());
}

/// Returns the label of the array at an address, if there is one.
pub(super) fn at(array: *const ArrayCore) -> Option<ArrayLabel> {
    LIVE.lock().get(&array.addr()).cloned()
}

/// Returns the first label that is wanted.
pub(super) fn find(wanted: impl Fn(&ArrayLabel) -> bool) -> Option<ArrayLabel> {
    LIVE.lock().values().find(|label| wanted(label)).cloned()
}
