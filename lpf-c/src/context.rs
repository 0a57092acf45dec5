//! Context of a process, which C programs have a pointer to.
#![allow(unsafe_code, reason = "C programs keep the contexts")]

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::ReentrantMutex;

use crate::error::{Error, Result};
use crate::misuse::Misuse;
use crate::process::Process;
use crate::processors::processors;
use crate::team::Team;

/// Number by which a context is recognised.
const MAGIC: u64 = 0x4C50_465F_5443_5458;

/// Process that a C program calls functions on.
pub(crate) struct Context {
    magic: AtomicU64,
    /// A call is inside.
    busy: AtomicBool,
    process: UnsafeCell<Process>,
}

// SAFETY: A process is reached through `enter` only, by the thread of its program, as the interface asks of it; a
// call from another thread meanwhile finds the context busy.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn new(process: Process) -> Self {
        Context {
            magic: AtomicU64::new(MAGIC),
            busy: AtomicBool::new(false),
            process: UnsafeCell::new(process),
        }
    }

    /// Returns the handle that C programs know.
    pub(crate) fn handle(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// Calls `call` with the process of the context.
    ///
    /// # Errors
    ///
    /// Errors of `call`; [`Error::Fatal`] if the context is busy, as in an operator of the program.
    #[inline(always)]
    pub(crate) fn enter<R>(
        &self,
        function: &str,
        call: impl FnOnce(&mut Process) -> Result<R>,
    ) -> Result<R> {
        if self.busy.load(Ordering::Relaxed) {
            return Err(Misuse::ContextBusy.found(function, 0));
        }
        self.busy.store(true, Ordering::Relaxed);
        // SAFETY: No other call is inside, as just checked: calls come from one thread.
        let process = unsafe { &mut *self.process.get() };
        let result = call(process);
        self.busy.store(false, Ordering::Relaxed);
        result
    }

    /// Returns the process of a context that no program has any more.
    pub(crate) fn into_process(self) -> Process {
        self.magic.store(0, Ordering::Relaxed);
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: The context is given up, so that the process is moved out once.
        unsafe { std::ptr::read(this.process.get()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.magic.store(0, Ordering::Relaxed);
    }
}

/// Place whose address is `LPF_ROOT`.
pub(crate) static ROOT: u8 = 0;

/// Calls `call` with the process of a handle.
///
/// # Errors
///
/// Errors of `call`; [`Error::Fatal`] if the handle is none of a context, or its context busy.
///
/// # Safety
///
/// The handle is null, that of the root, or one that the library has passed to a program that has not returned,
/// and is used by the thread of that program, unless the program is wrong.
#[inline(always)]
pub(crate) unsafe fn enter<R>(
    handle: *mut c_void,
    function: &str,
    call: impl FnOnce(&mut Process) -> Result<R>,
) -> Result<R> {
    if handle.cast_const().cast() == &raw const ROOT {
        return enter_root(function, call);
    }
    if handle.is_null() || !handle.cast::<Context>().is_aligned() {
        return Err(Misuse::Context.found(function, 0));
    }
    // SAFETY: As the caller guarantees.
    let context = unsafe { &*handle.cast::<Context>() };
    if context.magic.load(Ordering::Relaxed) != MAGIC {
        return Err(Misuse::Context.found(function, 0));
    }
    context.enter(function, call)
}

/// Calls `call` with the process of the root, the only one of its team.
#[cold]
fn enter_root<R>(function: &str, call: impl FnOnce(&mut Process) -> Result<R>) -> Result<R> {
    static CONTEXT: OnceLock<Option<ReentrantMutex<Context>>> = OnceLock::new();
    let context = CONTEXT.get_or_init(|| {
        let process = Process::new(Team::new(1).ok()?, 0, processors()).ok()?;
        Some(ReentrantMutex::new(Context::new(process)))
    });
    let context = context.as_ref().ok_or(Error::OutOfMemory)?;
    context.lock().enter(function, call)
}
