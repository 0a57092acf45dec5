//! Functions of `lpf/pthread.h`.
#![allow(unsafe_code, reason = "functions that C programs call")]

use super::constants::code;
use super::types::{Code, Init, Pid};
use crate::barrier::MOST_PARTIES;
use crate::hook::Member;
use crate::misuse::Misuse;

/// Makes the calling thread one of those that will hook together.
///
/// # Safety
///
/// As the interface says: the pointer is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_pthread_initialize(pid: Pid, nprocs: Pid, init: *mut Init) -> Code {
    let initialize = || {
        let found = |misuse: Misuse| misuse.found("lpf_pthread_initialize", pid as usize);
        if init.is_null() {
            return Err(found(Misuse::Null("init")));
        }
        if pid >= nprocs || nprocs as usize > MOST_PARTIES {
            return Err(found(Misuse::Pid { pid, processes: nprocs as usize }));
        }
        let member = Box::new(Member::join(pid as usize, nprocs as usize)?);
        // SAFETY: It is not null, and valid as the caller guarantees.
        unsafe { init.write(Box::into_raw(member).cast()) };
        Ok(())
    };
    code(initialize())
}

/// Gives up what [`lpf_pthread_initialize`] has made.
///
/// # Safety
///
/// As the interface says: the handle is valid, and used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_pthread_finalize(init: Init) -> Code {
    if init.is_null() {
        return code(Err(Misuse::Null("init").found("lpf_pthread_finalize", 0)));
    }
    // SAFETY: It was made from a box, and is given up here.
    drop(unsafe { Box::from_raw(init.cast::<Member>()) });
    code(Ok(()))
}
