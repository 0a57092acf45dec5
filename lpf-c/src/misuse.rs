//! Misuse of the interface by a program: named in one line when calls are checked, and an error otherwise.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Mistake of a program that the library can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misuse {
    #[error("the context is not one of this library")]
    Context,
    #[error("the context is in use by a call that has not returned")]
    ContextBusy,
    #[error("the pointer `{0}` is null")]
    Null(&'static str),
    #[error("`{0}` is null, but its size is {1}")]
    NullWithSize(&'static str, usize),
    #[error("process {pid} is out of range: there are {processes}")]
    Pid { pid: u32, processes: usize },
    #[error("slot {0:#x} of the {1} is not registered")]
    UnknownSlot(usize, Side),
    #[error("slot {0:#x} of the {1} is global and not active before the next sync")]
    InactiveSlot(usize, Side),
    #[error("slot {0:#x} of the {1} is local, and another process cannot reach it")]
    LocalSlot(usize, Side),
    #[error("slot {0:#x} is deregistered while a message of this superstep uses it")]
    SlotInUse(usize),
    #[error("offset {offset} plus size {size} of the {side} is more than an address can hold")]
    Overflow { side: Side, offset: usize, size: usize },
    #[error("bytes {offset} to {end} of the {side} are past the end of its slot of {slot} bytes")]
    OutOfBounds { side: Side, offset: usize, end: usize, slot: usize },
    #[error("the memory register has room for {0} slots, and all are taken; resize it and sync")]
    RegisterFull(usize),
    #[error("the message queue has room for {0} messages, and is full; resize it and sync")]
    QueueFull(usize),
    #[error(
        "the message queue of process {pid} has room for {limit}, which {sent} messages from it and {received} \
         to it exceed, {own} of them from it to itself"
    )]
    TooManyMessages { pid: usize, sent: usize, received: usize, own: usize, limit: usize },
    #[error("global slots were not registered and deregistered alike on all processes")]
    RegistersDiffer,
    #[error("memory that this superstep reads is also written by it")]
    ReadWriteConflict,
    #[error("the 8 bytes at offset {0} are not aligned as an atomic operation needs")]
    Unaligned(usize),
    #[error(
        "lower bound {lo}, upper bound {hi} and stride {stride} do not select from {processes} processes"
    )]
    Selection { lo: u32, hi: u32, stride: u32, processes: usize },
    #[error("the other processes of the collective have not made the same call")]
    CollectiveMismatch,
    #[error(
        "an element of {size} bytes is larger than the {most} that the collective was made for"
    )]
    ElementTooLarge { size: usize, most: usize },
    #[error("{0} messages have arrived in a round that expected {1}")]
    TooManyArrivals(u64, u64),
    #[error("this attribute of a sync is unknown: {0:#x}")]
    SyncAttribute(u32),
}

/// End of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Source,
    Destination,
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Side::Source => "source",
            Side::Destination => "destination",
        })
    }
}

impl Misuse {
    /// Reports the mistake if calls are checked, and ends the program; otherwise returns the error for it.
    #[cold]
    pub(crate) fn found(self, function: &str, pid: usize) -> Error {
        if is_checked() {
            end_program(&format!("lpf: process {pid}: {function}: {self}\n"));
        }
        match self {
            Misuse::QueueFull(_) | Misuse::RegisterFull(_) => Error::OutOfMemory,
            _ => Error::Fatal,
        }
    }
}

/// Returns `true` unless `LPF_CHECK` is `0` or `off`.
pub(crate) fn is_checked() -> bool {
    static CHECKED: OnceLock<bool> = OnceLock::new();
    *CHECKED.get_or_init(|| {
        let value = std::env::var("LPF_CHECK").unwrap_or_default();
        !["0", "off", "no"].contains(&value.trim())
    })
}

/// Exit status of a program that was ended.
const STATUS: i32 = 6;

/// Writes one line to the error stream, and ends the program. Of several threads the first one does.
pub(crate) fn end_program(line: &str) -> ! {
    static ENDING: AtomicBool = AtomicBool::new(false);
    if ENDING.swap(true, Ordering::AcqRel) {
        loop {
            std::thread::park();
        }
    }
    crate::streams::flush_output();
    // A closed error stream must not keep the program from ending.
    let _ = std::io::stderr().write_all(line.as_bytes());
    crate::streams::exit_at_once(STATUS)
}
