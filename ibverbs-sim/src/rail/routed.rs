#![allow(unsafe_code, reason = "the contracts of two rails are passed on to them")]
//! The rail between processes of several machines: one rail within a machine, and one between.
//!
//! The rail within the machine has numbers of its own, which are converted. Memory is registered with
//! both rails, and its key is both keys.

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    ptr::NonNull,
    sync::{Arc, OnceLock},
};

use rustix::event::epoll;

use super::{
    Armed, Posted, Rail, RailAddress, RailError, RailEvent, RailKey, RailLimits, RailMemory,
};
use crate::{Access, WordUpdate};

/// A rail that reaches some processes by a rail within the machine, and the others by a network.
pub struct RoutedRail {
    /// Rail to processes of this machine.
    machine: Arc<dyn Rail>,
    /// Processes that the rail of the machine leads to, by their numbers there.
    members: Box<[u32]>,
    /// Rail to all other processes.
    network: Arc<dyn Rail>,
    /// Numbers within the machine, by process; `None` for those on other machines.
    numbers: Box<[Option<u32>]>,
    /// Limits that both rails keep.
    limits: RailLimits,
    /// Made as this process sleeps for the first time; `None` if that has failed.
    events: OnceLock<Option<Events>>,
}

/// Descriptor that is readable if that of either rail is.
struct Events {
    both: OwnedFd,
    /// Descriptors of the rails.
    of: [RawFd; 2],
}

impl Events {
    fn of(machine: BorrowedFd<'_>, network: BorrowedFd<'_>) -> Option<Self> {
        let both = epoll::create(epoll::CreateFlags::CLOEXEC).ok()?;
        for rail in [machine, network] {
            epoll::add(&both, rail, epoll::EventData::new_u64(0), epoll::EventFlags::IN).ok()?;
        }
        Some(Self { both, of: [machine.as_raw_fd(), network.as_raw_fd()] })
    }

    /// Returns the descriptor for both, as long as the rails have the same ones as before.
    fn armed(&self, machine: BorrowedFd<'_>, network: BorrowedFd<'_>) -> Armed<'_> {
        if self.of == [machine.as_raw_fd(), network.as_raw_fd()] {
            Armed::Descriptor(self.both.as_fd())
        } else {
            Armed::Nothing
        }
    }
}

impl RoutedRail {
    /// Makes a rail of one within the machine and one to all other processes. `members` has the
    /// processes of this machine, by their numbers on its rail; the numbers of the network are those
    /// of the rail that is made, and it leads to no member.
    ///
    /// **Panics**: the rails do not fit together: they disagree on the number of this process, or on
    /// how many members there are.
    pub fn new(machine: Arc<dyn Rail>, members: &[u32], network: Arc<dyn Rail>) -> Self {
        let mut numbers = vec![None; network.processes() as usize];
        for (number, member) in (0..).zip(members) {
            numbers[*member as usize] = Some(number);
        }
        assert_eq!(machine.processes() as usize, members.len(), "each member has a number");
        let own = numbers[network.process() as usize];
        assert_eq!(own, Some(machine.process()), "this process is one of the members");
        let limits = limits_of_both(machine.limits(), network.limits());
        let events = OnceLock::new();
        Self { machine, members: members.into(), network, numbers: numbers.into(), limits, events }
    }

    /// Returns the rail to a process, and its number there.
    fn route(&self, to: u32) -> (&dyn Rail, u32) {
        match self.numbers.get(to as usize) {
            Some(&Some(number)) => (&*self.machine, number),
            _ => (&*self.network, to),
        }
    }

    /// Calls the rail to a process, with its number there.
    fn call<R>(
        &self,
        to: u32,
        call: impl FnOnce(&dyn Rail, u32) -> Result<R, RailError>,
    ) -> Result<R, RailError> {
        let (rail, number) = self.route(to);
        call(rail, number).map_err(|error| match error {
            RailError::NoRoom { .. } => RailError::NoRoom { process: to },
            RailError::Lost { .. } => RailError::Lost { process: to },
            RailError::NoSuchPeer { .. } => {
                RailError::NoSuchPeer { process: to, processes: self.processes() }
            }
            other => other,
        })
    }

    fn is_of_machine(&self, process: u32) -> bool {
        matches!(self.numbers.get(process as usize), Some(Some(_)))
    }

    /// Returns a key for the rail to a process.
    fn key(&self, to: u32, key: &RailKey) -> RailKey {
        let (machine, network) = split(key);
        if self.is_of_machine(to) { machine } else { network }
    }

    fn address(&self, to: u32, remote: &RailAddress) -> RailAddress {
        RailAddress { key: self.key(to, &remote.key), offset: remote.offset }
    }

    /// Returns the rail of an access at once, and its process, address and permit there.
    fn at_once(
        &self,
        to: u32,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> (&dyn Rail, u32, RailAddress, RailKey) {
        let (rail, number) = self.route(to);
        (rail, number, self.address(to, remote), self.key(to, permit))
    }
}

fn limits_of_both(machine: RailLimits, network: RailLimits) -> RailLimits {
    RailLimits {
        eager_bytes: machine.eager_bytes.min(network.eager_bytes),
        notice_bytes: machine.notice_bytes.min(network.notice_bytes),
        needs_peer_processor: machine.needs_peer_processor || network.needs_peer_processor,
        is_mapped: machine.is_mapped || network.is_mapped,
        long_bytes: machine.long_bytes.or(network.long_bytes),
        has_event: machine.has_event && network.has_event,
    }
}

/// Makes a key of that of the machine and that of the network.
fn join(machine: &RailKey, network: &RailKey) -> Option<RailKey> {
    let (machine, network) = (machine.as_bytes(), network.as_bytes());
    RailKey::from_bytes(&[&[machine.len() as u8], machine, network].concat())
}

/// Returns the two keys that a key was made of, or keys of nothing if it was not made so.
fn split(key: &RailKey) -> (RailKey, RailKey) {
    let halves = key.as_bytes().split_first();
    let halves = halves.and_then(|(length, keys)| keys.split_at_checked(usize::from(*length)));
    let (machine, network) = halves.unwrap_or_default();
    let of = |bytes| RailKey::from_bytes(bytes).unwrap_or(RailKey::from_number(0));
    (of(machine), of(network))
}

impl Rail for RoutedRail {
    fn process(&self) -> u32 {
        self.network.process()
    }

    fn processes(&self) -> u32 {
        self.network.processes()
    }

    fn limits(&self) -> RailLimits {
        self.limits
    }

    fn is_mapped_to(&self, to: u32) -> bool {
        let (rail, number) = self.route(to);
        rail.limits().is_mapped && rail.is_mapped_to(number)
    }

    unsafe fn register(&self, memory: NonNull<[u8]>, access: Access) -> Result<RailKey, RailError> {
        // SAFETY: the contract of this function.
        let machine = unsafe { self.machine.register(memory, access)? };
        // SAFETY: as above.
        let network = match unsafe { self.network.register(memory, access) } {
            Ok(network) => network,
            Err(error) => return self.machine.deregister(&machine).and(Err(error)),
        };
        let key = join(&machine, &network);
        key.ok_or(RailError::NotRegistered).or_else(|error| {
            let machine = self.machine.deregister(&machine);
            self.network.deregister(&network).and(machine).and(Err(error))
        })
    }

    fn allocate(&self, bytes: usize) -> Option<Box<dyn RailMemory>> {
        self.machine.allocate(bytes).or_else(|| self.network.allocate(bytes))
    }

    fn deregister(&self, key: &RailKey) -> Result<(), RailError> {
        let (machine, network) = split(key);
        let machine = self.machine.deregister(&machine);
        self.network.deregister(&network).and(machine)
    }

    fn prepare_send(&self, to: u32, bytes: usize) {
        let (rail, number) = self.route(to);
        rail.prepare_send(number, bytes);
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), RailError> {
        let limit = self.limits.eager_bytes;
        if bytes.len() > limit {
            return Err(RailError::TooLong { length: bytes.len(), limit });
        }
        self.call(to, |rail, number| rail.send(number, bytes))
    }

    unsafe fn write(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        notice: Option<u32>,
        context: u64,
    ) -> Result<Posted, RailError> {
        let remote = self.address(to, remote);
        // SAFETY: the contract of this function.
        self.call(to, |rail, to| unsafe { rail.write(to, local, &remote, notice, context) })
    }

    unsafe fn read(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError> {
        let remote = self.address(to, remote);
        // SAFETY: the contract of this function.
        self.call(to, |rail, to| unsafe { rail.read(to, local, &remote, context) })
    }

    unsafe fn write_long(
        &self,
        to: u32,
        (local, local_key): (NonNull<[u8]>, &RailKey),
        remote: &RailAddress,
        permit: &RailKey,
        context: u64,
    ) -> Result<bool, RailError> {
        let (remote, permit) = (self.address(to, remote), self.key(to, permit));
        let local = (local, &self.key(to, local_key));
        // SAFETY: the contract of this function.
        self.call(to, |rail, to| unsafe { rail.write_long(to, local, &remote, &permit, context) })
    }

    unsafe fn read_long(
        &self,
        to: u32,
        (local, local_key): (NonNull<[u8]>, &RailKey),
        remote: &RailAddress,
        permit: &RailKey,
        context: u64,
    ) -> Result<bool, RailError> {
        let (remote, permit) = (self.address(to, remote), self.key(to, permit));
        let local = (local, &self.key(to, local_key));
        // SAFETY: the contract of this function.
        self.call(to, |rail, to| unsafe { rail.read_long(to, local, &remote, &permit, context) })
    }

    fn cancel_long(&self, to: u32, context: u64) {
        let (rail, number) = self.route(to);
        rail.cancel_long(number, context);
    }

    unsafe fn write_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        let (rail, to, remote, permit) = self.at_once(to, remote, permit);
        // SAFETY: the contract of this function.
        unsafe { rail.write_at_once(to, local, &remote, &permit) }
    }

    unsafe fn read_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        let (rail, to, remote, permit) = self.at_once(to, remote, permit);
        // SAFETY: the contract of this function.
        unsafe { rail.read_at_once(to, local, &remote, &permit) }
    }

    fn update_at_once(
        &self,
        to: u32,
        update: WordUpdate,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> Option<u64> {
        let (rail, to, remote, permit) = self.at_once(to, remote, permit);
        rail.update_at_once(to, update, &remote, &permit)
    }

    fn poll(&self, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize {
        let process = |number: u32| self.members[number as usize];
        let of_machine = self.machine.poll(&mut |event| {
            sink(match event {
                RailEvent::Message { from, bytes } => {
                    RailEvent::Message { from: process(from), bytes }
                }
                RailEvent::Notice { from, notice } => {
                    RailEvent::Notice { from: process(from), notice }
                }
                RailEvent::Lost { process: lost, reason } => {
                    RailEvent::Lost { process: process(lost), reason }
                }
                completed @ RailEvent::Completed { .. } => completed,
            });
        });
        of_machine + self.network.poll(sink)
    }

    fn has_unsent(&self) -> bool {
        self.machine.has_unsent() || self.network.has_unsent()
    }

    fn is_lost(&self, process: u32) -> bool {
        let (rail, number) = self.route(process);
        rail.is_lost(number)
    }

    fn give_up(&self, process: u32) {
        let (rail, number) = self.route(process);
        rail.give_up(number);
    }

    fn arm(&self) -> Armed<'_> {
        match (self.machine.arm(), self.network.arm()) {
            (Armed::Ready, _) | (_, Armed::Ready) => Armed::Ready,
            (Armed::Descriptor(machine), Armed::Descriptor(network)) => {
                let both = self.events.get_or_init(|| Events::of(machine, network));
                both.as_ref().map_or(Armed::Nothing, |both| both.armed(machine, network))
            }
            _ => Armed::Nothing,
        }
    }

    fn announces_room(&self, to: u32) -> bool {
        let (rail, number) = self.route(to);
        rail.announces_room(number)
    }
}
