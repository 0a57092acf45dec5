//! Functions of `lpf/bsplib.h`.
#![allow(unsafe_code, reason = "functions that C programs call")]

use std::ffi::{c_int, c_void};

use super::types::{Handle, Pid};
use crate::bsplib::{BspError, BspResult, Bsplib};
use crate::context;
use crate::error::Error;
use crate::memory::{self, Address};
use crate::process::Process;

/// State of a process in BSPlib, `bsplib_t`.
pub struct State {
    ctx: Handle,
    bsplib: Bsplib,
}

/// `bsplib_err_t`.
type BspCode = c_int;

fn bsp_code(result: BspResult<()>) -> BspCode {
    result.map_or_else(|error| error as BspCode, |()| 0)
}

fn at(pointer: *const c_void) -> Address {
    Address::of(pointer.cast_mut().cast())
}

/// Calls a function of a state.
///
/// # Safety
///
/// The state is null, or one that the library has made, and used by one thread.
unsafe fn call<R>(
    state: *mut State,
    call: impl FnOnce(&mut Bsplib) -> BspResult<R>,
) -> BspResult<R> {
    // SAFETY: As the caller guarantees.
    let state = unsafe { state.as_mut() };
    call(&mut state.ok_or(BspError::NullPointer)?.bsplib)
}

/// Begins BSPlib for a process of LPF.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_create(
    ctx: Handle,
    pid: Pid,
    nprocs: Pid,
    _safemode: c_int,
    _max_hp_regs: usize,
    bsplib: *mut *mut State,
) -> BspCode {
    if bsplib.is_null() {
        return BspError::NullPointer as BspCode;
    }
    let numbers = |process: &mut Process| {
        process.check_health()?;
        Ok((process.pid, process.team.size()))
    };
    // SAFETY: As the caller guarantees.
    match unsafe { context::enter(ctx, "bsplib_create", numbers) } {
        Ok(own) if own == (pid as usize, nprocs as usize) => {}
        Ok(_) => return BspError::PidOutOfRange as BspCode,
        Err(Error::OutOfMemory) => return BspError::OutOfMemory as BspCode,
        Err(Error::Fatal) => return BspError::Fatal as BspCode,
    }
    let state = State { ctx, bsplib: Bsplib::new(pid as usize, nprocs as usize) };
    // SAFETY: It is not null, and valid as the caller guarantees.
    unsafe { bsplib.write(Box::into_raw(Box::new(state))) };
    0
}

/// Ends BSPlib, on all processes.
///
/// # Safety
///
/// As the interface says: the state is valid, and used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_destroy(bsplib: *mut State) -> BspCode {
    if bsplib.is_null() {
        return BspError::NullPointer as BspCode;
    }
    // SAFETY: It was made from a box, and is given up here.
    let mut state = unsafe { Box::from_raw(bsplib) };
    // SAFETY: As the caller guarantees.
    bsp_code(unsafe { sync(&mut state, true) })
}

/// Ends a superstep.
///
/// # Safety
///
/// As for [`context::enter`].
unsafe fn sync(state: &mut State, is_last: bool) -> BspResult<()> {
    let State { ctx, bsplib } = state;
    let sync = |process: &mut Process| Ok(bsplib.sync(process, is_last));
    // SAFETY: As the caller guarantees.
    unsafe { context::enter(*ctx, "bsplib_sync", sync) }.unwrap_or(Err(BspError::Fatal))
}

/// Returns the seconds since BSPlib was begun.
///
/// # Safety
///
/// As the interface says: the state is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_time(bsplib: *mut State) -> f64 {
    // SAFETY: As the caller guarantees.
    unsafe { call(bsplib, |bsplib| Ok(bsplib.seconds())) }.unwrap_or(0.0)
}

/// Returns the number of processes.
///
/// # Safety
///
/// As the interface says: the state is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_nprocs(bsplib: *mut State) -> Pid {
    // SAFETY: As the caller guarantees.
    unsafe { call(bsplib, |bsplib| Ok(bsplib.processes as Pid)) }.unwrap_or(0)
}

/// Returns the number of this process.
///
/// # Safety
///
/// As the interface says: the state is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_pid(bsplib: *mut State) -> Pid {
    // SAFETY: As the caller guarantees.
    unsafe { call(bsplib, |bsplib| Ok(bsplib.pid as Pid)) }.unwrap_or(Pid::MAX)
}

/// Ends a superstep.
///
/// # Safety
///
/// As the interface says: the state is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_sync(bsplib: *mut State) -> BspCode {
    // SAFETY: As the caller guarantees.
    let state = unsafe { bsplib.as_mut() };
    let Some(state) = state else { return BspError::NullPointer as BspCode };
    // SAFETY: As the caller guarantees.
    bsp_code(unsafe { sync(state, false) })
}

/// Registers memory from the next superstep on.
///
/// # Safety
///
/// As the interface says: the state is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_push_reg(
    bsplib: *mut State,
    ident: *const c_void,
    size: usize,
) -> BspCode {
    // SAFETY: As the caller guarantees.
    bsp_code(unsafe { call(bsplib, |bsplib| bsplib.push_reg(at(ident), size)) })
}

/// Gives up the latest registration of an address from the next superstep on.
///
/// # Safety
///
/// As the interface says: the state is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_pop_reg(bsplib: *mut State, ident: *const c_void) -> BspCode {
    // SAFETY: As the caller guarantees.
    bsp_code(unsafe { call(bsplib, |bsplib| bsplib.pop_reg(at(ident))) })
}

/// Queues a put, of a copy if it is buffered.
///
/// # Safety
///
/// As for [`call`] and [`Bsplib::put`].
unsafe fn put(
    bsplib: *mut State,
    pid: Pid,
    from: *const c_void,
    to: (Address, usize),
    nbytes: usize,
    is_buffered: bool,
) -> BspCode {
    // SAFETY: As the caller guarantees.
    let put = |bsplib: &mut Bsplib| unsafe { bsplib.put(pid, at(from), to, nbytes, is_buffered) };
    // SAFETY: As the caller guarantees.
    bsp_code(unsafe { call(bsplib, put) })
}

/// Queues a put of a copy.
///
/// # Safety
///
/// As the interface says: state and memory are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_put(
    bsplib: *mut State,
    dst_pid: Pid,
    src: *const c_void,
    dst: *mut c_void,
    offset: usize,
    nbytes: usize,
) -> BspCode {
    // SAFETY: As the caller guarantees.
    unsafe { put(bsplib, dst_pid, src, (at(dst), offset), nbytes, true) }
}

/// Queues a put without a copy.
///
/// # Safety
///
/// As the interface says: state and memory are valid, the memory until the next sync has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_hpput(
    bsplib: *mut State,
    dst_pid: Pid,
    src: *const c_void,
    dst: *mut c_void,
    offset: usize,
    nbytes: usize,
) -> BspCode {
    // SAFETY: As the caller guarantees.
    unsafe { put(bsplib, dst_pid, src, (at(dst), offset), nbytes, false) }
}

/// Queues a get.
///
/// # Safety
///
/// As the interface says: state and memory are valid, the memory until the next sync has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_get(
    bsplib: *mut State,
    src_pid: Pid,
    src: *const c_void,
    offset: usize,
    dst: *mut c_void,
    nbytes: usize,
) -> BspCode {
    let get = |bsplib: &mut Bsplib| bsplib.get(src_pid, (at(src), offset), at(dst), nbytes);
    // SAFETY: As the caller guarantees.
    bsp_code(unsafe { call(bsplib, get) })
}

/// Queues a get, as [`bsplib_get`].
///
/// # Safety
///
/// As for [`bsplib_get`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_hpget(
    bsplib: *mut State,
    src_pid: Pid,
    src: *const c_void,
    offset: usize,
    dst: *mut c_void,
    nbytes: usize,
) -> BspCode {
    // SAFETY: As the caller guarantees.
    unsafe { bsplib_get(bsplib, src_pid, src, offset, dst, nbytes) }
}

/// Sets the size of tags from the next superstep on, and returns that of this one.
///
/// # Safety
///
/// As the interface says: the state is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_set_tagsize(bsplib: *mut State, tagsize: usize) -> usize {
    // SAFETY: As the caller guarantees.
    unsafe { call(bsplib, |bsplib| Ok(bsplib.set_tag_size(tagsize))) }.unwrap_or(0)
}

/// Queues a message, a copy if it is buffered.
///
/// # Safety
///
/// As for [`call`] and [`Bsplib::send`].
unsafe fn send(
    bsplib: *mut State,
    pid: Pid,
    tag: *const c_void,
    payload: (Address, usize),
    is_buffered: bool,
) -> BspCode {
    // SAFETY: As the caller guarantees.
    let send = |bsplib: &mut Bsplib| unsafe { bsplib.send(pid, at(tag), payload, is_buffered) };
    // SAFETY: As the caller guarantees.
    bsp_code(unsafe { call(bsplib, send) })
}

/// Queues a copy of a message.
///
/// # Safety
///
/// As the interface says: state and memory are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_send(
    bsplib: *mut State,
    dst_pid: Pid,
    tag: *const c_void,
    payload: *const c_void,
    nbytes: usize,
) -> BspCode {
    // SAFETY: As the caller guarantees.
    unsafe { send(bsplib, dst_pid, tag, (at(payload), nbytes), true) }
}

/// Queues a message whose payload is read in the sync.
///
/// # Safety
///
/// As the interface says: state and memory are valid, the payload until the next sync has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_hpsend(
    bsplib: *mut State,
    dst_pid: Pid,
    tag: *const c_void,
    payload: *const c_void,
    nbytes: usize,
) -> BspCode {
    // SAFETY: As the caller guarantees.
    unsafe { send(bsplib, dst_pid, tag, (at(payload), nbytes), false) }
}

/// Writes a value where a pointer that is not null leads.
///
/// # Safety
///
/// The pointer is null or valid.
unsafe fn write<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: As the caller guarantees.
        unsafe { pointer.write(value) };
    }
}

/// Counts the messages that have not been moved, and the bytes of their payloads.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_qsize(
    bsplib: *mut State,
    nmessages: *mut usize,
    accum_bytes: *mut usize,
) -> BspCode {
    let count = |bsplib: &mut Bsplib| {
        let waiting = bsplib.waiting();
        let bytes = waiting.iter().map(|message| message.payload.len()).sum();
        Ok((waiting.len(), bytes))
    };
    // SAFETY: As the caller guarantees.
    let counted = unsafe { call(bsplib, count) };
    bsp_code(counted.map(|(messages, bytes)| {
        // SAFETY: As the caller guarantees.
        unsafe { write(nmessages, messages) };
        // SAFETY: As the caller guarantees.
        unsafe { write(accum_bytes, bytes) };
    }))
}

/// Copies the tag of the first message, and returns the size of its payload, or the largest size.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_get_tag(
    bsplib: *mut State,
    status: *mut usize,
    tag: *mut c_void,
) -> BspCode {
    let read = |bsplib: &mut Bsplib| {
        let size = bsplib.waiting().first().map_or(usize::MAX, |message| {
            if !tag.is_null() {
                // SAFETY: The program has room for a tag there.
                unsafe { memory::write(&message.tag, at(tag)) };
            }
            message.payload.len()
        });
        Ok(size)
    };
    // SAFETY: As the caller guarantees.
    let size = unsafe { call(bsplib, read) };
    // SAFETY: As the caller guarantees.
    bsp_code(size.map(|size| unsafe { write(status, size) }))
}

/// Copies up to so many bytes of the first payload, and takes the message.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_move(
    bsplib: *mut State,
    payload: *mut c_void,
    reception_bytes: usize,
) -> BspCode {
    let take = |bsplib: &mut Bsplib| {
        let first = bsplib.waiting().first().ok_or(BspError::EmptyMessageQueue)?;
        let size = first.payload.len().min(reception_bytes);
        if payload.is_null() && size > 0 {
            return Err(BspError::NullPointer);
        }
        // SAFETY: The program has room for so many bytes there.
        unsafe { memory::write(&first.payload[..size], at(payload)) };
        bsplib.take();
        Ok(())
    };
    // SAFETY: As the caller guarantees.
    bsp_code(unsafe { call(bsplib, take) })
}

/// Returns the size of the first payload, and where tag and payload are until the next sync, and takes the
/// message; or the largest size.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsplib_hpmove(
    bsplib: *mut State,
    tag_ptr: *mut *const c_void,
    payload_ptr: *mut *const c_void,
) -> usize {
    let take = |bsplib: &mut Bsplib| {
        let first = bsplib.take().ok_or(BspError::EmptyMessageQueue)?;
        // SAFETY: As the caller guarantees.
        unsafe { write(tag_ptr, first.tag.as_ptr().cast()) };
        // SAFETY: As the caller guarantees.
        unsafe { write(payload_ptr, first.payload.as_ptr().cast()) };
        Ok(first.payload.len())
    };
    // SAFETY: As the caller guarantees.
    unsafe { call(bsplib, take) }.unwrap_or(usize::MAX)
}
