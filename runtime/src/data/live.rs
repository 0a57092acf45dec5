//! The arrays there are, by address.
//!
//! A report on a program that runs may meet the address of an array in a record that is being
//! reused: it is looked up here and never followed.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::Mutex;

use super::ArrayCore;

static LIVE: LazyLock<Mutex<HashMap<usize, u64>>> = LazyLock::new(Mutex::default);

pub(super) fn add(array: &ArrayCore) {
    LIVE.lock().insert(std::ptr::from_ref(array).addr(), array.id());
}

pub(super) fn remove(array: &ArrayCore) {
    LIVE.lock().remove(&std::ptr::from_ref(array).addr());
}

/// The number of the array at an address, if there is one.
pub(crate) fn array_id(array: *const ArrayCore) -> Option<u64> {
    LIVE.lock().get(&array.addr()).copied()
}
