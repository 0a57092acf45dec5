#![allow(unsafe_code, reason = "the provider writes to memory that a claim has named")]
//! Fetches: bytes of peers that this process reads, those of their long writes and of the answers to its own long
//! reads.
//!
//! A peer announces them (see `announcements`). The claim of a write is checked here, and *fetches* read the
//! bytes, piece by piece, to the memory where they belong. Whoever deregisters memory, gives a peer up, or cancels a read of
//! its own, cancels its fetches. As libfabric may never say how those end that are under way, the [`Reader`] is closed
//! then; all others begin again with a new one.
//!
//! All of it belongs to the holder of the inbox.

use std::{collections::VecDeque, mem, ptr::NonNull};

use super::{
    OfiRail,
    abi::Completion,
    announcements::MOST,
    endpoint::Started,
    incoming::Arrived,
    outgoing::Peer,
    packet::{Announcement, Control, ReadAnswer, Target},
    pieces::{Fetch, MOST_UNDER_WAY, Pieces},
    progress::Inbox,
    queue::Taken,
    reader::{Exposed, Reader},
    reads::{Destination, LongRead, Reads},
};
use crate::{
    Access, CompletionStatus,
    rail::{
        RailEvent,
        frame::{KeyClaim, Malformed},
        registrations::KeyNumber,
    },
};

/// Most bytes of a fetch.
const PIECE_BYTES: usize = 512 << 10;

/// Fetches of this process.
pub(super) struct Fetches {
    /// Opened for the first fetch, and after a loss.
    reader: Option<Reader>,
    pieces: Pieces,
    /// Set if endpoints are to be polled once, whatever they have: their events may wake for nothing.
    has_slept: bool,
    /// Answers that were not sent.
    answers: VecDeque<Answer>,
    /// Addresses of the responders of peers, by process.
    pub(super) responders: Box<[Option<Vec<u8>>]>,
    /// Announcements that were not answered, by process, and by number.
    announced: Box<[Vec<Option<Announced>>]>,
    /// Long reads of this process.
    pub(super) reads: Reads,
}

/// An announcement of a peer.
#[derive(Clone, Copy)]
struct Announced {
    purpose: Purpose,
    /// Bytes that were not fetched.
    left: usize,
}

/// Purpose of an announcement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A write of the peer. `keys` are those that it needs.
    Write { keys: [u64; 2], notice: Option<u32> },
    /// A read of this process, by its number.
    Read(u32),
}

/// Answer to an announcement.
struct Answer {
    to: u32,
    frame: Control<'static>,
    /// End of the operation. It is passed on once the answer was sent, so that the peer gets nothing that follows
    /// from it before.
    event: Option<RailEvent<'static>>,
}

impl Fetches {
    pub(super) fn new(processes: usize) -> Self {
        Self {
            reader: None,
            pieces: Pieces::new(processes),
            has_slept: false,
            answers: VecDeque::new(),
            responders: vec![None; processes].into_boxed_slice(),
            announced: (0..processes).map(|_| Vec::new()).collect(),
            reads: Reads::new(processes),
        }
    }

    /// Takes the address of the responder of a peer, which has no other one any more.
    pub(super) fn expose(&mut self, process: u32, address: &[u8]) {
        self.responders[process as usize] = (!address.is_empty()).then(|| address.to_vec());
        if let Some(reader) = &mut self.reader {
            reader.forget(process);
        }
        self.leave(|from, _, _| from == process);
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
        self.pieces.are_waiting() || !self.answers.is_empty()
    }

    /// Returns `true` if an answer to a process was not sent.
    pub(super) fn owes_answer(&self, process: u32) -> bool {
        self.answers.iter().any(|answer| answer.to == process)
    }

    /// Forgets a peer that is lost, and passes the contexts of the reads from it to `sink`. Afterwards the provider
    /// writes none of its bytes.
    pub(super) fn lose(
        &mut self,
        process: u32,
        arrived: &mut VecDeque<Arrived>,
        sink: impl FnMut(u64),
    ) {
        self.cancel(|from, _, _| from == process);
        self.answers.retain_mut(|answer| {
            let is_kept = answer.to != process;
            if !is_kept {
                arrived.extend(answer.event.take().map(Arrived::Event));
            }
            is_kept
        });
        self.reads.lose(process, sink);
    }

    /// Breaks off writes that need a key, and cancels the reads to memory that has it, whose contexts go to `sink`.
    /// Afterwards the provider writes nothing by it.
    fn close(&mut self, key: KeyNumber, mut sink: impl FnMut(u64)) {
        let number = key.number();
        self.break_off(|_, purpose| match purpose {
            Purpose::Write { keys, .. } => keys.contains(&number),
            Purpose::Read(_) => false,
        });
        while let Some((process, read)) = self.reads.find(|_, read| read.local_key == Some(key)) {
            self.cancel_read(process, read).map(&mut sink);
        }
    }

    /// Cancels a read. Afterwards the provider writes none of its bytes. Returns its context.
    fn cancel_read(&mut self, process: u32, number: u32) -> Option<u64> {
        self.break_off(|from, purpose| from == process && *purpose == Purpose::Read(number));
        self.reads.cancel(process, number)
    }

    /// Breaks announcements off.
    fn break_off(&mut self, is_broken: impl Fn(u32, &Purpose) -> bool) {
        for (to, number, _) in self.cancel(|from, _, purpose| is_broken(from, purpose)) {
            self.answers.push_back(Answer { to, frame: Control::Broken { number }, event: None });
        }
    }

    /// Notes that the bytes of a fetch are there.
    fn arrived(&mut self, fetch: &Fetch) {
        let Some(place) = self.place(fetch.from, fetch.number) else { return };
        let Some(announced) = place else { return };
        announced.left -= fetch.local.len();
        if announced.left > 0 {
            return;
        }
        let purpose = announced.purpose;
        *place = None;
        let from = fetch.from;
        let event = match purpose {
            Purpose::Write { notice, .. } => {
                notice.map(|notice| RailEvent::Notice { from, notice })
            }
            Purpose::Read(number) => self.reads.taken(from, number).map(completed),
        };
        self.answer(from, fetch.number, CompletionStatus::Success, event);
    }

    fn answer(
        &mut self,
        to: u32,
        number: u32,
        status: CompletionStatus,
        event: Option<RailEvent<'static>>,
    ) {
        self.answers.push_back(Answer { to, frame: Control::Fetched { number, status }, event });
    }

    /// Answers that the bytes of announcements cannot be read. Their peers announce them again, or never.
    fn leave(&mut self, is_left: impl Fn(u32, u32, &Purpose) -> bool) {
        for (to, number, purpose) in self.cancel(is_left) {
            if let Purpose::Read(read) = purpose {
                self.reads.unread(to, read);
            }
            self.answers.push_back(Answer { to, frame: Control::Unread { number }, event: None });
        }
    }

    fn place(&mut self, from: u32, number: u32) -> Option<&mut Option<Announced>> {
        self.announced[from as usize].get_mut(number as usize)
    }

    /// Takes announcements back: their processes, numbers and purposes. If the provider has a fetch of one, the
    /// reader is closed, and the fetches that stay begin again.
    fn cancel(
        &mut self,
        is_cancelled: impl Fn(u32, u32, &Purpose) -> bool,
    ) -> Vec<(u32, u32, Purpose)> {
        let mut cancelled = Vec::new();
        for (from, all) in (0..).zip(&mut self.announced) {
            for (number, place) in (0..).zip(all) {
                let taken = place.take_if(|it| is_cancelled(from, number, &it.purpose));
                cancelled.extend(taken.map(|announced| (from, number, announced.purpose)));
            }
        }
        if cancelled.is_empty() {
            return cancelled;
        }
        let announced = &self.announced;
        if self
            .pieces
            .retain(|fetch| announced[fetch.from as usize][fetch.number as usize].is_some())
        {
            self.close_reader();
        }
        cancelled
    }

    /// Closes the reader. The fetches that the provider has begin again with another one.
    fn close_reader(&mut self) {
        self.reader = None;
        self.pieces.restart();
    }

    /// Leaves an announcement of which the provider could not carry out a fetch.
    fn failed(&mut self, fetch: &Fetch) {
        let failed = (fetch.from, fetch.number);
        self.leave(|from, number, _| (from, number) == failed);
    }
}

impl OfiRail {
    /// Takes an announcement of a write.
    pub(super) fn fetch(
        &self,
        from: u32,
        announcement: Announcement,
        inbox: &mut Inbox,
    ) -> Result<(), Malformed> {
        let Announcement { number, length, source, target } = announcement;
        let destination = self.destination(&announcement);
        let purpose = Purpose::Write { keys: [target.key, target.permit], notice: target.notice };
        let announced = Announced { purpose, left: length as usize };
        self.fetch_to(from, (number, source), announced, destination, inbox)
    }

    /// Takes the announcement of the answer to a read.
    pub(super) fn fetch_answer(
        &self,
        from: u32,
        answer: ReadAnswer,
        inbox: &mut Inbox,
    ) -> Result<(), Malformed> {
        let ReadAnswer { number, read, source } = answer;
        let (length, destination) = inbox.fetches.reads.announced(from, read)?;
        let announced = Announced { purpose: Purpose::Read(read), left: length };
        self.fetch_to(from, (number, source), announced, destination, inbox)
    }

    /// Reads the bytes of a peer to their destination, or refuses them if they have none.
    fn fetch_to(
        &self,
        from: u32,
        (number, source): (u32, Exposed),
        announced: Announced,
        destination: Option<Destination>,
        inbox: &mut Inbox,
    ) -> Result<(), Malformed> {
        let fetches = &mut inbox.fetches;
        if fetches.responders[from as usize].is_none() {
            return Err(Malformed("an announcement without a responder"));
        }
        if number as usize >= MOST || announced.left == 0 {
            return Err(Malformed("an announcement beyond its limits"));
        }
        let all = &mut fetches.announced[from as usize];
        if all.len() <= number as usize {
            all.resize(number as usize + 1, None);
        }
        if all[number as usize].is_some() {
            return Err(Malformed("an announcement with a number that is in use"));
        }
        match destination {
            Some((local, descriptor)) => {
                all[number as usize] = Some(announced);
                for offset in (0..announced.left).step_by(PIECE_BYTES) {
                    let length = (announced.left - offset).min(PIECE_BYTES);
                    // SAFETY: the destination is as long as what is announced.
                    let start = unsafe { local.cast::<u8>().add(offset) };
                    let local = NonNull::slice_from_raw_parts(start, length);
                    let source = source.at(offset as u64);
                    fetches.pieces.add(Fetch { from, number, source, local, descriptor });
                }
                self.begin_fetches(fetches);
            }
            None => fetches.answer(from, number, CompletionStatus::RemoteAccess, None),
        }
        self.send_answers(inbox);
        Ok(())
    }

    /// Returns the memory for the bytes of an announcement, if the claim of its write is allowed.
    fn destination(&self, announcement: &Announcement) -> Option<Destination> {
        let Target { key, offset, permit, .. } = announcement.target;
        let (claim, length) = (KeyClaim { key, offset }, announcement.length as usize);
        let memory = self.registrations.claimed(claim, permit, length, Access::REMOTE_WRITE)?;
        Some((memory, self.local_descriptor(key)?))
    }

    /// Goes on with fetches, and with the reads of peers. Returns the number of completions.
    pub(super) fn advance_fetches(&self, inbox: &mut Inbox) -> usize {
        let fetches = &mut inbox.fetches;
        let has_slept = mem::take(&mut fetches.has_slept);
        if let Some(announcements) = &self.announcements {
            announcements.respond(has_slept);
        }
        // A reader that connects gets on by being polled.
        let is_polled = has_slept || fetches.pieces.are_there();
        if !is_polled && fetches.answers.is_empty() {
            return 0;
        }
        let mut batch = [Completion::EMPTY; MOST_UNDER_WAY];
        let mut count = 0;
        let reader = fetches.reader.as_ref().filter(|_| is_polled);
        match reader.map(|reader| reader.queue().take(&mut batch)) {
            Some(Taken::Completions(taken)) => {
                count = taken;
                for completion in &batch[..taken] {
                    if let Some(fetch) = fetches.pieces.end(completion.op_context) {
                        fetches.arrived(&fetch);
                    }
                }
            }
            Some(Taken::Failure(entry)) => {
                count = 1;
                let failed = fetches.pieces.end(entry.op_context);
                // A connection that ends within a read may break the domain as closing it does, see `Endpoint`.
                fetches.close_reader();
                if let Some(fetch) = failed {
                    fetches.failed(&fetch);
                }
            }
            Some(Taken::Nothing) | None => {}
        }
        self.begin_fetches(fetches);
        self.send_answers(inbox);
        count
    }

    /// Passes fetches to the provider.
    fn begin_fetches(&self, fetches: &mut Fetches) {
        for process in fetches.pieces.processes() {
            while let Some((fetch, context)) = fetches.pieces.next(process) {
                match self.begin(&fetch, context, fetches) {
                    Started::NoRoom => break,
                    Started::Yes => fetches.pieces.begun(process, context),
                    Started::Failed(_) => fetches.failed(&fetch),
                }
            }
        }
    }

    /// Passes a fetch to the provider, with a context that is free.
    fn begin(&self, fetch: &Fetch, context: usize, fetches: &mut Fetches) -> Started {
        let Fetch { from, source, local, descriptor, .. } = *fetch;
        let failed = Started::Failed(0);
        if self.outgoing.peer(from).is_none_or(Peer::has_failed) {
            return failed;
        }
        let address = fetches.responders[from as usize].as_ref();
        if fetches.reader.is_none() {
            let processes = self.outgoing.peers.len();
            fetches.reader = Reader::open(&self.endpoint, processes, &self.sleep_on).ok();
        }
        let Some((reader, address)) = fetches.reader.as_mut().zip(address) else { return failed };
        let Ok(responder) = reader.responder(from, &self.endpoint, address) else { return failed };
        let context = fetches.pieces.context(context);
        // SAFETY: the memory is registered for writes of peers, or that of a read of this process, until
        // its fetches were cancelled, which closes the reader; this peer claims to write there now,
        // or the read asks for that. The context is free.
        unsafe { reader.read(responder, source, local, descriptor, context) }
    }

    fn send_answers(&self, inbox: &mut Inbox) {
        let Inbox { fetches, arrived, .. } = inbox;
        if fetches.answers.is_empty() {
            return;
        }
        let packets = self.packets();
        fetches.answers.retain_mut(|answer| {
            let is_sent = packets.push_control(answer.to, answer.frame);
            if is_sent {
                arrived.extend(answer.event.take().map(Arrived::Event));
            }
            !is_sent
        });
    }

    /// Ends the fetches that need a key, which no longer opens anything, and own operations whose memory has it.
    pub(super) fn close_key(&self, key: KeyNumber) {
        let mut inbox = self.inbox.lock();
        let Inbox { fetches, arrived, .. } = &mut *inbox;
        let is_idle = arrived.is_empty();
        fetches.close(key, |context| {
            let closed = (context, CompletionStatus::LocalProtection);
            arrived.push_back(Arrived::Event(completed(closed)));
        });
        self.begin_fetches(fetches);
        self.send_answers(&mut inbox);
        let mut wakes = is_idle && !inbox.arrived.is_empty() || inbox.fetches.has_waiting();
        if let Some(announcements) = &self.announcements {
            announcements.close(key, &self.packets());
            wakes |= announcements.has_ended() || announcements.has_unsent();
        }
        drop(inbox);
        if wakes {
            self.wake();
        }
    }

    /// Forgets a long write or read, whose memory is not used afterwards.
    pub(super) fn cancel(&self, to: u32, context: u64) {
        let Some(announcements) = &self.announcements else { return };
        let mut inbox = self.inbox.lock();
        announcements.cancel(to, context, &self.packets());
        let fetches = &mut inbox.fetches;
        let is_it = |process, read: &LongRead| process == to && read.context == context;
        if let Some((process, number)) = fetches.reads.find(is_it) {
            fetches.cancel_read(process, number);
            self.begin_fetches(fetches);
            self.send_answers(&mut inbox);
        }
        if announcements.has_unsent() || inbox.fetches.has_waiting() {
            self.wake();
        }
    }
}

pub(super) fn completed((context, status): (u64, CompletionStatus)) -> RailEvent<'static> {
    RailEvent::Completed { context, status }
}
