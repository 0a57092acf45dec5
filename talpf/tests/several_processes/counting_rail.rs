//! A rail over shared memory of which tests see what is called.
#![allow(unsafe_code, reason = "passes the calls of a rail on")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ibverbs_sim::{
    Access, Armed, Posted, Rail, RailAddress, RailError, RailEvent, RailKey, RailLimits,
    RailMemory, ShmRail,
};

/// A rail that counts its messages and their bytes, those it refuses, and its polls.
pub(crate) struct CountingRail {
    rail: ShmRail,
    counts: Arc<Counts>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) sent: AtomicUsize,
    pub(crate) messages: AtomicUsize,
    pub(crate) refused: AtomicUsize,
    pub(crate) polls: AtomicUsize,
    /// Set by a test: so many sleeps find nothing to sleep on.
    pub(crate) without_event: AtomicUsize,
}

impl CountingRail {
    pub(crate) fn new(rail: ShmRail, counts: &Arc<Counts>) -> Self {
        CountingRail { rail, counts: Arc::clone(counts) }
    }
}

// SAFETY of the calls in it: each passes the contract on.
impl Rail for CountingRail {
    fn process(&self) -> u32 {
        self.rail.process()
    }

    fn processes(&self) -> u32 {
        self.rail.processes()
    }

    fn limits(&self) -> RailLimits {
        self.rail.limits()
    }

    unsafe fn register(&self, memory: NonNull<[u8]>, access: Access) -> Result<RailKey, RailError> {
        // SAFETY: passed on.
        unsafe { self.rail.register(memory, access) }
    }

    fn allocate(&self, bytes: usize) -> Option<Box<dyn RailMemory>> {
        Rail::allocate(&self.rail, bytes)
    }

    fn deregister(&self, key: &RailKey) -> Result<(), RailError> {
        self.rail.deregister(key)
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), RailError> {
        let sent = self.rail.send(to, bytes);
        match sent {
            Ok(()) => {
                self.counts.messages.fetch_add(1, Ordering::SeqCst);
                self.counts.sent.fetch_add(bytes.len(), Ordering::SeqCst)
            }
            Err(_) => self.counts.refused.fetch_add(1, Ordering::SeqCst),
        };
        sent
    }

    unsafe fn write(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        notice: Option<u32>,
        context: u64,
    ) -> Result<Posted, RailError> {
        // SAFETY: passed on.
        unsafe { self.rail.write(to, local, remote, notice, context) }
    }

    unsafe fn read(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError> {
        // SAFETY: passed on.
        unsafe { self.rail.read(to, local, remote, context) }
    }

    unsafe fn write_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        // SAFETY: passed on.
        unsafe { self.rail.write_at_once(to, local, remote, permit) }
    }

    unsafe fn read_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        // SAFETY: passed on.
        unsafe { self.rail.read_at_once(to, local, remote, permit) }
    }

    fn poll(&self, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize {
        self.counts.polls.fetch_add(1, Ordering::SeqCst);
        self.rail.poll(sink)
    }

    fn has_unsent(&self) -> bool {
        self.rail.has_unsent()
    }

    fn arm(&self) -> Armed<'_> {
        let left = &self.counts.without_event;
        let less =
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if less.is_ok() { Armed::Nothing } else { self.rail.arm() }
    }

    fn announces_room(&self, to: u32) -> bool {
        self.rail.announces_room(to)
    }
}
