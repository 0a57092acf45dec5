//! Types of the interface.

use std::ffi::{c_int, c_uint, c_void};

/// `lpf_t`: handle of a context.
pub type Handle = *mut c_void;
/// `lpf_pid_t`: number of a process, or of processes.
pub type Pid = c_uint;
/// `lpf_err_t`: result of a function.
pub type Code = c_int;
/// `lpf_memslot_t`: number of a memory slot.
pub type Slot = usize;
/// `lpf_msg_attr_t`: attribute of an operation.
pub type MessageAttribute = c_int;
/// `lpf_sync_attr_t`: attribute of a sync.
pub type SyncAttribute = c_int;
/// `lpf_init_t`: handle of a thread that will hook.
pub type Init = *mut c_void;
/// `lpf_func_t`: function of unspecified parameters.
pub type Function = Option<extern "C" fn()>;
/// `lpf_spmd_t`: program of a process.
pub type Spmd = Option<extern "C" fn(Handle, Pid, Pid, Args)>;

/// `lpf_args_t`: what is passed to processes, and what comes back.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Args {
    /// Input of process 0.
    pub input: *const c_void,
    /// Size of the input in bytes.
    pub input_size: usize,
    /// Output of process 0.
    pub output: *mut c_void,
    /// Size of the output in bytes.
    pub output_size: usize,
    /// Functions for all processes.
    pub f_symbols: *const Function,
    /// Number of functions.
    pub f_size: usize,
}

/// Cost of a machine: seconds for so many processes, messages of at least so many bytes, and a sync attribute.
pub type Cost = Option<extern "C" fn(Pid, usize, SyncAttribute) -> f64>;

/// `lpf_machine_t`: machine of a context.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Machine {
    /// Number of processors of the machine.
    pub p: Pid,
    /// Number of processors that `lpf_exec` can use.
    pub free_p: Pid,
    /// Seconds of a byte.
    pub g: Cost,
    /// Seconds of a superstep.
    pub l: Cost,
}

/// `lpf_coll_t`: collectives of a selection of processes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Coll {
    /// Context that the collectives were made in.
    pub ctx: Handle,
    /// State of the collectives; null for a process that does not take part in any.
    pub inv_translate: *mut Pid,
    /// Not used.
    pub translate: *mut Pid,
    /// Memory for an element of each process.
    pub buffer: *mut c_void,
    /// Slot that the collectives take.
    pub slot: Slot,
    /// Number of processes that take part.
    pub processes: Pid,
    /// Number of this process among those that take part.
    pub s: Pid,
}
