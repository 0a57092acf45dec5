//! Accesses that are known to be open, and so lead to their arrays.
#![allow(unsafe_code, reason = "follows the pointers from open accesses to their arrays")]

use std::ops::Deref;

use super::AccessId;
use crate::data::ArrayCore;

/// An access that is open while this is used: what a guard has, or whoever closes the access.
#[derive(Clone, Copy)]
pub struct OpenAccess(AccessId);

impl OpenAccess {
    /// # Safety
    /// The access is open, and stays so as long as anything is asked of the new value or a copy.
    #[inline]
    pub(crate) unsafe fn new(access: AccessId) -> Self {
        OpenAccess(access)
    }

    /// The array that the access is to.
    #[inline]
    pub(crate) fn array(self) -> &'static ArrayCore {
        // SAFETY: the access is open, by the contract of `new`.
        unsafe { ArrayCore::of_open_access(self.0.slot().core()) }
    }
}

impl Deref for OpenAccess {
    type Target = AccessId;

    #[inline]
    fn deref(&self) -> &AccessId {
        &self.0
    }
}
