#![allow(unsafe_code, reason = "objects of the library are called and closed")]
//! Ownership of the objects of libfabric.

use std::{
    ffi::{c_int, c_void},
    ptr::{self, NonNull},
};

use super::{
    OfiError,
    abi::{self, Calls, Fid},
};

/// Kinds of objects.
///
/// # Safety
///
/// A value begins with a [`Fid`].
pub(super) unsafe trait Kind {}

// SAFETY: as the trait says; the tests compare the record with that of C.
unsafe impl Kind for abi::Fabric {}
// SAFETY: as above.
unsafe impl Kind for abi::Domain {}
// SAFETY: as above.
unsafe impl Kind for abi::AddressVector {}
// SAFETY: as above.
unsafe impl Kind for abi::CompletionQueue {}
// SAFETY: as above.
unsafe impl Kind for abi::Endpoint {}
// SAFETY: as above.
unsafe impl Kind for abi::MemoryRegion {}

/// An object of the library, closed as this drops. Who owns several closes those first that were made
/// last.
pub(super) struct Object<T: Kind> {
    pointer: NonNull<T>,
    calls: Calls,
}

// SAFETY: providers are asked for objects that any thread may use.
unsafe impl<T: Kind> Send for Object<T> {}
// SAFETY: as above.
unsafe impl<T: Kind> Sync for Object<T> {}

impl<T: Kind> Object<T> {
    /// Takes an object.
    ///
    /// # Safety
    ///
    /// The library has made the object, and nobody else closes it.
    pub(super) unsafe fn new(pointer: NonNull<T>) -> Self {
        // SAFETY: every object begins with a `Fid`, and is valid.
        let fid = unsafe { pointer.cast::<Fid>().as_ref() };
        // SAFETY: the functions of an object stay as long as that.
        let calls = unsafe { fid.ops.read() };
        Self { pointer, calls }
    }

    pub(super) fn pointer(&self) -> *mut T {
        self.pointer.as_ptr()
    }

    pub(super) fn fid(&self) -> *mut Fid {
        self.pointer.as_ptr().cast()
    }

    /// Returns the record of the object, which the library may change only by calls.
    pub(super) fn record(&self) -> &T {
        // SAFETY: the object is open.
        unsafe { self.pointer.as_ref() }
    }

    /// Joins the object with another one.
    pub(super) fn bind<U: Kind>(&self, to: &Object<U>, flags: u64) -> c_int {
        // SAFETY: both objects are open.
        unsafe { (self.calls.bind)(self.fid(), to.fid(), flags) }
    }

    /// Makes the object usable.
    pub(super) fn enable(&self) -> c_int {
        // SAFETY: the object is open; the command has no argument.
        unsafe { (self.calls.control)(self.fid(), abi::ENABLE, ptr::null_mut()) }
    }

    /// Returns the descriptor to wait on, if the object has one.
    pub(super) fn wait_descriptor(&self) -> Option<c_int> {
        let mut descriptor: c_int = -1;
        let place = (&raw mut descriptor).cast::<c_void>();
        // SAFETY: the object is open, and was made with a descriptor, which has the place.
        let result = unsafe { (self.calls.control)(self.fid(), abi::GET_WAIT, place) };
        (result == 0 && descriptor >= 0).then_some(descriptor)
    }
}

impl<T: Kind> Drop for Object<T> {
    fn drop(&mut self) {
        // SAFETY: the object is open, and nobody else has it.
        let _ = unsafe { (self.calls.close)(self.fid()) };
    }
}

/// Takes the object that `create` leaves at a place.
pub(super) fn make<T: Kind>(
    create: impl FnOnce(*mut *mut T) -> Result<(), OfiError>,
) -> Result<Object<T>, OfiError> {
    let mut pointer = ptr::null_mut();
    create(&raw mut pointer)?;
    let what = "an object";
    let reason = || "none made".to_owned();
    let pointer =
        NonNull::new(pointer).ok_or_else(|| OfiError::System { what, reason: reason() })?;
    // SAFETY: the library has just made the object.
    Ok(unsafe { Object::new(pointer) })
}
