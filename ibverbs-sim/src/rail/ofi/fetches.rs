#![allow(unsafe_code, reason = "the provider writes to memory that a claim has named")]
//! Fetches: bytes of peers that this process reads, those of their long writes and of the answers to its own long
//! reads.
//!
//! A peer announces pieces (see `announcements`). The claim of a write is checked here, and a *fetch* reads a piece
//! to the memory where it belongs. Whoever deregisters memory, gives a peer up, or cancels a read of its own,
//! cancels its fetches. As libfabric may never say how those end that are under way, the [`Reader`] is closed
//! then; all others begin again with a new one.
//!
//! All of it belongs to the holder of the inbox.

use std::{collections::VecDeque, ffi::c_void, mem, ptr::NonNull};

use rustix::event::epoll;

use super::{
    OfiRail,
    abi::Completion,
    announcements::Announcements,
    blocks::{BLOCK_BYTES, BLOCKS},
    endpoint::Started,
    incoming::Arrived,
    memory::Contexts,
    packet::{Announcement, Control, ReadPiece, ReadRequest},
    progress::Inbox,
    queue::Taken,
    reader::{Exposed, Reader},
    reads::{LongRead, Reads, Target},
};
use crate::{
    Access, CompletionStatus,
    rail::{
        RailAddress, RailError, RailEvent,
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
    /// Long reads of this process.
    reads: Reads,
}

#[derive(Clone, Copy)]
struct Fetch {
    from: u32,
    /// First block of the piece.
    block: u32,
    length: u32,
    purpose: Purpose,
    local: NonNull<[u8]>,
    /// Descriptor of the registration of the memory, for local operations.
    descriptor: *mut c_void,
}

/// Purpose of a fetch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A piece of a write of the peer. `keys` are those that it needs; the last piece that ends has the notice.
    Write { transfer: u32, keys: [u64; 2], notice: Option<u32> },
    /// A piece of a read of this process, by the number of that.
    Read(u32),
}

// SAFETY: memory and descriptor belong to a registration, or to a read, which is not closed before the fetch has
// ended; any thread may use both.
unsafe impl Send for Fetch {}

impl Fetch {
    /// Returns `true` for a piece of a read of this process.
    fn is_of_read(&self, process: u32, number: u32) -> bool {
        self.from == process && self.purpose == Purpose::Read(number)
    }

    /// Returns `true` for a piece of a write of a peer.
    fn is_of_write(&self, process: u32, number: u32) -> bool {
        let is_it = matches!(self.purpose, Purpose::Write { transfer, .. } if transfer == number);
        self.from == process && is_it
    }
}

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
            reads: Reads::new(processes),
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

    /// Forgets a peer that is lost, and passes the contexts of the reads from it to `sink`. Afterwards the provider
    /// writes none of its bytes.
    pub(super) fn lose(&mut self, process: u32, sink: impl FnMut(u64)) {
        self.cancel(|fetch| fetch.from == process);
        self.answers.retain(|(to, ..)| *to != process);
        self.announced[process as usize] = 0;
        self.reads.lose(process, sink);
    }

    /// Refuses the pieces of writes that need a key, and cancels the reads to memory that has it, whose contexts go
    /// to `sink`. Afterwards the provider writes nothing by it.
    fn close(&mut self, key: KeyNumber, mut sink: impl FnMut(u64)) {
        let number = key.number();
        let needs_it = |fetch: &Fetch| match fetch.purpose {
            Purpose::Write { keys, .. } => keys.contains(&number),
            Purpose::Read(_) => false,
        };
        self.refuse(needs_it);
        while let Some((process, read)) = self.reads.find(|_, read| read.local_key == Some(key)) {
            self.cancel_read(process, read).map(&mut sink);
        }
    }

    /// Cancels a read. Afterwards the provider writes none of its bytes. Returns its context.
    fn cancel_read(&mut self, process: u32, number: u32) -> Option<u64> {
        self.refuse(|fetch| fetch.is_of_read(process, number));
        self.reads.cancel(process, number)
    }

    /// Cancels fetches, whose peers get an answer.
    fn refuse(&mut self, is_refused: impl Fn(&Fetch) -> bool) {
        for Fetch { from, block, .. } in self.cancel(is_refused) {
            self.answer(from, block, CompletionStatus::RemoteAccess);
        }
    }

    /// Notes that the bytes of a fetch are there. Returns what this is the end of.
    fn arrived(&mut self, fetch: &Fetch) -> Option<RailEvent<'static>> {
        let &Fetch { from, block, length, purpose, .. } = fetch;
        self.answer(from, block, CompletionStatus::Success);
        match purpose {
            Purpose::Read(number) => {
                let (context, status) = self.reads.taken(from, number, length)?;
                Some(RailEvent::Completed { context, status })
            }
            Purpose::Write { transfer, notice, .. } => {
                let notice = notice?;
                // The announcement with the notice was the last one. The other pieces have ended, or are here.
                let all = self.under_way.iter_mut().flatten().chain(&mut self.waiting);
                let mut others = all.filter(|other| other.is_of_write(from, transfer));
                match others.next().map(|other| &mut other.purpose) {
                    Some(Purpose::Write { notice: later, .. }) => *later = Some(notice),
                    _ => return Some(RailEvent::Notice { from, notice }),
                }
                None
            }
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
            self.close_reader();
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

    /// Closes the reader. The fetches that the provider has begin again with another one.
    fn close_reader(&mut self) {
        self.reader = None;
        let all = mem::replace(&mut self.under_way, [None; MOST]);
        self.count = 0;
        all.into_iter().flatten().for_each(|fetch| self.waiting.push_front(fetch));
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
    /// Takes an announcement of a piece of a write.
    pub(super) fn fetch(
        &self,
        from: u32,
        announcement: Announcement,
        inbox: &mut Inbox,
    ) -> Result<(), Malformed> {
        let Announcement { block, length, transfer, key, permit, remaining, notice, .. } =
            announcement;
        if length > remaining {
            return Err(Malformed("a piece longer than its write"));
        }
        let target = self.target(&announcement);
        let purpose = Purpose::Write { transfer, keys: [key, permit], notice };
        self.fetch_to(from, (block, length), target, purpose, &mut inbox.fetches)
    }

    /// Takes an announcement of a piece of a read.
    pub(super) fn fetch_read(
        &self,
        from: u32,
        piece: ReadPiece,
        inbox: &mut Inbox,
    ) -> Result<(), Malformed> {
        let target = inbox.fetches.reads.announced(from, &piece)?;
        let (at, purpose) = ((piece.block, piece.length), Purpose::Read(piece.read));
        self.fetch_to(from, at, target, purpose, &mut inbox.fetches)
    }

    /// Takes the end of a read, of which no further piece comes.
    pub(super) fn end_read(
        &self,
        from: u32,
        number: u32,
        inbox: &mut Inbox,
    ) -> Result<(), Malformed> {
        let ended = inbox.fetches.reads.refused(from, number)?;
        inbox.arrived.extend(ended.map(completed));
        Ok(())
    }

    /// Reads a piece of a peer to its target, or refuses it if it has none.
    fn fetch_to(
        &self,
        from: u32,
        (block, length): (u32, u32),
        target: Option<Target>,
        purpose: Purpose,
        fetches: &mut Fetches,
    ) -> Result<(), Malformed> {
        if fetches.exposed[from as usize].is_none() {
            return Err(Malformed("an announcement from no memory"));
        }
        let (start, bytes) = (block as usize, length as usize);
        if start >= BLOCKS || bytes == 0 || bytes > (BLOCKS - start) * BLOCK_BYTES {
            return Err(Malformed("an announcement beyond its memory"));
        }
        let announced = &mut fetches.announced[from as usize];
        if *announced & 1 << block != 0 {
            return Err(Malformed("an announcement of bytes that are announced already"));
        }
        *announced |= 1 << block;
        match target {
            Some((local, descriptor)) => {
                let fetch = Fetch { from, block, length, purpose, local, descriptor };
                fetches.waiting.push_back(fetch);
                self.begin_fetches(fetches);
            }
            None => {
                fetches.answer(from, block, CompletionStatus::RemoteAccess);
                self.send_answers(fetches);
            }
        }
        Ok(())
    }

    /// Returns the memory for the bytes of an announcement, if the claim of its write is allowed.
    fn target(&self, announcement: &Announcement) -> Option<Target> {
        let claim = |key, offset| KeyClaim { key, offset };
        let is_allowed = |permit| {
            let nothing = claim(permit, 0);
            self.registrations.with(nothing, 0, Access::REMOTE_WRITE, |_| ()).is_some()
        };
        if announcement.permit != 0 && !is_allowed(announcement.permit) {
            return None;
        }
        let remaining = u64::from(announcement.remaining);
        let at = claim(announcement.key, announcement.offset);
        let start = self.registrations.with(at, remaining, Access::REMOTE_WRITE, |start| start)?;
        let descriptor = self.local_descriptor(announcement.key)?;
        Some((NonNull::slice_from_raw_parts(start, announcement.length as usize), descriptor))
    }

    /// Posts a long read. `None` if it is to be carried out by frames.
    ///
    /// # Safety
    ///
    /// `local` must be valid for writes, and be used by nobody else, until the read has ended, or
    /// [`cancel_long`](crate::Rail::cancel_long) has returned, or `deregister` with its local key has.
    pub(super) unsafe fn ask(
        &self,
        to: u32,
        (local, local_key): (NonNull<[u8]>, Option<KeyNumber>),
        remote: &RailAddress,
        permit: u64,
        context: u64,
    ) -> Option<Result<(), RailError>> {
        let length = u32::try_from(local.len()).ok().filter(|length| *length > 0)?;
        let descriptor = match local_key {
            Some(key) => self.local_descriptor(key.number())?,
            None if self.endpoint.needs_local() => return None,
            None => std::ptr::null_mut(),
        };
        let mut inbox = self.inbox.lock();
        let fetches = &mut inbox.fetches;
        // Whoever deregisters the key does so before it cancels, under this lock.
        if local_key.is_some_and(|key| !self.registrations.contains(key)) {
            return None;
        }
        if let Err(error) = self.peer(to) {
            return Some(Err(error));
        }
        fetches.exposed[to as usize]?;
        let no_room = Some(Err(RailError::NoRoom { process: to }));
        let Some(number) = fetches.reads.free(to) else { return no_room };
        let (key, offset) = (remote.key.number(), remote.offset);
        let request = ReadRequest { number, length, key, offset, permit };
        if !self.packets().push_control(to, Control::Read(request)) {
            return no_room;
        }
        fetches.reads.add(to, number, LongRead { local, local_key, descriptor, context });
        Some(Ok(()))
    }

    /// Goes on with fetches. Returns the number of completions.
    pub(super) fn advance_fetches(&self, inbox: &mut Inbox) -> usize {
        let Inbox { fetches, arrived, .. } = inbox;
        // A reader that connects gets on by being polled.
        let is_polled =
            mem::take(&mut fetches.has_slept) || fetches.count > 0 || !fetches.waiting.is_empty();
        if !is_polled && fetches.answers.is_empty() {
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
                    arrived.extend(fetches.arrived(&fetch).map(Arrived::Event));
                }
            }
            Some(Taken::Failure(entry)) => {
                count = 1;
                if let Some(fetch) = fetches.end(entry.op_context) {
                    self.fail_peer(fetch.from);
                }
                // A connection that ends within a read breaks the domain as closing it does, see `open_reader`.
                fetches.close_reader();
            }
            Some(Taken::Nothing) | None => {}
        }
        self.begin_fetches(fetches);
        self.send_answers(fetches);
        count
    }

    /// Passes fetches to the provider.
    fn begin_fetches(&self, fetches: &mut Fetches) {
        while let Some(&Fetch { from, block, local, descriptor, .. }) = fetches.waiting.front() {
            let Some(free) = fetches.under_way.iter().position(Option::is_none) else { return };
            if fetches.reader.is_none() {
                fetches.reader = self.open_reader();
            }
            let exposed = fetches.exposed[from as usize];
            let peer = self.outgoing.peer(from).filter(|peer| !peer.has_failed());
            let parts = fetches.reader.as_ref().zip(peer).zip(exposed);
            let started = parts.map(|((reader, peer), exposed)| {
                let remote = exposed.at(u64::from(block) * BLOCK_BYTES as u64);
                let context = fetches.contexts.pointer(free);
                // SAFETY: the memory is registered for writes of peers, or that of a read of this process, until
                // its fetches were cancelled, which closes the reader; this peer claims to write there now,
                // or the read asks for that. The context is free.
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

    /// Ends the fetches that need a key, which no longer opens anything, and own operations whose memory has it.
    pub(super) fn close_key(&self, key: KeyNumber) {
        let mut inbox = self.inbox.lock();
        let Inbox { fetches, arrived, .. } = &mut *inbox;
        let is_idle = arrived.is_empty();
        fetches.close(key, |context| {
            arrived.push_back(completed((context, CompletionStatus::LocalProtection)));
        });
        self.begin_fetches(fetches);
        self.send_answers(fetches);
        let has_ended = is_idle && !arrived.is_empty();
        drop(inbox);
        if let Some(announcements) = &self.announcements {
            announcements.close(key);
        }
        if has_ended || self.announcements.as_ref().is_some_and(Announcements::has_ended) {
            self.wake();
        }
    }

    /// Forgets a long read, whose memory is not used afterwards.
    pub(super) fn cancel_read(&self, from: u32, context: u64) {
        let mut inbox = self.inbox.lock();
        let fetches = &mut inbox.fetches;
        let is_it = |process, read: &LongRead| process == from && read.context == context;
        if let Some((process, number)) = fetches.reads.find(is_it) {
            fetches.cancel_read(process, number);
            self.begin_fetches(fetches);
            self.send_answers(fetches);
        }
    }
}

fn completed((context, status): (u64, CompletionStatus)) -> Arrived {
    Arrived::Event(RailEvent::Completed { context, status })
}
