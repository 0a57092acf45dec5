//! The rail itself: its peers, its registrations, and the thread that polls. It has over 400 lines, as the
//! trait has many functions.
#![allow(unsafe_code, reason = "the contract of the trait is passed on to those who copy")]

use std::{
    collections::{HashMap, VecDeque},
    ffi::c_void,
    mem,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    ptr::{self, NonNull},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd};
use talpf_primitives::{Mutex, TryLock};

use super::{
    ALL_CONTEXTS, EAGER_BYTES, OfiError, abi,
    announcements::{Announcements, Means},
    endpoint::{Endpoint, Registered},
    incoming::{Arrived, BUFFER_BYTES, BUFFERS},
    join::Joined,
    memory::{Contexts, PacketMemory},
    outgoing::{Outgoing, Packets, Peer},
    packet::{Control, Target},
    progress::{Inbox, KEPT_EVENTS, POLLS_BETWEEN_CHECKS},
    queue::Queue,
    transfers::LongWrite,
};
use crate::{
    Access, SocketWire, Wire,
    rail::{
        Armed, Posted, Rail, RailAddress, RailError, RailEvent, RailKey, RailLimits,
        emulation::{Emulation, Operation, OperationKind, Path as _},
        frame::{Frame, KeyClaim},
        registrations::{KeyNumber, Registrations},
    },
    wire::ConnectAttempts,
};

/// Time in which the last packets leave as a rail ends.
const LAST_PACKETS: Duration = Duration::from_secs(2);

/// Times that the event of a provider may say in a row that there is something, and nothing comes, before its queues are
/// waited for. The provider `net` of libfabric 1.17 resets its event in no other way.
const READY_IN_VAIN: u32 = 4;

/// A rail on a provider of libfabric.
pub struct OfiRail {
    pub(super) process: u32,
    pub(super) run: u64,
    pub(super) registrations: Registrations,
    pub(super) emulation: Emulation,
    /// Registration of the buffers, where the provider needs one.
    pub(super) buffers_registered: Option<Registered>,
    pub(super) outgoing: Outgoing,
    /// Bytes of this process that peers read; `None` with a provider by which they cannot.
    pub(super) announcements: Option<Announcements>,
    /// Registrations for local operations, where the provider needs them, by the numbers of their keys.
    local: Mutex<HashMap<u64, Registered>>,
    pub(super) inbox: Mutex<Inbox>,
    pub(super) endpoint: Endpoint,
    pub(super) contexts: Contexts,
    pub(super) buffers: PacketMemory,
    /// Connections whose end is that of a peer.
    pub(super) control: SocketWire,
    pub(super) silent: Box<[AtomicBool]>,
    /// Set once this process has announced that it is about to sleep.
    is_armed: AtomicBool,
    /// Readable once a thread has left events for the one that polls.
    pub(super) event: OwnedFd,
    /// Readable with the completion queue, the control connections, or the event.
    pub(super) sleep_on: OwnedFd,
    /// Held by the thread that polls.
    passed_on: TryLock<PassedOn>,
}

/// Events that one thread passes on, and the messages of each buffer that it has passed on.
struct PassedOn {
    events: VecDeque<Arrived>,
    messages: [u32; BUFFERS],
}

impl OfiRail {
    /// Most bytes of a message.
    pub const MESSAGE_BYTES: usize = EAGER_BYTES;
    /// Bytes of a write, or a read, from which on they are fetched by RMA: over TCP, three times as fast as by a
    /// message of as many. Fewer fit one message.
    pub const LONG_BYTES: usize = EAGER_BYTES;

    pub(super) fn new(parts: Joined) -> Result<Self, OfiError> {
        let Joined {
            endpoint,
            outgoing,
            buffers,
            buffers_registered,
            announcements,
            control,
            run,
            sleep_on,
        } = parts;
        let (process, processes) = (control.process(), control.processes());
        let system = |what| {
            move |error: rustix::io::Errno| OfiError::System { what, reason: error.to_string() }
        };
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event = event.map_err(system("an event"))?;
        let descriptors =
            [Some(event.as_fd()), endpoint.queue().descriptor(), control.descriptor()];
        for descriptor in descriptors.into_iter().flatten() {
            let data = epoll::EventData::new_u64(0);
            let added = epoll::add(&sleep_on, descriptor, data, epoll::EventFlags::IN);
            added.map_err(system("an event"))?;
        }
        let inbox = Inbox::new(process, &outgoing);
        let events = VecDeque::with_capacity(KEPT_EVENTS);
        Ok(Self {
            process,
            run,
            registrations: Registrations::new(),
            emulation: Emulation::new(processes),
            buffers_registered,
            outgoing,
            announcements,
            local: Mutex::new(HashMap::new()),
            inbox: Mutex::new(inbox),
            endpoint,
            contexts: Contexts::new(ALL_CONTEXTS),
            buffers,
            control,
            silent: (0..processes).map(|_| AtomicBool::new(false)).collect(),
            is_armed: AtomicBool::new(false),
            event,
            sleep_on,
            passed_on: TryLock::new(PassedOn { events, messages: [0; BUFFERS] }),
        })
    }

    /// Returns the name of the provider.
    pub fn provider(&self) -> String {
        self.endpoint.provider()
    }

    /// Exchanges first packets. Returns `false` if nothing has happened.
    pub(super) fn greet(&self) -> bool {
        self.advance(&mut self.inbox.lock()) > 0
    }

    /// Returns the processes that have not answered, if there are some.
    pub(super) fn missing(&self) -> Option<Vec<u32>> {
        let inbox = self.inbox.lock();
        let all = (0..).zip(&inbox.peers);
        let missing = all.filter(|(_, peer)| !peer.has_greeted || peer.owes_greeting);
        let missing: Vec<u32> = missing.map(|(process, _)| process).collect();
        (!missing.is_empty()).then_some(missing)
    }

    /// Returns those of some processes whose control connection has ended.
    pub(super) fn ended(&self, processes: &[u32]) -> Vec<u32> {
        self.control.poll(&mut |_, _| {});
        processes.iter().copied().filter(|process| self.control.is_lost(*process)).collect()
    }

    pub(super) fn no_answer(&self, missing: &[u32]) -> OfiError {
        let names: Vec<_> = missing.iter().map(|process| format!("process {process}")).collect();
        OfiError::NoAnswer { provider: self.provider(), processes: names.join(", ") }
    }

    pub(super) fn packets(&self) -> Packets<'_> {
        Packets { outgoing: &self.outgoing, endpoint: &self.endpoint, contexts: &self.contexts }
    }

    pub(super) fn means(&self) -> Means<'_> {
        Means { packets: self.packets(), registrations: &self.registrations }
    }

    /// Returns a peer that is not lost.
    pub(super) fn peer(&self, process: u32) -> Result<&Peer, RailError> {
        let peer = self.outgoing.peer(process);
        let peer = peer.ok_or(RailError::NoSuchPeer { process, processes: self.processes() })?;
        if peer.is_lost() { Err(RailError::Lost { process }) } else { Ok(peer) }
    }

    /// Returns the peers that are not lost, by process.
    pub(super) fn live(&self) -> impl Iterator<Item = (u32, &Peer)> {
        let all = (0..).zip(&self.outgoing.peers);
        all.filter_map(|(process, peer)| Some((process, peer.as_ref()?)))
            .filter(|(_, peer)| !peer.is_lost())
    }

    /// Wakes the thread that sleeps.
    pub(super) fn wake(&self) {
        // A full event is readable.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Posts an operation that is carried out by frames.
    ///
    /// # Safety
    ///
    /// The contract of [`Rail::write`] and [`Rail::read`].
    unsafe fn emulate(
        &self,
        to: u32,
        kind: OperationKind,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError> {
        self.peer(to)?;
        let claim = KeyClaim { key: remote.key.number(), offset: remote.offset };
        let operation = Operation::new(kind, local, claim, context);
        // SAFETY: the contract of this function.
        unsafe { self.emulation.post(to, operation, &self.packets(), &self.registrations) }
    }

    /// Posts a long write. `None` if it is to be carried out by frames.
    ///
    /// # Safety
    ///
    /// `local` must be valid for reads, and be changed by nobody, until the write has ended, or
    /// [`Rail::cancel_long`] has returned, or [`Rail::deregister`] with its local key has.
    unsafe fn announce(&self, to: u32, write: LongWrite) -> Option<Result<(), RailError>> {
        let announcements = self.announcements.as_ref()?;
        u32::try_from(write.local.len()).ok()?;
        if let Err(error) = self.peer(to) {
            return Some(Err(error));
        }
        // SAFETY: the contract of this function.
        let posted = unsafe { announcements.post(to, write, &self.means()) };
        if announcements.has_unsent() {
            self.wake();
        }
        posted
    }

    fn readiness(&self, queue: &Queue) -> Readiness {
        match queue.descriptor() {
            None => Readiness::WithoutEvent,
            Some(_) if !self.endpoint.may_sleep(queue) => Readiness::Busy,
            Some(event) if is_readable(event) => Readiness::Readable,
            Some(_) => Readiness::Idle,
        }
    }

    /// Returns `true` if there was no room for a part of an operation.
    fn has_unsent_operations(&self) -> bool {
        let mut live = self.live();
        self.announcements.as_ref().is_some_and(Announcements::has_unsent)
            || live.any(|(process, _)| self.emulation.has_unsent(process))
    }

    /// Returns what the registration of a key has for local operations, if the provider has it as it
    /// needs it.
    pub(super) fn local_descriptor(&self, key: u64) -> Option<*mut c_void> {
        if !self.endpoint.needs_local() {
            return Some(ptr::null_mut());
        }
        self.local.lock().get(&key).map(Registered::descriptor)
    }

    /// Passes an event on.
    fn pass_on(
        &self,
        arrived: Arrived,
        messages: &mut [u32; BUFFERS],
        sink: &mut dyn FnMut(RailEvent<'_>),
    ) {
        match arrived {
            Arrived::Message { from, start, length } => {
                messages[start / BUFFER_BYTES] += 1;
                // SAFETY: the message has arrived, and its buffer is not given to the provider again
                // before that is noted which was counted here.
                let bytes = unsafe { self.buffers.bytes(start, length) };
                sink(RailEvent::Message { from, bytes });
            }
            Arrived::Kept { from, packet, start } => {
                sink(RailEvent::Message { from, bytes: &packet[start..] });
            }
            Arrived::Event(event) => sink(event),
        }
    }
}

impl Rail for OfiRail {
    fn process(&self) -> u32 {
        self.process
    }

    fn processes(&self) -> u32 {
        self.control.processes()
    }

    fn limits(&self) -> RailLimits {
        RailLimits {
            eager_bytes: EAGER_BYTES,
            notice_bytes: 4,
            needs_peer_processor: true,
            is_mapped: false,
            long_bytes: self.announcements.as_ref().map(|_| Self::LONG_BYTES),
            has_event: self.endpoint.queue().descriptor().is_some(),
        }
    }

    unsafe fn register(&self, memory: NonNull<[u8]>, access: Access) -> Result<RailKey, RailError> {
        // SAFETY: the contract of this function.
        let key = unsafe { self.registrations.insert(memory, access)? };
        let is_written =
            access.contains(Access::REMOTE_WRITE) || access.contains(Access::LOCAL_WRITE);
        if is_written && !memory.is_empty() && self.endpoint.needs_local() {
            let wanted = key.number().rotate_left(u32::BITS);
            // SAFETY: the contract of this function: deregistering waits for fetches, and closes this.
            let registered = unsafe { self.endpoint.register(memory, abi::READ, wanted) };
            let Ok(registered) = registered else {
                self.registrations.remove(key)?;
                return Err(RailError::Refused);
            };
            self.local.lock().insert(key.number(), registered);
        }
        Ok(RailKey::from_number(key.number()))
    }

    fn deregister(&self, key: &RailKey) -> Result<(), RailError> {
        let key = KeyNumber::from_claim(key.number());
        self.registrations.remove(key)?;
        self.close_key(key);
        let registered = self.local.lock().remove(&key.number());
        drop(registered);
        Ok(())
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), RailError> {
        self.peer(to)?;
        if bytes.len() > EAGER_BYTES {
            return Err(RailError::TooLong { length: bytes.len(), limit: EAGER_BYTES });
        }
        match self.packets().push(to, &Frame::Message(bytes)) {
            true => Ok(()),
            false => Err(RailError::NoRoom { process: to }),
        }
    }

    unsafe fn write(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        notice: Option<u32>,
        context: u64,
    ) -> Result<Posted, RailError> {
        if local.len() >= Self::LONG_BYTES {
            let (key, offset) = (remote.key.number(), remote.offset);
            let target = Target { key, offset, permit: 0, notice };
            let write = LongWrite { local, local_key: None, target, context };
            // SAFETY: the contract of this function.
            if let Some(posted) = unsafe { self.announce(to, write) } {
                return posted.map(|()| Posted::UnderWay);
            }
        }
        // SAFETY: as above.
        unsafe { self.emulate(to, OperationKind::Write { notice }, local, remote, context) }
    }

    unsafe fn write_long(
        &self,
        to: u32,
        (local, local_key): (NonNull<[u8]>, &RailKey),
        remote: &RailAddress,
        permit: &RailKey,
        context: u64,
    ) -> Result<bool, RailError> {
        let (key, permit) = (remote.key.number(), permit.number());
        let target = Target { key, offset: remote.offset, permit, notice: None };
        if local.len() < Self::LONG_BYTES || permit == 0 {
            return Ok(false);
        }
        let local_key = Some(KeyNumber::from_claim(local_key.number()));
        let write = LongWrite { local, local_key, target, context };
        // SAFETY: the contract of this function.
        let posted = unsafe { self.announce(to, write) };
        posted.map_or(Ok(false), |posted| posted.map(|()| true))
    }

    unsafe fn read_long(
        &self,
        to: u32,
        (local, local_key): (NonNull<[u8]>, &RailKey),
        remote: &RailAddress,
        permit: &RailKey,
        context: u64,
    ) -> Result<bool, RailError> {
        if local.len() < Self::LONG_BYTES || permit.number() == 0 {
            return Ok(false);
        }
        self.peer(to)?;
        let local = (local, Some(KeyNumber::from_claim(local_key.number())));
        // SAFETY: the contract of this function.
        let posted = unsafe { self.ask(to, local, remote, permit.number(), context) };
        posted.map_or(Ok(false), |posted| posted.map(|()| true))
    }

    fn cancel_long(&self, to: u32, context: u64) {
        if self.outgoing.peer(to).is_some() {
            self.cancel(to, context);
        }
    }

    unsafe fn read(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError> {
        if local.len() >= Self::LONG_BYTES {
            self.peer(to)?;
            // SAFETY: the contract of this function.
            if let Some(posted) = unsafe { self.ask(to, (local, None), remote, 0, context) } {
                return posted.map(|()| Posted::UnderWay);
            }
        }
        // SAFETY: as above.
        unsafe { self.emulate(to, OperationKind::Read, local, remote, context) }
    }

    fn poll(&self, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize {
        let Some(mut passed_on) = self.passed_on.try_lock() else { return 0 };
        let PassedOn { events, messages } = &mut *passed_on;
        let mut inbox = self.inbox.lock();
        if self.is_armed.load(Ordering::Relaxed) {
            self.is_armed.store(false, Ordering::Relaxed);
            inbox.polls_in_vain = POLLS_BETWEEN_CHECKS;
            inbox.fetches.woken();
            // The event is not blocking, and empty if nobody has woken this process.
            let _ = rustix::io::read(&self.event, &mut [0; size_of::<u64>()]);
        }
        let mut count = self.advance(&mut inbox);
        let is_in_vain = count == 0;
        inbox.polls_in_vain += u32::from(is_in_vain);
        self.check_ends(&mut inbox, is_in_vain);
        if let Some(announcements) = &self.announcements {
            announcements.take_ended(|context, status| {
                let ended = RailEvent::Completed { context, status };
                inbox.arrived.push_back(Arrived::Event(ended));
            });
        }
        if events.is_empty() {
            mem::swap(events, &mut inbox.arrived);
        }
        drop(inbox);
        while let Some(arrived) = events.pop_front() {
            count += 1;
            self.pass_on(arrived, messages, sink);
        }
        if messages.iter().any(|messages| *messages > 0) {
            let mut inbox = self.inbox.lock();
            for (buffer, messages) in messages.iter_mut().enumerate() {
                inbox.buffers.passed_on(buffer, mem::take(messages));
            }
            self.give_buffers(&mut inbox);
        }
        count
    }

    fn has_unsent(&self) -> bool {
        self.outgoing.has_unsent() || self.has_unsent_operations()
    }

    fn is_lost(&self, process: u32) -> bool {
        matches!(self.peer(process), Err(RailError::Lost { .. }))
    }

    fn give_up(&self, process: u32) {
        if self.outgoing.peer(process).is_some() {
            self.silent[process as usize].store(true, Ordering::Release);
            self.control.give_up(process);
            self.wake();
        }
    }

    fn arm(&self) -> Armed<'_> {
        let mut inbox = self.inbox.lock();
        self.is_armed.store(true, Ordering::Relaxed);
        let is_silent = |process: u32| self.silent[process as usize].load(Ordering::Acquire);
        let ends = |process: u32| inbox.peers[process as usize].since_end.is_some();
        let mut live = self.live();
        if !inbox.arrived.is_empty()
            || live.any(|(process, _)| is_silent(process) || ends(process))
            || self.announcements.as_ref().is_some_and(Announcements::has_ended)
        {
            return Armed::Ready;
        }
        // Room in what the provider queues is no event.
        if inbox.fetches.has_waiting()
            || self.announcements.as_ref().is_some_and(Announcements::has_unsent)
            || self.live().any(|(process, _)| self.emulation.has_unsent(process))
        {
            return Armed::Nothing;
        }
        let of_responder =
            |all: &Announcements| all.with_responder(|it| self.readiness(it.queue()));
        let all = [
            Some(self.readiness(self.endpoint.queue())),
            inbox.fetches.reader().map(|reader| self.readiness(reader.queue())),
            self.announcements.as_ref().and_then(of_responder),
        ];
        match all.into_iter().flatten().max() {
            Some(Readiness::WithoutEvent) => return Armed::Nothing,
            Some(Readiness::Busy) => return Armed::Ready,
            Some(Readiness::Readable) => {}
            Some(Readiness::Idle) | None => {
                inbox.ready_in_vain = 0;
                return Armed::Descriptor(self.sleep_on.as_fd());
            }
        }
        inbox.ready_in_vain += 1;
        if inbox.ready_in_vain == READY_IN_VAIN {
            self.endpoint.queue().reset_descriptor();
            inbox.fetches.reader().into_iter().for_each(|it| it.queue().reset_descriptor());
            if let Some(announcements) = &self.announcements {
                announcements.with_responder(|it| it.queue().reset_descriptor());
            }
        }
        if inbox.ready_in_vain > READY_IN_VAIN { Armed::Nothing } else { Armed::Ready }
    }
}

/// State of a queue on which a thread is to sleep.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Readiness {
    Idle,
    /// The event is there already.
    Readable,
    /// The provider does not allow it now.
    Busy,
    WithoutEvent,
}

/// Returns `true` if a descriptor is readable now.
fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut wanted = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    rustix::event::poll(&mut wanted, Some(&Timespec::default())).is_ok_and(|count| count > 0)
}

impl Drop for OfiRail {
    fn drop(&mut self) {
        let mut owed: Vec<u32> = self.live().map(|(process, _)| process).collect();
        let mut attempts = ConnectAttempts::new(LAST_PACKETS);
        // Who has ended takes no packets, and libfabric may not say so.
        let is_there = |process: u32| self.peer(process).is_ok() && !self.control.is_lost(process);
        // A peer that gets the last packet reads no more of what was announced to it.
        let announcements =
            |process| self.announcements.as_ref().is_some_and(|all| all.has_under_way(process));
        let is_owed = |process: &u32| {
            is_there(*process)
                && (announcements(*process)
                    || self.inbox.lock().fetches.owes_answer(*process)
                    || !self.packets().push_control(*process, Control::Parting))
        };
        loop {
            owed.retain(is_owed);
            let has_progressed = self.poll(&mut |_| {}) > 0;
            self.control.poll(&mut |_, _| {});
            let mut live = self.live();
            let has_unsent = live.any(|(process, peer)| is_there(process) && peer.has_unsent());
            let is_over = owed.is_empty() && !has_unsent;
            if is_over || (!has_progressed && !attempts.wait()) {
                break;
            }
        }
    }
}
