#![allow(unsafe_code, reason = "the provider writes to memory that a claim has named")]
//! Fetches: long writes of peers, whose bytes this process reads.
//!
//! A peer announces bytes for memory of this process (see `announcements`). The claim is checked here, and
//! a *fetch* reads the bytes of the peer to that memory. Whoever deregisters memory, or gives a peer up,
//! cancels its fetches. As libfabric may never say how those end that are under way, the [`Reader`] is closed
//! then; all others begin again with a new one.
//!
//! All of it belongs to the holder of the inbox.

use std::{collections::VecDeque, ffi::c_void, mem, ptr::NonNull};

use rustix::event::epoll;

use super::{
    OfiRail,
    abi::Completion,
    announcements::{BLOCK_BYTES, BLOCKS},
    endpoint::Started,
    incoming::Arrived,
    memory::Contexts,
    packet::{Announcement, Control},
    progress::Inbox,
    queue::Taken,
    reader::{Exposed, Reader},
};
use crate::{
    Access, CompletionStatus,
    rail::{
        RailEvent,
        frame::{KeyClaim, Malformed},
        registrations::KeyNumber,
    },
};

/// Most fetches that the provider has.
const MOST: usize = 64;

/// Fetches of this process.
pub(super) struct Fetches {
    /// Opened for the first fetch, and after a loss.
    reader: Option<Reader>,
    contexts: Contexts,
    /// Fetches that the provider has, by their contexts.
    under_way: [Option<Fetch>; MOST],
    /// Number of fetches that the provider has.
    count: usize,
    /// Set if the reader is to be polled once, whatever the provider has: its event may wake for nothing.
    has_slept: bool,
    /// Fetches that were not begun, the oldest first.
    waiting: VecDeque<Fetch>,
    /// Answers that were not sent: the process, the block of its announcement, the status.
    answers: VecDeque<(u32, u32, CompletionStatus)>,
    /// Memory with the bytes that peers announce, by process.
    exposed: Box<[Option<Exposed>]>,
    /// Announcements of each process that were not answered: a bit for each first block.
    announced: Box<[u128]>,
}

#[derive(Clone, Copy)]
struct Fetch {
    from: u32,
    announcement: Announcement,
    local: NonNull<[u8]>,
    /// Descriptor of the registration of the memory, for local operations.
    descriptor: *mut c_void,
}

// SAFETY: memory and descriptor belong to a registration, which is not closed before the fetch has ended;
// any thread may use both.
unsafe impl Send for Fetch {}

impl Fetches {
    pub(super) fn new(processes: usize) -> Self {
        Self {
            reader: None,
            contexts: Contexts::new(MOST),
            under_way: [None; MOST],
            count: 0,
            has_slept: false,
            waiting: VecDeque::new(),
            answers: VecDeque::new(),
            exposed: vec![None; processes].into_boxed_slice(),
            announced: vec![0; processes].into_boxed_slice(),
        }
    }

    /// Notes the memory with the bytes that a peer announces.
    pub(super) fn expose(&mut self, process: u32, exposed: Option<Exposed>) {
        self.exposed[process as usize] = exposed;
    }

    /// Returns the reader, if there is one.
    pub(super) fn reader(&self) -> Option<&Reader> {
        self.reader.as_ref()
    }

    /// Notes that this process may have slept.
    pub(super) fn woken(&mut self) {
        self.has_slept = true;
    }

    /// Returns `true` if something waits for room of the provider.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.answers.is_empty()
    }

    /// Forgets a peer that is lost. Afterwards the provider writes none of its bytes.
    pub(super) fn lose(&mut self, process: u32) {
        self.cancel(|fetch| fetch.from == process);
        self.answers.retain(|(to, ..)| *to != process);
        self.announced[process as usize] = 0;
    }

    /// Refuses the announcements of which a fetch needs a key. Afterwards the provider writes nothing by it.
    pub(super) fn close(&mut self, key: KeyNumber) {
        let number = key.number();
        let needs_it =
            |fetch: &Fetch| [fetch.announcement.key, fetch.announcement.permit].contains(&number);
        for Fetch { from, announcement, .. } in self.cancel(needs_it) {
            self.answer(from, announcement.block, CompletionStatus::RemoteAccess);
        }
    }

    /// Ends an announcement of a peer, which gets an answer.
    fn answer(&mut self, to: u32, block: u32, status: CompletionStatus) {
        self.announced[to as usize] &= !(1 << block);
        self.answers.push_back((to, block, status));
    }

    /// Takes fetches back. If the provider has one of them, the reader is closed, and those that stay
    /// begin again.
    fn cancel(&mut self, is_cancelled: impl Fn(&Fetch) -> bool) -> Vec<Fetch> {
        if self.under_way.iter().flatten().any(&is_cancelled) {
            self.reader = None;
            let all = mem::replace(&mut self.under_way, [None; MOST]);
            self.count = 0;
            all.into_iter().flatten().for_each(|fetch| self.waiting.push_front(fetch));
        }
        let mut cancelled = Vec::new();
        self.waiting.retain(|fetch| {
            let is_kept = !is_cancelled(fetch);
            if !is_kept {
                cancelled.push(*fetch);
            }
            is_kept
        });
        cancelled
    }

    /// Takes a fetch that has ended from the provider.
    fn end(&mut self, context: *const c_void) -> Option<Fetch> {
        let number = self.contexts.number(context)?;
        let fetch = self.under_way[number].take()?;
        self.count -= 1;
        Some(fetch)
    }
}

impl OfiRail {
    /// Takes an announcement of a peer.
    pub(super) fn fetch(
        &self,
        from: u32,
        announcement: Announcement,
        inbox: &mut Inbox,
    ) -> Result<(), Malformed> {
        let fetches = &mut inbox.fetches;
        if fetches.exposed[from as usize].is_none() {
            return Err(Malformed("an announcement from no memory"));
        }
        let (block, length) = (announcement.block as usize, announcement.length as usize);
        if block >= BLOCKS || length == 0 || length > (BLOCKS - block) * BLOCK_BYTES {
            return Err(Malformed("an announcement beyond its memory"));
        }
        let announced = &mut fetches.announced[from as usize];
        if *announced & 1 << block != 0 {
            return Err(Malformed("an announcement of bytes that are announced already"));
        }
        *announced |= 1 << block;
        match self.target(&announcement) {
            Some((local, descriptor)) => {
                fetches.waiting.push_back(Fetch { from, announcement, local, descriptor });
                self.begin_fetches(fetches);
            }
            None => {
                fetches.answer(from, announcement.block, CompletionStatus::RemoteAccess);
                self.send_answers(fetches);
            }
        }
        Ok(())
    }

    /// Returns the memory for the bytes of an announcement, if the claim is allowed.
    fn target(&self, announcement: &Announcement) -> Option<(NonNull<[u8]>, *mut c_void)> {
        let claim = |key, offset| KeyClaim { key, offset };
        let is_allowed = |permit| {
            let nothing = claim(permit, 0);
            self.registrations.with(nothing, 0, Access::REMOTE_WRITE, |_| ()).is_some()
        };
        if announcement.permit != 0 && !is_allowed(announcement.permit) {
            return None;
        }
        let length = u64::from(announcement.length);
        let at = claim(announcement.key, announcement.offset);
        let start = self.registrations.with(at, length, Access::REMOTE_WRITE, |start| start)?;
        let descriptor = self.local_descriptor(announcement.key)?;
        Some((NonNull::slice_from_raw_parts(start, announcement.length as usize), descriptor))
    }

    /// Goes on with fetches. Returns the number of completions.
    pub(super) fn advance_fetches(&self, inbox: &mut Inbox) -> usize {
        let Inbox { fetches, arrived, .. } = inbox;
        let is_polled = fetches.count > 0 || mem::take(&mut fetches.has_slept);
        if !is_polled && !fetches.has_waiting() {
            return 0;
        }
        let mut batch = [Completion::EMPTY; MOST];
        let mut count = 0;
        let reader = fetches.reader.as_ref().filter(|_| is_polled);
        match reader.map(|reader| reader.queue.take(&mut batch)) {
            Some(Taken::Completions(taken)) => {
                count = taken;
                for completion in &batch[..taken] {
                    let Some(fetch) = fetches.end(completion.op_context) else { continue };
                    let Fetch { from, announcement, .. } = fetch;
                    if let Some(notice) = announcement.notice {
                        arrived.push_back(Arrived::Event(RailEvent::Notice { from, notice }));
                    }
                    fetches.answer(from, announcement.block, CompletionStatus::Success);
                }
            }
            Some(Taken::Failure(entry)) => {
                count = 1;
                if let Some(fetch) = fetches.end(entry.op_context) {
                    self.fail_peer(fetch.from);
                }
            }
            Some(Taken::Nothing) | None => {}
        }
        self.begin_fetches(fetches);
        self.send_answers(fetches);
        count
    }

    /// Passes fetches to the provider.
    fn begin_fetches(&self, fetches: &mut Fetches) {
        while let Some(&Fetch { from, announcement, local, descriptor }) = fetches.waiting.front() {
            let Some(free) = fetches.under_way.iter().position(Option::is_none) else { return };
            if fetches.reader.is_none() {
                fetches.reader = self.open_reader();
            }
            let exposed = fetches.exposed[from as usize];
            let peer = self.outgoing.peer(from).filter(|peer| !peer.has_failed());
            let parts = fetches.reader.as_ref().zip(peer).zip(exposed);
            let started = parts.map(|((reader, peer), exposed)| {
                let remote = exposed.at(u64::from(announcement.block) * BLOCK_BYTES as u64);
                let context = fetches.contexts.pointer(free);
                // SAFETY: the memory is registered for writes of peers until its fetches were cancelled,
                // which closes the reader; this peer claims to write there now. The context is free.
                unsafe { reader.read(peer.address(), remote, local, descriptor, context) }
            });
            match started {
                Some(Started::NoRoom) => return,
                Some(Started::Yes) => {
                    fetches.under_way[free] = fetches.waiting.pop_front();
                    fetches.count += 1;
                }
                Some(Started::Failed(_)) | None => {
                    fetches.waiting.pop_front();
                    self.fail_peer(from);
                }
            }
        }
    }

    /// Opens an endpoint for reads, whose completions wake this process.
    fn open_reader(&self) -> Option<Reader> {
        let reader = self.endpoint.open_reader().ok()?;
        if let Some(descriptor) = reader.queue.descriptor() {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&self.sleep_on, descriptor, data, epoll::EventFlags::IN).ok()?;
        }
        Some(reader)
    }

    fn send_answers(&self, fetches: &mut Fetches) {
        if fetches.answers.is_empty() {
            return;
        }
        let packets = self.packets();
        fetches.answers.retain(|&(to, block, status)| {
            !packets.push_control(to, Control::Fetched { block, status })
        });
    }

    /// Marks a peer as one that is to be lost.
    fn fail_peer(&self, process: u32) {
        if let Some(peer) = self.outgoing.peer(process) {
            peer.fail();
        }
    }

    /// Ends the fetches that need a key, which no longer opens anything.
    pub(super) fn close_key(&self, key: KeyNumber) {
        let mut inbox = self.inbox.lock();
        inbox.fetches.close(key);
        self.begin_fetches(&mut inbox.fetches);
        self.send_answers(&mut inbox.fetches);
    }
}
