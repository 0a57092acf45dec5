//! Functions of `lpf/core.h`.
#![allow(unsafe_code, reason = "functions that C programs call")]

use std::ffi::c_void;

use super::constants::{LPF_ERR_FATAL, LPF_NO_ARGS, code};
use super::types::{
    Args, Code, Handle, Init, Machine, MessageAttribute, Pid, Slot, Spmd, SyncAttribute,
};
use crate::context::{self, Context};
use crate::ends::{Far, Near};
use crate::error::{Error, Result};
use crate::hook::Member;
use crate::launch;
use crate::machine;
use crate::memory::Address;
use crate::misuse::{self, Misuse};
use crate::process::Process;
use crate::processors;
use crate::slot_id::SlotId;
use talpf_primitives::assert_nothing_held;

/// Arguments that processes are started with. Process 0 alone has input and output where one call starts all.
struct Programs {
    spmd: extern "C" fn(Handle, Pid, Pid, Args),
    args: Args,
    all_have_args: bool,
}

// SAFETY: The pointers are only passed on to the program, which answers for what its processes do with them.
unsafe impl Sync for Programs {}

impl Programs {
    /// Checks the arguments of a program.
    fn new(function: &str, spmd: Spmd, args: Args, all_have_args: bool) -> Result<Self> {
        let found = |misuse: Misuse| misuse.found(function, 0);
        let spmd = spmd.ok_or_else(|| found(Misuse::Null("spmd")))?;
        let given = [
            ("args.input", args.input.is_null(), args.input_size),
            ("args.output", args.output.is_null(), args.output_size),
            ("args.f_symbols", args.f_symbols.is_null(), args.f_size),
        ];
        for (name, is_null, size) in given {
            if is_null && size > 0 {
                return Err(found(Misuse::NullWithSize(name, size)));
            }
        }
        Ok(Programs { spmd, args, all_have_args })
    }

    /// Runs the program of the process of a context.
    fn call(&self, context: &Context) {
        let numbers = context
            .enter("lpf_exec", |process| Ok((process.pid as Pid, process.team.size() as Pid)));
        let Ok((pid, processes)) = numbers else { return };
        let mut args = self.args;
        if pid > 0 && !self.all_have_args {
            let Args { f_symbols, f_size, .. } = args;
            args = Args { f_symbols, f_size, ..LPF_NO_ARGS.get() };
        }
        assert_nothing_held("the program of a process");
        (self.spmd)(context.handle(), pid, processes, args);
    }
}

/// Runs `spmd` on up to `processes` processes.
///
/// # Safety
///
/// As the interface says: pointers and functions are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_exec(ctx: Handle, processes: Pid, spmd: Spmd, args: Args) -> Code {
    let exec = || {
        let programs = Programs::new("lpf_exec", spmd, args, false)?;
        let get = |process: &mut Process| process.check_health().map(|()| process.processors);
        // SAFETY: As the caller guarantees.
        let processors = unsafe { context::enter(ctx, "lpf_exec", get) }?;
        let processes = processes.clamp(1, processors);
        launch::run(processes as usize, processors, &|context| programs.call(context))
    };
    code(exec())
}

/// Runs `spmd` on the threads that have made `init` together.
///
/// # Safety
///
/// As the interface says: pointers and functions are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_hook(init: Init, spmd: Spmd, args: Args) -> Code {
    let hook = || {
        let programs = Programs::new("lpf_hook", spmd, args, true)?;
        // SAFETY: As the caller guarantees.
        let member = unsafe { init.cast::<Member>().as_ref() };
        let member = member.ok_or_else(|| Misuse::Null("init").found("lpf_hook", 0))?;
        member.hook(&|context| programs.call(context))
    };
    code(hook())
}

/// Runs `spmd` on the processes of a context, in a fresh one.
///
/// # Safety
///
/// As the interface says: pointers and functions are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_rehook(ctx: Handle, spmd: Spmd, args: Args) -> Code {
    let rehook = || {
        let programs = Programs::new("lpf_rehook", spmd, args, true)?;
        // SAFETY: As the caller guarantees.
        let fresh = unsafe { context::enter(ctx, "lpf_rehook", Process::rehook) }?;
        let result = launch::run_process(fresh, &|context| programs.call(context));
        let note = |process: &mut Process| result.map_err(|_| process.fail());
        // SAFETY: As the caller guarantees.
        unsafe { context::enter(ctx, "lpf_rehook", note) }
    };
    code(rehook())
}

/// Registers memory on all processes, from the next sync on.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_register_global(
    ctx: Handle,
    pointer: *mut c_void,
    size: usize,
    memslot: *mut Slot,
) -> Code {
    // SAFETY: As the caller guarantees.
    unsafe { register(ctx, false, pointer, size, memslot) }
}

/// Registers memory for operations of this process.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_register_local(
    ctx: Handle,
    pointer: *mut c_void,
    size: usize,
    memslot: *mut Slot,
) -> Code {
    // SAFETY: As the caller guarantees.
    unsafe { register(ctx, true, pointer, size, memslot) }
}

/// Registers memory.
///
/// # Safety
///
/// As the interface says: pointers are valid.
unsafe fn register(
    ctx: Handle,
    is_local: bool,
    pointer: *mut c_void,
    size: usize,
    memslot: *mut Slot,
) -> Code {
    let function = if is_local { "lpf_register_local" } else { "lpf_register_global" };
    let register = |process: &mut Process| {
        process.check_health()?;
        let misuse = |misuse| process.misuse(function, misuse);
        if memslot.is_null() {
            return Err(misuse(Misuse::Null("memslot")));
        }
        if pointer.is_null() && size > 0 {
            return Err(misuse(Misuse::NullWithSize("pointer", size)));
        }
        let slot = process.register(is_local, Address::of(pointer.cast()), size);
        let slot = slot.map_err(|misuse| process.misuse(function, misuse))?;
        // SAFETY: It is not null, and valid as the caller guarantees.
        unsafe { memslot.write(slot.0) };
        Ok(())
    };
    // SAFETY: As the caller guarantees.
    code(unsafe { context::enter(ctx, function, register) })
}

/// Frees a slot.
///
/// # Safety
///
/// As the interface says: the context is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_deregister(ctx: Handle, memslot: Slot) -> Code {
    // SAFETY: As the caller guarantees.
    unsafe { operate(ctx, "lpf_deregister", |process| process.deregister(SlotId(memslot))) }
}

/// Enters a process that has not failed, for a call that may be a mistake of the program.
///
/// # Safety
///
/// As for [`context::enter`].
#[inline(always)]
pub(super) unsafe fn operate(
    ctx: Handle,
    function: &str,
    operate: impl FnOnce(&mut Process) -> std::result::Result<(), Misuse>,
) -> Code {
    let call = |process: &mut Process| {
        process.check_health()?;
        operate(process).map_err(|misuse| process.misuse(function, misuse))
    };
    // SAFETY: As the caller guarantees.
    code(unsafe { context::enter(ctx, function, call) })
}

/// Queues a put.
///
/// # Safety
///
/// As the interface says: the context is valid, and the slots until the next sync has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_put(
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
    unsafe { operate(ctx, "lpf_put", |process| process.put(source, destination, size)) }
}

/// Queues a get.
///
/// # Safety
///
/// As the interface says: the context is valid, and the slots until the next sync has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_get(
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
    unsafe { operate(ctx, "lpf_get", |process| process.get(source, destination, size)) }
}

/// Ends a superstep. Any attribute is one of a sync that does less, or of `talpf_sync`.
///
/// # Safety
///
/// As the interface says: the context is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_sync(ctx: Handle, _attr: SyncAttribute) -> Code {
    // SAFETY: As the caller guarantees.
    code(unsafe { context::enter(ctx, "lpf_sync", Process::sync) })
}

/// Describes the machine of a context.
///
/// # Safety
///
/// As the interface says: pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_probe(ctx: Handle, params: *mut Machine) -> Code {
    let probe = |process: &mut Process| {
        if params.is_null() {
            return Err(process.misuse("lpf_probe", Misuse::Null("params")));
        }
        let free_p = process.processors;
        let machine =
            Machine { p: processors::processors(), free_p, g: Some(gap), l: Some(latency) };
        // SAFETY: It is not null, and valid as the caller guarantees.
        unsafe { params.write(machine) };
        Ok(())
    };
    // SAFETY: As the caller guarantees.
    code(unsafe { context::enter(ctx, "lpf_probe", probe) })
}

extern "C" fn gap(processes: Pid, message_size: usize, _attr: SyncAttribute) -> f64 {
    machine::costs(processes).gap(message_size)
}

extern "C" fn latency(processes: Pid, _message_size: usize, _attr: SyncAttribute) -> f64 {
    machine::costs(processes).latency()
}

/// Sets the number of slots from the next sync on.
///
/// # Safety
///
/// As the interface says: the context is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_resize_memory_register(ctx: Handle, max_regs: usize) -> Code {
    let resize = |process: &mut Process| {
        process.check_health()?;
        process.resize_register(max_regs)
    };
    // SAFETY: As the caller guarantees.
    code(unsafe { context::enter(ctx, "lpf_resize_memory_register", resize) })
}

/// Sets the number of messages from the next sync on.
///
/// # Safety
///
/// As the interface says: the context is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_resize_message_queue(ctx: Handle, max_msgs: usize) -> Code {
    let resize = |process: &mut Process| {
        process.check_health()?;
        process.resize_queue(max_msgs)
    };
    // SAFETY: As the caller guarantees.
    code(unsafe { context::enter(ctx, "lpf_resize_message_queue", resize) })
}

/// Ends the program, with status 6.
///
/// # Safety
///
/// As the interface says: the context is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lpf_abort(ctx: Handle) -> Code {
    let pid = |process: &mut Process| Ok(process.pid);
    // SAFETY: As the caller guarantees.
    match unsafe { context::enter(ctx, "lpf_abort", pid) } {
        Ok(pid) => misuse::end_program(&format!("lpf: process {pid}: lpf_abort: was called\n")),
        Err(Error::OutOfMemory | Error::Fatal) => LPF_ERR_FATAL,
    }
}
