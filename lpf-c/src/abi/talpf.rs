//! Functions of `talpf.h`.
#![allow(unsafe_code, reason = "functions that C programs call")]

use super::constants::code;
use super::core::operate;
use super::types::{Code, Handle, MessageAttribute, Pid, Slot, SyncAttribute};
use crate::context;
use crate::ends::{Far, Near};
use crate::process::Process;
use crate::slot_id::SlotId;

/// Puts at once.
///
/// # Safety
///
/// As the interface says: the context and the slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talpf_put(
    ctx: Handle,
    src_slot: Slot,
    src_offset: usize,
    dst_pid: Pid,
    dst_slot: Slot,
    dst_offset: usize,
    size: usize,
    _attr: MessageAttribute,
) -> Code {
    let source = Near { slot: SlotId(src_slot), offset: src_offset };
    let destination = Far { pid: dst_pid, slot: SlotId(dst_slot), offset: dst_offset };
    // SAFETY: As the caller guarantees.
    unsafe { operate(ctx, "talpf_put", |process| process.put_now(source, destination, size)) }
}

/// Gets at once.
///
/// # Safety
///
/// As the interface says: the context and the slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talpf_get(
    ctx: Handle,
    src_pid: Pid,
    src_slot: Slot,
    src_offset: usize,
    dst_slot: Slot,
    dst_offset: usize,
    size: usize,
    _attr: MessageAttribute,
) -> Code {
    let source = Far { pid: src_pid, slot: SlotId(src_slot), offset: src_offset };
    let destination = Near { slot: SlotId(dst_slot), offset: dst_offset };
    // SAFETY: As the caller guarantees.
    unsafe { operate(ctx, "talpf_get", |process| process.get_now(source, destination, size)) }
}

/// Adds to 8 bytes at the destination, and leaves what was there before in the source.
///
/// # Safety
///
/// As the interface says: the context and the slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talpf_atomic_fetch_and_add(
    ctx: Handle,
    src_slot: Slot,
    src_offset: usize,
    dst_pid: Pid,
    dst_slot: Slot,
    dst_offset: usize,
    value: u64,
) -> Code {
    let source = Near { slot: SlotId(src_slot), offset: src_offset };
    let destination = Far { pid: dst_pid, slot: SlotId(dst_slot), offset: dst_offset };
    let add = |before: u64| before.wrapping_add(value);
    let function = "talpf_atomic_fetch_and_add";
    // SAFETY: As the caller guarantees.
    unsafe { operate(ctx, function, |process| process.update_now(source, destination, add)) }
}

/// Sets 8 bytes at the destination if they equal `cmp`, and leaves what was there before in the source.
///
/// # Safety
///
/// As the interface says: the context and the slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talpf_atomic_cmp_and_swp(
    ctx: Handle,
    src_slot: Slot,
    src_offset: usize,
    dst_pid: Pid,
    dst_slot: Slot,
    dst_offset: usize,
    cmp: u64,
    swp: u64,
) -> Code {
    let source = Near { slot: SlotId(src_slot), offset: src_offset };
    let destination = Far { pid: dst_pid, slot: SlotId(dst_slot), offset: dst_offset };
    let swap = |before| if before == cmp { swp } else { before };
    let function = "talpf_atomic_cmp_and_swp";
    // SAFETY: As the caller guarantees.
    unsafe { operate(ctx, function, |process| process.update_now(source, destination, swap)) }
}

/// [`talpf_atomic_cmp_and_swp`] by its longer name.
///
/// # Safety
///
/// As the interface says: the context and the slots are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talpf_atomic_cmp_and_swap(
    ctx: Handle,
    src_slot: Slot,
    src_offset: usize,
    dst_pid: Pid,
    dst_slot: Slot,
    dst_offset: usize,
    cmp: u64,
    swp: u64,
) -> Code {
    // SAFETY: As the caller guarantees.
    unsafe {
        talpf_atomic_cmp_and_swp(ctx, src_slot, src_offset, dst_pid, dst_slot, dst_offset, cmp, swp)
    }
}

/// Ends a round.
///
/// # Safety
///
/// As the interface says: the context is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn talpf_sync(ctx: Handle, attr: SyncAttribute) -> Code {
    let sync = |process: &mut Process| process.sync_round(attr.cast_unsigned());
    // SAFETY: As the caller guarantees.
    code(unsafe { context::enter(ctx, "talpf_sync", sync) })
}
