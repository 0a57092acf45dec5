//! BSPlib on the supersteps of LPF: registration by address, buffered and unbuffered operations, and messages that
//! are queued at their destination.
//!
//! Processes publish what they have queued as a [`Step`], and take the others' after a barrier. Gets are read, a
//! second barrier is passed, and what was got and put is written; the third one gives the sources of unbuffered
//! puts back.
#![allow(unsafe_code, reason = "copies memory that C programs have registered")]

mod error;
mod registrations;

use std::sync::Arc;
use std::time::Instant;

use crate::memory::{self, Address};
use crate::process::Process;

pub(crate) use self::error::{BspError, BspResult};

use self::registrations::{Change, Registrations};

/// Bytes of an operation.
#[derive(Debug)]
enum Bytes {
    /// Read as the operation was queued.
    Buffered(Vec<u8>),
    /// Read as the superstep ends.
    Unbuffered(Address, usize),
}

/// Put into the memory of a process.
#[derive(Debug)]
struct Put {
    pid: usize,
    to: Address,
    bytes: Bytes,
}

/// Message to a process.
#[derive(Clone, Debug)]
struct Sent {
    pid: usize,
    message: Received,
}

/// Message at its destination.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) tag: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// Everything that a process has queued in a superstep, for the others to read.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// The process ends its use of BSPlib.
    is_last: bool,
    changes: Vec<Change>,
    tag_size: usize,
    puts: Vec<Put>,
    sends: Vec<Sent>,
}

/// Get into memory of this process.
struct Get {
    from: Address,
    to: Address,
    size: usize,
}

/// State of a process.
pub(crate) struct Bsplib {
    pub(crate) pid: usize,
    pub(crate) processes: usize,
    begun: Instant,
    registrations: Registrations,
    /// Size of tags in this superstep, and from the next one on.
    tag_size: usize,
    next_tag_size: usize,
    step: Step,
    gets: Vec<Get>,
    /// Messages whose payload is read as the superstep ends.
    unbuffered: Vec<(usize, Vec<u8>, Address, usize)>,
    received: Vec<Received>,
    /// Number of received messages that were moved.
    moved: usize,
    failed: bool,
}

impl Bsplib {
    pub(crate) fn new(pid: usize, processes: usize) -> Self {
        Bsplib {
            pid,
            processes,
            begun: Instant::now(),
            registrations: Registrations::default(),
            tag_size: 0,
            next_tag_size: 0,
            step: Step::default(),
            gets: Vec::new(),
            unbuffered: Vec::new(),
            received: Vec::new(),
            moved: 0,
            failed: false,
        }
    }

    /// Returns the seconds since BSPlib was begun.
    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Registers memory from the next superstep on.
    pub(crate) fn push_reg(&mut self, address: Address, size: usize) -> BspResult<()> {
        if address == Address(0) && size > 0 {
            return Err(BspError::NullPointer);
        }
        self.step.changes.push(self.registrations.push(address, size));
        Ok(())
    }

    /// Gives up the latest registration of an address from the next superstep on.
    pub(crate) fn pop_reg(&mut self, address: Address) -> BspResult<()> {
        let popped = self.registrations.pop(self.pid, address);
        self.step.changes.push(popped.ok_or(BspError::MemoryNotRegistered)?);
        Ok(())
    }

    fn check_pid(&self, pid: u32) -> BspResult<usize> {
        let pid = pid as usize;
        if pid < self.processes { Ok(pid) } else { Err(BspError::PidOutOfRange) }
    }

    /// Returns the address at a process of `size` bytes at `offset` of what is registered here at `address`.
    fn resolve(
        &self,
        pid: u32,
        address: Address,
        offset: usize,
        size: usize,
    ) -> BspResult<(usize, Address)> {
        let pid = self.check_pid(pid)?;
        if address == Address(0) {
            return Err(BspError::NullPointer);
        }
        let found = self.registrations.find(self.pid, address, pid);
        let (at, whole) = found.ok_or(BspError::MemoryNotRegistered)?;
        if offset > whole || size > whole - offset {
            return Err(BspError::MemoryAccessOutOfRange);
        }
        Ok((pid, at.at(offset)))
    }

    /// Queues a put.
    ///
    /// # Safety
    ///
    /// The source is memory of the program, now, or until the next sync has ended if it is not buffered.
    pub(crate) unsafe fn put(
        &mut self,
        pid: u32,
        from: Address,
        (to, offset): (Address, usize),
        size: usize,
        is_buffered: bool,
    ) -> BspResult<()> {
        if size == 0 {
            return Ok(());
        }
        let (pid, to) = self.resolve(pid, to, offset, size)?;
        if from == Address(0) {
            return Err(BspError::NullPointer);
        }
        let bytes = match is_buffered {
            // SAFETY: As the caller guarantees.
            true => Bytes::Buffered(unsafe { memory::read(from, size) }),
            false => Bytes::Unbuffered(from, size),
        };
        self.step.puts.push(Put { pid, to, bytes });
        Ok(())
    }

    /// Queues a get.
    pub(crate) fn get(
        &mut self,
        pid: u32,
        (from, offset): (Address, usize),
        to: Address,
        size: usize,
    ) -> BspResult<()> {
        if size == 0 {
            return Ok(());
        }
        let (_, from) = self.resolve(pid, from, offset, size)?;
        if to == Address(0) {
            return Err(BspError::NullPointer);
        }
        self.gets.push(Get { from, to, size });
        Ok(())
    }

    /// Sets the size of tags from the next superstep on, and returns that of this one.
    pub(crate) fn set_tag_size(&mut self, size: usize) -> usize {
        self.next_tag_size = size;
        self.tag_size
    }

    /// Queues a message.
    ///
    /// # Safety
    ///
    /// Tag and payload are memory of the program, the payload until the next sync has ended if it is not buffered.
    pub(crate) unsafe fn send(
        &mut self,
        pid: u32,
        tag: Address,
        (payload, size): (Address, usize),
        is_buffered: bool,
    ) -> BspResult<()> {
        let pid = self.check_pid(pid)?;
        let is_null = |address, size| address == Address(0) && size > 0;
        if is_null(tag, self.tag_size) || is_null(payload, size) {
            return Err(BspError::NullPointer);
        }
        // SAFETY: As the caller guarantees.
        let tag = unsafe { memory::read(tag, self.tag_size) };
        if is_buffered {
            // SAFETY: As the caller guarantees.
            let payload = unsafe { memory::read(payload, size) };
            self.step.sends.push(Sent { pid, message: Received { tag, payload } });
        } else {
            self.unbuffered.push((pid, tag, payload, size));
        }
        Ok(())
    }

    /// Returns the messages that have not been moved.
    pub(crate) fn waiting(&self) -> &[Received] {
        &self.received[self.moved..]
    }

    /// Takes the first message that has not been moved, which stays until the next sync.
    pub(crate) fn take(&mut self) -> Option<&Received> {
        let first = self.received.get(self.moved)?;
        self.moved += 1;
        Some(first)
    }

    /// Ends a superstep, or the use of BSPlib.
    pub(crate) fn sync(&mut self, process: &mut Process, is_last: bool) -> BspResult<()> {
        let ended = self.end_superstep(process, is_last);
        if ended == Err(BspError::Fatal) {
            self.failed = true;
        }
        ended
    }

    fn end_superstep(&mut self, process: &mut Process, is_last: bool) -> BspResult<()> {
        let fatal = |_| BspError::Fatal;
        if self.failed {
            return Err(BspError::Fatal);
        }
        let mut step = std::mem::take(&mut self.step);
        step.is_last = is_last;
        step.tag_size = self.next_tag_size;
        for (pid, tag, payload, size) in self.unbuffered.drain(..) {
            // SAFETY: The program keeps the payload until the sync has ended.
            let payload = unsafe { memory::read(payload, size) };
            step.sends.push(Sent { pid, message: Received { tag, payload } });
        }
        process.publish(Arc::new(step));
        process.sync().map_err(fatal)?;
        let steps: Option<Vec<Arc<Step>>> =
            (0..self.processes).map(|pid| process.published(pid)).collect();
        let steps = steps.ok_or(BspError::Fatal)?;
        if steps.iter().any(|step| step.is_last != is_last) {
            return Err(BspError::Fatal);
        }
        if is_last {
            return Ok(());
        }
        let gets = std::mem::take(&mut self.gets);
        // SAFETY: Addresses of peers are in registered memory, which the program keeps; nobody writes before the
        // next barrier.
        let read = |get: &Get| unsafe { memory::read(get.from, get.size) };
        let got: Vec<_> = gets.iter().map(read).collect();
        process.sync().map_err(fatal)?;
        for (get, bytes) in gets.iter().zip(&got) {
            // SAFETY: The program keeps the memory until the sync has ended.
            unsafe { memory::write(bytes, get.to) };
        }
        self.received.clear();
        self.moved = 0;
        for step in &steps {
            for put in step.puts.iter().filter(|put| put.pid == self.pid) {
                match &put.bytes {
                    // SAFETY: The address is in registered memory of this process, which alone writes there.
                    Bytes::Buffered(bytes) => unsafe { memory::write(bytes, put.to) },
                    // SAFETY: As before; the source is not changed before the next barrier.
                    Bytes::Unbuffered(from, size) => unsafe { memory::copy(*from, put.to, *size) },
                }
            }
            let sent = step.sends.iter().filter(|send| send.pid == self.pid);
            self.received.extend(sent.map(|send| send.message.clone()));
        }
        process.sync().map_err(fatal)?;
        let changes: Vec<_> = steps.iter().map(|step| &step.changes[..]).collect();
        self.registrations.apply(&changes)?;
        if steps.iter().any(|step| step.tag_size != self.next_tag_size) {
            self.next_tag_size = self.tag_size;
            return Err(BspError::TagsizeMismatch);
        }
        self.tag_size = self.next_tag_size;
        Ok(())
    }
}
