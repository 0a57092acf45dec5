//! Two rails of one process that lead to each other, driven by one thread.
#![allow(unsafe_code, reason = "memory of tests is registered, written and read")]

use std::{collections::VecDeque, ptr::NonNull, slice, sync::Arc};

use ibverbs_sim::{
    Access, CompletionStatus, LossReason, Posted, Rail, RailAddress, RailError, RailEvent, RailKey,
};

/// Memory of a test. It is used through pointers while it is registered.
pub(crate) struct Memory {
    bytes: NonNull<[u8]>,
    _owner: Box<dyn Send + Sync>,
}

// SAFETY: the memory belongs to its owner, which may go to other threads.
unsafe impl Send for Memory {}
// SAFETY: the tests keep apart what threads do with it.
unsafe impl Sync for Memory {}

impl Memory {
    /// Takes memory that lives as long as its owner.
    pub(crate) fn new(bytes: NonNull<[u8]>, owner: impl Send + Sync + 'static) -> Self {
        Self { bytes, _owner: Box::new(owner) }
    }

    /// Allocates memory that no rail knows.
    pub(crate) fn private(length: usize) -> Self {
        let mut bytes = vec![0; length].into_boxed_slice();
        let start = NonNull::from(&mut bytes[..]).cast();
        Self::new(NonNull::slice_from_raw_parts(start, length), bytes)
    }

    pub(crate) fn all(&self) -> NonNull<[u8]> {
        self.bytes
    }

    pub(crate) fn part(&self, offset: usize, length: usize) -> NonNull<[u8]> {
        assert!(offset + length <= self.bytes.len());
        // SAFETY: the offset lies within the memory.
        NonNull::slice_from_raw_parts(unsafe { self.bytes.cast().add(offset) }, length)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes_of(0, self.bytes.len())
    }

    pub(crate) fn bytes_of(&self, offset: usize, length: usize) -> Vec<u8> {
        let part = self.part(offset, length).cast().as_ptr();
        // SAFETY: no operation on this part is under way while a test reads it.
        unsafe { slice::from_raw_parts(part, length) }.to_vec()
    }

    pub(crate) fn fill(&self, offset: usize, bytes: &[u8]) {
        let target = self.part(offset, bytes.len()).cast().as_ptr();
        // SAFETY: as above; the part is as long.
        unsafe { std::ptr::copy(bytes.as_ptr(), target, bytes.len()) };
    }
}

/// Events of a rail, kept.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) messages: VecDeque<Vec<u8>>,
    pub(crate) notices: VecDeque<u32>,
    pub(crate) completions: VecDeque<(u64, CompletionStatus)>,
    pub(crate) losses: Vec<(u32, LossReason)>,
}

impl Events {
    fn keep(&mut self, event: RailEvent<'_>) {
        match event {
            RailEvent::Message { bytes, .. } => self.messages.push_back(bytes.to_vec()),
            RailEvent::Notice { notice, .. } => self.notices.push_back(notice),
            RailEvent::Completed { context, status } => {
                self.completions.push_back((context, status));
            }
            RailEvent::Lost { process, reason } => self.losses.push((process, reason)),
            other => panic!("{other:?}"),
        }
    }
}

/// Rails 0 and 1, their events, and a maker of memory for each.
pub(crate) struct Ends {
    rails: [Option<Arc<dyn Rail>>; 2],
    pub(crate) events: [Events; 2],
    pub(crate) memory: [Box<dyn Fn(usize) -> Memory + Send + Sync>; 2],
}

impl Ends {
    /// Makes the ends of two rails whose memory is private.
    pub(crate) fn new(rails: [Arc<dyn Rail>; 2]) -> Self {
        let private = || Box::new(Memory::private) as Box<dyn Fn(usize) -> Memory + Send + Sync>;
        let memory = [private(), private()];
        Self { rails: rails.map(Some), events: Default::default(), memory }
    }

    pub(crate) fn rail(&self, end: usize) -> Arc<dyn Rail> {
        Arc::clone(self.rails[end].as_ref().unwrap())
    }

    /// Drops rail 1.
    pub(crate) fn end(&mut self) {
        self.memory[1] = Box::new(Memory::private);
        self.rails[1] = None;
    }

    pub(crate) fn poll(&mut self) {
        for (rail, events) in self.rails.iter().zip(&mut self.events) {
            if let Some(rail) = rail {
                rail.poll(&mut |event| events.keep(event));
            }
        }
    }

    /// Polls both until `found` finds something.
    pub(crate) fn until<R>(&mut self, mut found: impl FnMut(&mut [Events; 2]) -> Option<R>) -> R {
        for _ in 0..10_000_000 {
            if let Some(result) = found(&mut self.events) {
                return result;
            }
            self.poll();
        }
        panic!("nothing comes");
    }

    /// Repeats a call until it has room.
    pub(crate) fn with_room<R>(&mut self, mut call: impl FnMut() -> Result<R, RailError>) -> R {
        loop {
            match call() {
                Ok(result) => return result,
                Err(RailError::NoRoom { .. }) => self.poll(),
                Err(other) => panic!("{other}"),
            }
        }
    }

    pub(crate) fn register(&self, end: usize, memory: &Memory, access: Access) -> RailKey {
        // SAFETY: tests deregister, or drop the rail, before the memory goes.
        unsafe { self.rail(end).register(memory.all(), access) }.unwrap()
    }

    /// Posts an operation from `end` to the other one.
    pub(crate) fn post(
        &self,
        end: usize,
        is_write: bool,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        notice: Option<u32>,
        context: u64,
    ) -> Result<Posted, RailError> {
        let (rail, to) = (self.rail(end), 1 - end as u32);
        if is_write {
            // SAFETY: tests keep memory of operations that are under way.
            unsafe { rail.write(to, local, remote, notice, context) }
        } else {
            // SAFETY: as above.
            unsafe { rail.read(to, local, remote, context) }
        }
    }

    /// Carries an operation out, and returns its status.
    pub(crate) fn carry_out(
        &mut self,
        end: usize,
        is_write: bool,
        local: NonNull<[u8]>,
        remote: RailAddress,
        notice: Option<u32>,
    ) -> CompletionStatus {
        loop {
            match self.post(end, is_write, local, &remote, notice, 77) {
                Ok(Posted::Ended(status)) => return status,
                Ok(Posted::UnderWay) => {
                    let (context, status) =
                        self.until(|events| events[end].completions.pop_front());
                    assert_eq!(context, 77);
                    return status;
                }
                Err(RailError::NoRoom { .. }) => self.poll(),
                Err(other) => panic!("{other}"),
            }
        }
    }
}

pub(crate) fn at(key: RailKey, offset: u64) -> RailAddress {
    RailAddress { key, offset }
}
