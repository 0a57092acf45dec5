#![allow(unsafe_code, reason = "memory of packets is registered")]
//! Meeting of processes: their addresses, control connections, and first packets.

use std::{
    net::{IpAddr, Ipv4Addr},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::event::epoll;

use super::{
    EAGER_BYTES, OfiChoice, OfiError, OfiRail, abi,
    announcements::Announcements,
    endpoint::{Endpoint, Registered},
    incoming::{BUFFER_BYTES, BUFFERS},
    memory::PacketMemory,
    outgoing::{Outgoing, Peer, SLOT_BYTES, SLOTS},
    packet::MAX_HEAD_BYTES,
    providers,
};
use crate::{SocketWire, Wire, wire::ConnectAttempts};

/// The end of a rail on libfabric that lies in this process, before it has peers.
pub struct OfiEnd(Endpoint);

/// Parts of a rail, made of an end and of peers.
pub(super) struct Joined {
    pub(super) endpoint: Endpoint,
    pub(super) outgoing: Outgoing,
    pub(super) buffers: PacketMemory,
    pub(super) buffers_registered: Option<Registered>,
    pub(super) announcements: Option<Announcements>,
    pub(super) control: SocketWire,
    pub(super) run: u64,
    pub(super) sleep_on: OwnedFd,
}

impl OfiEnd {
    /// Opens an endpoint on a provider, for a run of `processes` processes. Unless the choice has an
    /// interface, it is the one with this address, if there is one.
    ///
    /// **Errors**: libfabric is not installed, or too old; it has no such provider or interface; the
    /// provider is refused, cannot do what is needed, or fails.
    pub fn open(choice: &OfiChoice, address: IpAddr, processes: u32) -> Result<Self, OfiError> {
        let bytes = EAGER_BYTES + MAX_HEAD_BYTES;
        Endpoint::open(choice, address, processes as usize, bytes).map(Self)
    }

    /// Returns the address that peers need.
    ///
    /// **Errors**: those of the provider.
    pub fn address(&self) -> Result<Vec<u8>, OfiError> {
        self.0.address()
    }

    /// Returns the name of the provider, which all processes have to use.
    pub fn provider(&self) -> String {
        self.0.provider()
    }

    /// Returns the name of the provider, if it is one of those that are chosen unasked.
    pub(crate) fn known_provider(&self) -> &'static str {
        providers::known(&self.provider())
    }

    /// Returns the name of the interface.
    pub fn interface(&self) -> String {
        self.0.interface()
    }

    /// Connects to the other processes of a run. `addresses` has theirs, by process; `None` for this
    /// one, and for those that the rail does not lead to, which is mutual. `control` leads to the same
    /// processes, and nobody else uses it. `run` is the same number in all processes of the run, and in
    /// no others.
    ///
    /// **Errors**: an address is of another kind; a process has not answered in time, or has ended; the
    /// machine has no memory for the rail.
    pub fn join(
        self,
        addresses: &[Option<Vec<u8>>],
        control: SocketWire,
        run: u64,
        timeout: Duration,
    ) -> Result<OfiRail, OfiError> {
        let rail = self.into_rail(addresses, control, run)?;
        let mut attempts = ConnectAttempts::new(timeout);
        while let Some(missing) = rail.missing() {
            let ended = rail.ended(&missing);
            if !ended.is_empty() {
                return Err(rail.no_answer(&ended));
            }
            if !rail.greet() && !attempts.wait() {
                return Err(rail.no_answer(&missing));
            }
        }
        Ok(rail)
    }

    fn into_rail(
        self,
        addresses: &[Option<Vec<u8>>],
        control: SocketWire,
        run: u64,
    ) -> Result<OfiRail, OfiError> {
        let endpoint = self.0;
        let own = control.process();
        let peer = |(process, address): (u32, &Option<Vec<u8>>)| {
            let address = address.as_ref().filter(|_| process != own);
            address.map(|address| endpoint.add_peer(address).map(Peer::new)).transpose()
        };
        let peers = (0..).zip(addresses).map(peer).collect::<Result<_, _>>()?;
        let register = |memory: &PacketMemory, access| {
            // SAFETY: the memory is kept beside its registration, which is closed first.
            let register = || unsafe { endpoint.register(memory.all(), access, run ^ access) };
            endpoint.needs_local().then(register).transpose()
        };
        let slots = PacketMemory::new(SLOTS * SLOT_BYTES);
        let buffers = PacketMemory::new(BUFFERS * BUFFER_BYTES);
        let slots_registered = register(&slots, abi::TRANSMIT)?;
        let buffers_registered = register(&buffers, abi::RECV)?;
        let outgoing = Outgoing::new(run, own, peers, slots, slots_registered);
        let sleep_on = epoll::create(epoll::CreateFlags::CLOEXEC);
        let sleep_on = sleep_on
            .map_err(|error| OfiError::System { what: "an event", reason: error.to_string() })?;
        let announce = || {
            let (sleep_on, seed) =
                (sleep_on.try_clone().ok()?, run ^ u64::from(own).rotate_left(48));
            // A provider may have no further endpoint: all goes by messages then.
            Announcements::new(&endpoint, seed, addresses.len(), sleep_on).ok()
        };
        let announcements = endpoint.reads_directly().then(announce).flatten();
        OfiRail::new(Joined {
            endpoint,
            outgoing,
            buffers,
            buffers_registered,
            announcements,
            control,
            run,
            sleep_on,
        })
    }
}

impl OfiRail {
    /// Creates rails between `processes` threads of this process, by number.
    ///
    /// **Errors**: those of [`OfiEnd::open`] and [`OfiEnd::join`].
    pub fn mesh(processes: u32, choice: &OfiChoice) -> Result<Vec<Self>, OfiError> {
        let what = "sockets";
        let wires = SocketWire::mesh(processes);
        let wires = wires.map_err(|error| OfiError::System { what, reason: error.to_string() })?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let ends = (0..processes).map(|_| OfiEnd::open(choice, loopback, processes));
        let ends = ends.collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<_> =
            ends.iter().map(|end| end.address().map(Some)).collect::<Result<_, _>>()?;
        let run = addresses.len() as u64 + u64::from(std::process::id());
        let rails = ends.into_iter().zip(wires);
        let rails = rails.map(|(end, wire)| end.into_rail(&addresses, wire, run));
        let rails = rails.collect::<Result<Vec<_>, _>>()?;
        let mut attempts = ConnectAttempts::new(Duration::from_secs(10));
        while let Some((rail, missing)) =
            rails.iter().find_map(|rail| Some((rail, rail.missing()?)))
        {
            let has_progressed = rails.iter().fold(false, |any, rail| rail.greet() | any);
            if !has_progressed && !attempts.wait() {
                return Err(rail.no_answer(&missing));
            }
        }
        Ok(rails)
    }
}
