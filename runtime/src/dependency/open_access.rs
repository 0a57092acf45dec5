//! Accesses that are known to be open, and so lead to their arrays.
#![allow(unsafe_code, reason = "follows the pointers from open accesses to their arrays")]

use std::ops::Deref;

use crate::data::ArrayCore;
use crate::record::{ARRAY_ALIGN, AccessId};

const _: () = assert!(align_of::<ArrayCore>() >= ARRAY_ALIGN);

/// An access that is open while this value is used, by its guard or by the thread that closes the
/// access.
#[derive(Clone, Copy)]
pub struct OpenAccess(AccessId);

impl OpenAccess {
    /// # Safety
    /// The access is open, and stays open as long as the new value or a copy of it is used.
    #[inline]
    pub(crate) unsafe fn new(access: AccessId) -> Self {
        OpenAccess(access)
    }

    /// Returns the array of the access.
    #[inline]
    pub(crate) fn array(self) -> &'static ArrayCore {
        // SAFETY: the access is open, by the contract of `new`, and `Declared` has put the address
        // of its array there.
        unsafe { ArrayCore::of_open_access(self.0.slot().array().cast()) }
    }
}

impl Deref for OpenAccess {
    type Target = AccessId;

    #[inline]
    fn deref(&self) -> &AccessId {
        &self.0
    }
}
