//! Functions of `lpf/collectives.h`.
#![allow(unsafe_code, reason = "functions that C programs call")]

use std::ffi::c_void;
use std::ptr;

use super::constants::code;
use super::types::{Code, Coll, Handle, Pid, Slot};
use crate::collective::Collective;
use crate::context;
use crate::ends::Near;
use crate::error::Result;
use crate::memory::Address;
use crate::misuse::{Misuse, Side};
use crate::process::Process;
use crate::reduction::{Combiner, Operator, Reducer};
use crate::selection::Selection;
use crate::slot_id::SlotId;

/// Makes collectives of all processes.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_collectives_init(
    ctx: Handle,
    s: Pid,
    p: Pid,
    max_calls: usize,
    max_elem_size: usize,
    max_byte_size: usize,
    coll: *mut Coll,
) -> Code {
    // SAFETY: As the caller guarantees.
    unsafe {
        lpf_collectives_init_strided(
            ctx,
            s,
            p,
            0,
            p,
            1,
            max_calls,
            max_elem_size,
            max_byte_size,
            coll,
        )
    }
}

/// Makes collectives of processes `lo`, `lo + str`, and so on, below `hi`.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_collectives_init_strided(
    ctx: Handle,
    s: Pid,
    p: Pid,
    lo: Pid,
    hi: Pid,
    stride: Pid,
    _max_calls: usize,
    max_elem_size: usize,
    _max_byte_size: usize,
    coll: *mut Coll,
) -> Code {
    let function = "lpf_collectives_init";
    let init = |process: &mut Process| {
        process.check_health()?;
        if coll.is_null() {
            return Err(process.misuse(function, Misuse::Null("coll")));
        }
        let processes = process.team.size();
        if p as usize > processes || s >= p.max(1) {
            return Err(process.misuse(function, Misuse::Pid { pid: s.max(p), processes }));
        }
        let selection = Selection::new(lo, hi, stride, p as usize);
        let selection = selection.map_err(|misuse| process.misuse(function, misuse))?;
        let made = Collective::new(process, selection, s, max_elem_size)?;
        let made = made.map_err(|misuse| process.misuse(function, misuse))?;
        let (index, slot) = (made.index.unwrap_or(selection.size()), made.slot.0);
        let mut made = Box::new(made);
        let buffer = made.buffer().cast();
        let made = Coll {
            ctx,
            inv_translate: Box::into_raw(made).cast(),
            translate: ptr::null_mut(),
            buffer,
            slot,
            processes: selection.size() as Pid,
            s: index as Pid,
        };
        // SAFETY: It is not null, and valid as the caller guarantees.
        unsafe { coll.write(made) };
        Ok(())
    };
    // SAFETY: As the caller guarantees.
    code(unsafe { context::enter(ctx, function, init) })
}

/// Returns the context that the collectives were made in.
#[unsafe(no_mangle)]
pub extern "C" fn lpf_collectives_get_context(coll: Coll) -> Handle {
    coll.ctx
}

/// Gives up collectives.
///
/// # Safety
///
/// As the interface says: the collectives are valid, and used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_collectives_destroy(coll: Coll) -> Code {
    let function = "lpf_collectives_destroy";
    let destroy = |process: &mut Process, collective: *mut Collective| {
        // SAFETY: It was made from a box, and is given up here.
        let collective = unsafe { Box::from_raw(collective) };
        process.check_health()?;
        let freed = process.deregister(collective.slot);
        freed.map_err(|misuse| process.misuse(function, misuse))
    };
    // SAFETY: As the caller guarantees.
    code(unsafe { enter(coll, function, destroy) })
}

/// Enters the process of collectives.
///
/// # Safety
///
/// The collectives are valid, unless they are those that a program begins with.
unsafe fn enter<R>(
    coll: Coll,
    function: &str,
    call: impl FnOnce(&mut Process, *mut Collective) -> Result<R>,
) -> Result<R> {
    let collective = coll.inv_translate.cast::<Collective>();
    if collective.is_null() {
        return Err(Misuse::Null("coll").found(function, 0));
    }
    // SAFETY: As the caller guarantees.
    unsafe { context::enter(coll.ctx, function, |process| call(process, collective)) }
}

/// Enters a process that has not failed, for a collective that moves data.
///
/// # Safety
///
/// As for [`enter`].
unsafe fn operate(
    coll: Coll,
    function: &str,
    call: impl FnOnce(&mut Process, &Collective) -> std::result::Result<(), Misuse>,
) -> Code {
    let call = |process: &mut Process, collective: *mut Collective| {
        process.check_health()?;
        // SAFETY: The collectives are valid, and only this call uses them.
        let collective = unsafe { &*collective };
        call(process, collective).map_err(|misuse| process.misuse(function, misuse))
    };
    // SAFETY: As the caller guarantees.
    code(unsafe { enter(coll, function, call) })
}

/// Copies bytes of the root to all others.
///
/// # Safety
///
/// As the interface says: collectives and slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_broadcast(
    coll: Coll,
    src: Slot,
    dst: Slot,
    size: usize,
    root: Pid,
) -> Code {
    let call = |process: &mut Process, collective: &Collective| {
        collective.broadcast(process, SlotId(src), SlotId(dst), size, root)
    };
    // SAFETY: As the caller guarantees.
    unsafe { operate(coll, "lpf_broadcast", call) }
}

/// Copies the bytes of all others into parts of memory of the root.
///
/// # Safety
///
/// As the interface says: collectives and slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_gather(
    coll: Coll,
    src: Slot,
    dst: Slot,
    size: usize,
    root: Pid,
) -> Code {
    let call = |process: &mut Process, collective: &Collective| {
        collective.gather(process, SlotId(src), SlotId(dst), size, root)
    };
    // SAFETY: As the caller guarantees.
    unsafe { operate(coll, "lpf_gather", call) }
}

/// Copies parts of memory of the root to all others.
///
/// # Safety
///
/// As the interface says: collectives and slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_scatter(
    coll: Coll,
    src: Slot,
    dst: Slot,
    size: usize,
    root: Pid,
) -> Code {
    let call = |process: &mut Process, collective: &Collective| {
        collective.scatter(process, SlotId(src), SlotId(dst), size, root)
    };
    // SAFETY: As the caller guarantees.
    unsafe { operate(coll, "lpf_scatter", call) }
}

/// Copies the bytes of all into parts of memory of all.
///
/// # Safety
///
/// As the interface says: collectives and slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_allgather(
    coll: Coll,
    src: Slot,
    dst: Slot,
    size: usize,
    exclude_myself: bool,
) -> Code {
    let call = |process: &mut Process, collective: &Collective| {
        collective.allgather(process, SlotId(src), SlotId(dst), size, exclude_myself)
    };
    // SAFETY: As the caller guarantees.
    unsafe { operate(coll, "lpf_allgather", call) }
}

/// Copies part `s` of each process `k` into part `k` of each process `s`.
///
/// # Safety
///
/// As the interface says: collectives and slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_alltoall(coll: Coll, src: Slot, dst: Slot, size: usize) -> Code {
    let call = |process: &mut Process, collective: &Collective| {
        collective.alltoall(process, SlotId(src), SlotId(dst), size)
    };
    // SAFETY: As the caller guarantees.
    unsafe { operate(coll, "lpf_alltoall", call) }
}

/// Folds the elements of all into that of the root.
///
/// # Safety
///
/// As the interface says: collectives, slot and memory are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_reduce(
    coll: Coll,
    element: *mut c_void,
    element_slot: Slot,
    size: usize,
    reducer: Option<Reducer>,
    root: Pid,
) -> Code {
    let operator = reducer.map(Operator::Reduce);
    // SAFETY: As the caller guarantees.
    unsafe { fold(coll, "lpf_reduce", element, element_slot, Some(size), operator, Some(root)) }
}

/// Folds the elements of all into that of each.
///
/// # Safety
///
/// As the interface says: collectives, slot and memory are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_allreduce(
    coll: Coll,
    element: *mut c_void,
    element_slot: Slot,
    size: usize,
    reducer: Option<Reducer>,
) -> Code {
    let operator = reducer.map(Operator::Reduce);
    // SAFETY: As the caller guarantees.
    unsafe { fold(coll, "lpf_allreduce", element, element_slot, Some(size), operator, None) }
}

/// Combines the arrays of all into that of the root.
///
/// # Safety
///
/// As the interface says: collectives, slot and memory are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_combine(
    coll: Coll,
    array: *mut c_void,
    slot: Slot,
    num: usize,
    size: usize,
    combiner: Option<Combiner>,
    root: Pid,
) -> Code {
    let operator = combiner.map(|combiner| Operator::Combine(combiner, num));
    let bytes = num.checked_mul(size);
    // SAFETY: As the caller guarantees.
    unsafe { fold(coll, "lpf_combine", array, slot, bytes, operator, Some(root)) }
}

/// Combines the arrays of all into that of each.
///
/// # Safety
///
/// As the interface says: collectives, slot and memory are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_allcombine(
    coll: Coll,
    array: *mut c_void,
    slot: Slot,
    num: usize,
    size: usize,
    combiner: Option<Combiner>,
) -> Code {
    let operator = combiner.map(|combiner| Operator::Combine(combiner, num));
    let bytes = num.checked_mul(size);
    // SAFETY: As the caller guarantees.
    unsafe { fold(coll, "lpf_allcombine", array, slot, bytes, operator, None) }
}

/// Contributes memory to a reduction.
///
/// # Safety
///
/// As the interface says: collectives, slot and memory are valid.
unsafe fn fold(
    coll: Coll,
    function: &str,
    memory: *mut c_void,
    slot: Slot,
    size: Option<usize>,
    operator: Option<Operator>,
    root: Option<Pid>,
) -> Code {
    let call = |process: &mut Process, collective: *mut Collective| {
        process.check_health()?;
        // SAFETY: The collectives are valid, and only this call uses them.
        let collective = unsafe { &mut *collective };
        let checked = || {
            let operator = operator.ok_or(Misuse::Null("operator"))?;
            let side = Side::Source;
            let size = size.ok_or(Misuse::Overflow { side, offset: 0, size: usize::MAX })?;
            if memory.is_null() && size > 0 {
                return Err(Misuse::NullWithSize("memory", size));
            }
            let near = Near { slot: SlotId(slot), offset: 0 };
            process.resolve(near, size, side)?;
            Ok((operator, size))
        };
        let (operator, size) = checked().map_err(|misuse| process.misuse(function, misuse))?;
        let bytes = Address::of(memory.cast());
        // SAFETY: As the caller guarantees; the slot holds as many bytes.
        let folded = unsafe { collective.reduce(process, bytes, size, operator, root) };
        folded.map_err(|misuse| process.misuse(function, misuse))?
    };
    // SAFETY: As the caller guarantees.
    code(unsafe { enter(coll, function, call) })
}
