//! Constants of the interface, which are data that a program reads.
#![allow(unsafe_code, reason = "names that C programs are linked with")]

use std::ffi::c_int;
use std::ptr;

use super::types::{
    Args, Code, Coll, Handle, Init, Machine, MessageAttribute, Pid, Slot, SyncAttribute,
};
use crate::context;

/// Constant with pointers.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Constant<T>(T);

// SAFETY: Constants are only read.
unsafe impl<T> Sync for Constant<T> {}

impl<T: Copy> Constant<T> {
    /// Returns the value.
    pub fn get(&self) -> T {
        self.0
    }
}

/// The call has done what it was to do.
#[unsafe(no_mangle)]
pub static LPF_SUCCESS: Code = 0;
/// Memory, or room, is missing, and the call has changed nothing.
#[unsafe(no_mangle)]
pub static LPF_ERR_OUT_OF_MEMORY: Code = 1;
/// The processes cannot go on together.
#[unsafe(no_mangle)]
pub static LPF_ERR_FATAL: Code = 2;
/// No context.
#[unsafe(no_mangle)]
pub static LPF_NONE: Constant<Handle> = Constant(ptr::null_mut());
/// Context of the program itself.
#[unsafe(no_mangle)]
pub static LPF_ROOT: Constant<Handle> = Constant((&raw const context::ROOT).cast_mut().cast());
/// No thread that will hook.
#[unsafe(no_mangle)]
pub static LPF_INIT_NONE: Constant<Init> = Constant(ptr::null_mut());
/// No input, output or functions.
#[unsafe(no_mangle)]
pub static LPF_NO_ARGS: Constant<Args> = Constant(Args {
    input: ptr::null(),
    input_size: 0,
    output: ptr::null_mut(),
    output_size: 0,
    f_symbols: ptr::null(),
    f_size: 0,
});
/// A sync of all operations.
#[unsafe(no_mangle)]
pub static LPF_SYNC_DEFAULT: SyncAttribute = 0;
/// An operation that ends with the next sync.
#[unsafe(no_mangle)]
pub static LPF_MSG_DEFAULT: MessageAttribute = 0;
/// As many processes as there are.
#[unsafe(no_mangle)]
pub static LPF_MAX_P: Pid = Pid::MAX;
/// Machine before it is probed.
#[unsafe(no_mangle)]
pub static LPF_INVALID_MACHINE: Machine = Machine { p: 0, free_p: 0, g: None, l: None };
/// No slot.
#[unsafe(no_mangle)]
pub static LPF_INVALID_MEMSLOT: Slot = Slot::MAX;
/// No collectives.
#[unsafe(no_mangle)]
pub static LPF_INVALID_COLL: Constant<Coll> = Constant(Coll {
    ctx: ptr::null_mut(),
    inv_translate: ptr::null_mut(),
    translate: ptr::null_mut(),
    buffer: ptr::null_mut(),
    slot: Slot::MAX,
    processes: 0,
    s: 0,
});
/// `lpf_abort` ends the program.
#[unsafe(no_mangle)]
pub static LPF_HAS_ABORT: c_int = 1;
/// Processes of a process-based launch wait for `lpf_exec`. A program that hooks defines this constant itself, as
/// 0, and its own comes first.
#[unsafe(no_mangle)]
pub static LPF_MPI_AUTO_INITIALIZE: c_int = 1;

/// Returns the code of a result.
#[inline]
pub(super) fn code(result: crate::error::Result<()>) -> Code {
    match result {
        Ok(()) => LPF_SUCCESS,
        Err(crate::error::Error::OutOfMemory) => LPF_ERR_OUT_OF_MEMORY,
        Err(crate::error::Error::Fatal) => LPF_ERR_FATAL,
    }
}
