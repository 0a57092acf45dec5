//! The C interface of Lightweight Parallel Foundations (LPF), and of TALPF on the same types.
//!
//! C programs include `lpf/core.h` and are linked with `liblpf.so`. Their processes are threads of one operating
//! system process: a process is blocking code, so it is no task, and this crate stands on its own, beside `talpf`.
//!
//! - A `team` is what processes share: a `barrier`, and of each process its `message_queue` and its table of
//!   global slots.
//! - A `process` belongs to one thread. It queues puts and gets, and `sync` carries them out: each process
//!   copies what is written into its own memory.
//! - `launch`, `hook` and `abi` start processes, and give C programs the handle of a `context`.
//! - A `misuse` of the interface ends the program with a line that names it, unless `LPF_CHECK` is `off`.
//!
//! Only `abi` knows the types of C, and only `sync`, `immediate`, `collective`, `reduction` and `bsplib`
//! touch memory of the program. No call allocates on the way of a put, a get or a sync.

pub mod abi;

mod arrivals;
mod barrier;
mod bsplib;
mod check;
mod collective;
mod conflict;
mod context;
mod ends;
mod error;
mod hook;
mod immediate;
mod launch;
mod machine;
mod memory;
mod message_queue;
mod misuse;
mod process;
mod processors;
mod published;
mod reduction;
mod register;
mod scratch;
mod selection;
mod slot_id;
mod slot_table;
mod stack;
mod streams;
mod sync;
mod team;
mod view;
