//! The choice of a rail between each two processes of a run, and their connection.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use super::{
    Bootstrap, BootstrapError,
    life::Life,
    machine, message,
    message::Fields,
    ofi::{Agreement, WithoutOfi},
};
use crate::{OfiChoice, Packets, Rail, RoutedRail, ShmConfig, ShmRail, SocketWire, TcpMeeting};

/// Connections between the processes of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fabric {
    /// Shared memory between processes of one machine. Between machines a network of libfabric, if all
    /// processes have one, and else TCP.
    #[default]
    Auto,
    /// Shared memory, with all processes on one machine.
    Shm,
    /// TCP between all processes.
    Tcp,
    /// A network of libfabric between all processes.
    Ofi,
}

impl Fabric {
    const ALL: [Self; 4] = [Self::Auto, Self::Shm, Self::Tcp, Self::Ofi];

    /// Returns `true` if processes of one machine share memory.
    fn has_shared_memory(self) -> bool {
        matches!(self, Self::Auto | Self::Shm)
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Shm => "shm",
            Self::Tcp => "tcp",
            Self::Ofi => "ofi",
        })
    }
}

/// Processes that are connected.
pub struct Connected {
    /// The rail that joins them.
    pub rail: Arc<dyn Rail>,
    /// Kinds of their connections.
    pub connections: Connections,
    /// Number of processes of this machine, this one included.
    pub neighbours: u32,
}

/// Kinds of the connections between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections between processes of one machine; `None` if no two are on the same.
    pub within: Option<Fabric>,
    /// Connections between machines; `None` if there is one.
    pub between: Option<Fabric>,
    /// Provider of libfabric, if that joins processes.
    pub provider: Option<&'static str>,
    /// Process for which libfabric does not join machines, if it was to join them.
    pub without_ofi: Option<WithoutOfi>,
    /// Number of machines.
    pub machines: u32,
}

impl Connections {
    /// Returns the name of a kind of connections, with the provider that has them.
    fn name(&self, kind: Fabric) -> String {
        match self.provider.filter(|_| kind == Fabric::Ofi) {
            Some(provider) => format!("{kind}:{provider}"),
            None => kind.to_string(),
        }
    }
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |kind: Option<Fabric>| kind.map(|kind| self.name(kind));
        match (name(self.within), name(self.between)) {
            (None, None) => f.write_str("none, one process"),
            (Some(within), None) => write!(f, "{within}"),
            (Some(within), Some(between)) if within != between => {
                write!(f, "{within} within {} machines, {between} between them", self.machines)
            }
            (_, Some(between)) => write!(f, "{between} between {} machines", self.machines),
        }
    }
}

/// Key of the value by which a process introduces itself.
const CARD: &str = "verbs-card-2";

/// The values by which a process introduces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Card {
    fabric: Fabric,
    machine: u64,
    /// Random number; the run takes that of process 0.
    run: [u64; 2],
    /// Addresses at which the process listens, if it does, for data and for signs of life.
    addresses: Option<[SocketAddr; 2]>,
}

/// Time without a sign of life after which a process is given up, unless another is asked for.
pub const PEER_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects this process to all others of its run, by one fence of the bootstrap. A process that shows
/// no life for `peer_timeout`, because it is stopped or its machine is not reached, is lost then; one
/// that computes shows life.
///
/// `choice` is that of the provider for [`Fabric::Ofi`], and for [`Fabric::Auto`] between machines, which
/// uses no provider over sockets unless it is named.
///
/// **Errors**: a process does not come; a process has another fabric; processes are on several
/// machines and shall share memory; libfabric is missing, or has not what is chosen; the operating
/// system refuses what a connection needs.
pub fn connect(
    bootstrap: &mut dyn Bootstrap,
    fabric: Fabric,
    choice: &OfiChoice,
    peer_timeout: Duration,
) -> Result<Connected, BootstrapError> {
    let listeners = match fabric {
        Fabric::Shm => None,
        Fabric::Auto | Fabric::Tcp | Fabric::Ofi => {
            let address = bootstrap.address();
            let ((data, at), (life, life_at)) = (listen(address)?, listen(address)?);
            Some(((data, life), [at, life_at]))
        }
    };
    let (listeners, addresses) = listeners.unzip();
    let own = Card {
        fabric,
        machine: machine::machine(),
        run: [machine::random(), machine::random()],
        addresses,
    };
    let meeting = Meeting {
        process: bootstrap.process(),
        timeout: bootstrap.timeout(),
        fabric,
        machine: own.machine,
        cards: exchange(bootstrap, &own)?,
    };
    let (neighbours, processes) = (meeting.neighbours(), meeting.cards.len());
    let is_together = neighbours.len() == processes;
    let (agreement, without_ofi) = match fabric {
        Fabric::Ofi => (Some(Agreement::reach(bootstrap, choice)?), None),
        Fabric::Auto if !is_together => match Agreement::reach_if_all_can(bootstrap, choice)? {
            Ok(agreement) => (Some(agreement), None),
            Err(without) => (None, Some(without)),
        },
        _ => (None, None),
    };
    let provider = agreement.as_ref().map(Agreement::provider);
    // In the same order in all processes, so that no two wait for each other.
    let (network, life) = match listeners {
        Some((data, life)) if !fabric.has_shared_memory() || !is_together => {
            let data = meeting.tcp(data, &neighbours, Use::Data)?;
            let network: Arc<dyn Rail> = match agreement {
                Some(agreement) => {
                    let (run, timeout) = (meeting.run()[0], meeting.timeout);
                    Arc::new(agreement.join(&neighbours, data, run, timeout)?)
                }
                None => Arc::new(Packets::new(Arc::new(data))),
            };
            (Some(network), Some(meeting.tcp(life, &neighbours, Use::Life)?))
        }
        None if !is_together => return Err(meeting.other_machine(&neighbours)),
        _ => (None, None),
    };
    let machine = match fabric.has_shared_memory() {
        true => Some(Arc::new(meeting.shm(&neighbours)?)),
        false => None,
    };
    let rail: Arc<dyn Rail> = match (&machine, network) {
        (Some(machine), Some(network)) => {
            Arc::new(RoutedRail::new(Arc::clone(machine) as _, &neighbours, network))
        }
        (Some(machine), None) => Arc::clone(machine) as _,
        (None, network) => network.ok_or_else(|| meeting.other_machine(&neighbours))?,
    };
    let of_machine = machine.as_ref().map(|rail| (rail, &*neighbours));
    let watch = Life::new(&rail, of_machine, life, peer_timeout).start();
    watch.map_err(|source| meeting.failed(fabric, source))?;
    let own = own.machine;
    let mut machines: Vec<u64> = meeting.cards.iter().map(|card| card.machine).collect();
    machines.sort_unstable();
    let has_neighbours = machines.array_windows().any(|[a, b]| a == b);
    let on_this = machines.iter().filter(|other| **other == own).count();
    machines.dedup();
    let within = if fabric.has_shared_memory() { Fabric::Shm } else { fabric };
    let between = if provider.is_some() { Fabric::Ofi } else { Fabric::Tcp };
    let connections = Connections {
        within: has_neighbours.then_some(within),
        between: (machines.len() > 1).then_some(between),
        provider,
        without_ofi,
        machines: machines.len() as u32,
    };
    Ok(Connected { rail, connections, neighbours: on_this as u32 })
}

fn listen(address: IpAddr) -> Result<(TcpMeeting, SocketAddr), BootstrapError> {
    let listen = || {
        let meeting = TcpMeeting::listen(address)?;
        let address = meeting.address()?;
        Ok((meeting, address))
    };
    listen().map_err(|source| BootstrapError::Listen { address: address.to_string(), source })
}

/// Gives the others the card of this process, and returns those of all.
fn exchange(bootstrap: &mut dyn Bootstrap, own: &Card) -> Result<Vec<Card>, BootstrapError> {
    bootstrap.put(CARD, &own.encode())?;
    bootstrap.fence()?;
    let mut cards = Vec::new();
    for process in 0..bootstrap.processes() {
        let card = Card::decode(&bootstrap.get(process, CARD)?);
        let card = card.ok_or_else(|| BootstrapError::NotPut { process, key: CARD.to_owned() })?;
        let (here, own, there) = (bootstrap.process(), own.fabric, card.fabric);
        if there != own {
            return Err(BootstrapError::OtherFabric { here, own, process, there });
        }
        cards.push(card);
    }
    Ok(cards)
}

/// Uses of the connections between two processes.
#[derive(Clone, Copy)]
enum Use {
    Data,
    Life,
}

/// Processes that know each other and are not connected.
struct Meeting {
    process: u32,
    timeout: Duration,
    fabric: Fabric,
    machine: u64,
    /// Cards of all processes.
    cards: Vec<Card>,
}

impl Meeting {
    /// Returns the processes that this one shares memory with, itself included.
    fn neighbours(&self) -> Vec<u32> {
        let has_shared_memory = self.fabric.has_shared_memory();
        let shares = |card: &Card| has_shared_memory && card.machine == self.machine;
        let all = (0..).zip(&self.cards);
        all.filter(|(process, card)| *process == self.process || shares(card))
            .map(|(process, _)| process)
            .collect()
    }

    /// Returns the numbers that all processes of the run have from the first one.
    fn run(&self) -> [u64; 2] {
        self.cards.first().map_or([0; 2], |card| card.run)
    }

    fn shm(&self, neighbours: &[u32]) -> Result<ShmRail, BootstrapError> {
        let [high, low] = self.run();
        let name = format!("{high:x}-{low:x}");
        let number = neighbours.iter().position(|process| *process == self.process);
        let (number, count) = (number.unwrap_or(0) as u32, neighbours.len() as u32);
        // Devices have packets for memory that is no segment.
        let config = ShmConfig { kernel_copies: false, ..ShmConfig::default() };
        ShmRail::join(&name, number, count, self.timeout, &config)
            .map_err(|source| self.failed(Fabric::Shm, source))
    }

    fn tcp(
        &self,
        listener: TcpMeeting,
        neighbours: &[u32],
        of: Use,
    ) -> Result<SocketWire, BootstrapError> {
        let is_far = |process: u32| !neighbours.contains(&process);
        let address = |(process, card): (u32, &Card)| {
            card.addresses.filter(|_| is_far(process)).map(|addresses| addresses[of as usize])
        };
        let addresses: Vec<_> = (0..).zip(&self.cards).map(address).collect();
        let [high, low] = self.run();
        let secret = (u128::from(high) << 64 | u128::from(low)) ^ of as u128;
        let wire = listener.join(self.process, &addresses, secret, self.timeout);
        wire.map_err(|source| self.failed(Fabric::Tcp, source))
    }

    fn failed(&self, fabric: Fabric, source: io::Error) -> BootstrapError {
        let (process, processes) = (self.process, self.cards.len() as u32);
        BootstrapError::Connect { process, processes, fabric, source }
    }

    fn other_machine(&self, neighbours: &[u32]) -> BootstrapError {
        let mut all = 0..self.cards.len() as u32;
        let process = all.find(|process| !neighbours.contains(process)).unwrap_or(0);
        BootstrapError::OtherMachine { here: self.process, process }
    }
}

impl Card {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        message::push(&mut bytes, self.fabric.to_string().as_bytes());
        for word in [self.machine, self.run[0], self.run[1]] {
            bytes.extend(word.to_le_bytes());
        }
        for address in self.addresses.iter().flatten() {
            message::push(&mut bytes, address.to_string().as_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let name = fields.text()?;
        let fabric = Fabric::ALL.into_iter().find(|fabric| fabric.to_string() == name)?;
        let mut word = || Some(u64::from(fields.number()?) | u64::from(fields.number()?) << 32);
        let (machine, run) = (word()?, [word()?, word()?]);
        let mut address = || fields.text()?.parse().ok();
        let addresses = match fabric {
            Fabric::Shm => None,
            Fabric::Auto | Fabric::Tcp | Fabric::Ofi => Some([address()?, address()?]),
        };
        fields.is_empty().then_some(Self { fabric, machine, run, addresses })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn connections_are_described() {
        let (shm, tcp, ofi) = (Some(Fabric::Shm), Some(Fabric::Tcp), Some(Fabric::Ofi));
        for (within, between, machines, text) in [
            (None, None, 1, "none, one process"),
            (shm, None, 1, "shm"),
            (tcp, None, 1, "tcp"),
            (None, tcp, 3, "tcp between 3 machines"),
            (tcp, tcp, 2, "tcp between 2 machines"),
            (shm, tcp, 2, "shm within 2 machines, tcp between them"),
            (ofi, None, 1, "ofi:net"),
            (shm, ofi, 2, "shm within 2 machines, ofi:net between them"),
        ] {
            let connections =
                Connections { within, between, provider: Some("net"), without_ofi: None, machines };
            assert_eq!(connections.to_string(), text);
        }
    }

    #[test]
    fn a_card_comes_back() {
        let addresses = Some(["[::1]:65535", "127.0.0.1:1"].map(|at| at.parse().unwrap()));
        let card =
            Card { fabric: Fabric::Tcp, machine: u64::MAX - 1, run: [1 << 63, 7], addresses };
        assert_eq!(Card::decode(&card.encode()), Some(card.clone()));
        let alone = Card { fabric: Fabric::Shm, addresses: None, ..card };
        assert_eq!(Card::decode(&alone.encode()), Some(alone.clone()));
        let nowhere = Card { fabric: Fabric::Auto, ..alone };
        assert_eq!(Card::decode(&nowhere.encode()), None);
    }

    proptest! {
        #[test]
        fn bytes_of_any_content_are_a_card_or_not(bytes in vec(any::<u8>(), 0..60)) {
            let mut all = Vec::new();
            message::push(&mut all, b"shm");
            all.extend(bytes);
            if let Some(card) = Card::decode(&all) {
                prop_assert_eq!(Card::decode(&card.encode()), Some(card));
            }
        }
    }
}
