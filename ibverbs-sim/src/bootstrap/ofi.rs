//! Agreement of processes on a provider of libfabric.

use std::{fmt, time::Duration};

use super::{Bootstrap, BootstrapError, message, message::Fields};
use crate::{OfiChoice, OfiEnd, OfiError, OfiRail, SocketWire};

/// Key of the value by which a process says what it has of libfabric.
const CARD: &str = "ofi-card-2";

/// Part that a process lacks to be connected by libfabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OfiPart {
    /// A device of a network, without which no provider is chosen unasked.
    Device,
    /// The library, of a version that can be used.
    Library,
    /// A provider with a network, or the one that is chosen.
    Provider,
    /// An endpoint, which the provider refuses.
    Endpoint,
    /// The provider that process 0 has.
    SameProvider,
}

/// Process that libfabric does not connect to others, for which all of a run do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutOfi {
    /// Number of the process, the first one of those.
    pub process: u32,
    /// Part that the process lacks.
    pub part: OfiPart,
}

impl fmt::Display for WithoutOfi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} has no ", self.process)?;
        f.write_str(match self.part {
            OfiPart::Device => "device of a network",
            OfiPart::Library => "libfabric.so.1 that can be used",
            OfiPart::Provider => "provider with a network",
            OfiPart::Endpoint => "endpoint, which its provider refuses",
            OfiPart::SameProvider => "provider in common with process 0",
        })
    }
}

/// Endpoint of a process on libfabric, or the reason for which it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Card {
    /// An endpoint, of a provider and with an address.
    Endpoint { provider: String, address: Vec<u8> },
    /// The part that the process lacks, and the reason in words.
    Nothing { part: OfiPart, reason: String },
}

/// Endpoints of all processes, of the same provider.
pub(super) struct Agreement {
    process: u32,
    end: OfiEnd,
    addresses: Vec<Vec<u8>>,
}

impl Agreement {
    /// Opens an endpoint, and exchanges the addresses of all processes.
    ///
    /// **Errors**: a process has no such provider, or another one than the others.
    pub(super) fn reach(
        bootstrap: &mut dyn Bootstrap,
        choice: &OfiChoice,
    ) -> Result<Self, BootstrapError> {
        let process = bootstrap.process();
        let (opened, cards) = exchange(bootstrap, choice)?;
        let end = opened.map_err(|source| BootstrapError::Ofi { process, source })?;
        let mut addresses = Vec::new();
        for (other, card) in (0..).zip(cards) {
            match card {
                Card::Endpoint { provider, address } if provider == end.provider() => {
                    addresses.push(address);
                }
                Card::Endpoint { provider: there, .. } => {
                    let (here, own) = (process, end.provider());
                    return Err(BootstrapError::OtherProvider { here, own, process: other, there });
                }
                Card::Nothing { reason, .. } => {
                    return Err(BootstrapError::NoOfi { process: other, reason });
                }
            }
        }
        Ok(Self { process, end, addresses })
    }

    /// As [`reach`](Self::reach), with the endpoint of a network. Unless all processes have one of the same
    /// provider, none uses it: all of them return the same process that has not.
    ///
    /// **Errors**: those of the bootstrap.
    pub(super) fn reach_if_all_can(
        bootstrap: &mut dyn Bootstrap,
        choice: &OfiChoice,
    ) -> Result<Result<Self, WithoutOfi>, BootstrapError> {
        let (opened, cards) = exchange(bootstrap, &choice.clone().of_networks())?;
        if let Some(without) = first_without(&cards) {
            return Ok(Err(without));
        }
        let process = bootstrap.process();
        let end = opened.map_err(|source| BootstrapError::Ofi { process, source })?;
        let address = |card| match card {
            Card::Endpoint { address, .. } => address,
            Card::Nothing { .. } => Vec::new(),
        };
        Ok(Ok(Self { process, end, addresses: cards.into_iter().map(address).collect() }))
    }

    /// Returns the name of the provider.
    pub(super) fn provider(&self) -> &'static str {
        self.end.known_provider()
    }

    /// Joins the processes that `neighbours` does not have, to which `control` leads.
    pub(super) fn join(
        self,
        neighbours: &[u32],
        control: SocketWire,
        run: u64,
        timeout: Duration,
    ) -> Result<OfiRail, BootstrapError> {
        let process = self.process;
        let is_far = |process: u32| !neighbours.contains(&process);
        let addresses = (0..).zip(self.addresses);
        let addresses: Vec<_> =
            addresses.map(|(process, address)| Some(address).filter(|_| is_far(process))).collect();
        let rail = self.end.join(&addresses, control, run, timeout);
        rail.map_err(|source| BootstrapError::Ofi { process, source })
    }
}

/// Opens an endpoint, and returns it with the cards of all processes.
fn exchange(
    bootstrap: &mut dyn Bootstrap,
    choice: &OfiChoice,
) -> Result<(Result<OfiEnd, OfiError>, Vec<Card>), BootstrapError> {
    let open = || {
        let end = OfiEnd::open(choice, bootstrap.address(), bootstrap.processes())?;
        let address = end.address()?;
        Ok::<_, OfiError>((end, address))
    };
    let (opened, own) = match open() {
        Ok((end, address)) => {
            let provider = end.provider();
            (Ok(end), Card::Endpoint { provider, address })
        }
        Err(error) => {
            let (part, reason) = (OfiPart::missing(&error), error.to_string());
            (Err(error), Card::Nothing { part, reason })
        }
    };
    // Whoever has none says so, that the others do not wait.
    bootstrap.put(CARD, &own.encode())?;
    bootstrap.fence()?;
    let mut cards = Vec::new();
    for process in 0..bootstrap.processes() {
        let card = Card::decode(&bootstrap.get(process, CARD)?);
        let key = CARD.to_owned();
        cards.push(card.ok_or(BootstrapError::NotPut { process, key })?);
    }
    Ok((opened, cards))
}

/// Returns the first process that has no endpoint, or one of another provider than process 0.
fn first_without(cards: &[Card]) -> Option<WithoutOfi> {
    let mut first = None;
    (0..).zip(cards).find_map(|(process, card)| {
        let part = match card {
            Card::Nothing { part, .. } => *part,
            Card::Endpoint { provider, .. } if *first.get_or_insert(provider) != provider => {
                OfiPart::SameProvider
            }
            Card::Endpoint { .. } => return None,
        };
        Some(WithoutOfi { process, part })
    })
}

impl OfiPart {
    const ALL: [Self; 5] =
        [Self::Device, Self::Library, Self::Provider, Self::Endpoint, Self::SameProvider];

    /// Returns the part that a process lacks which has this error.
    fn missing(error: &OfiError) -> Self {
        match error {
            OfiError::NoDevice => Self::Device,
            OfiError::NoLibrary { .. }
            | OfiError::NoSymbol { .. }
            | OfiError::OldLibrary { .. } => Self::Library,
            OfiError::NoProvider { .. }
            | OfiError::NoSuchProvider { .. }
            | OfiError::NoSuchInterface { .. }
            | OfiError::Refused { .. } => Self::Provider,
            _ => Self::Endpoint,
        }
    }
}

impl Card {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Endpoint { provider, address } => {
                message::push(&mut bytes, provider.as_bytes());
                message::push(&mut bytes, address);
            }
            Self::Nothing { part, reason } => {
                message::push(&mut bytes, reason.as_bytes());
                bytes.push(*part as u8);
            }
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let text = fields.text()?;
        if let [part] = fields.0 {
            let part = OfiPart::ALL.get(usize::from(*part)).copied()?;
            return Some(Self::Nothing { part, reason: text });
        }
        let address = fields.bytes()?.to_vec();
        fields.is_empty().then_some(Self::Endpoint { provider: text, address })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn a_card_comes_back() {
        for card in [
            Card::Endpoint { provider: "tcp;ofi_rxm".into(), address: vec![0, 255] },
            Card::Nothing { part: OfiPart::Provider, reason: "none".into() },
        ] {
            assert_eq!(Card::decode(&card.encode()), Some(card));
        }
        assert_eq!(Card::decode(&[]), None);
    }

    #[test]
    fn the_first_process_that_has_not_what_process_0_has_is_found() {
        let of = |provider: &str| Card::Endpoint { provider: provider.into(), address: vec![1] };
        let without = |part| Card::Nothing { part, reason: String::new() };
        for (cards, expected) in [
            (vec![of("cxi"), of("cxi")], None),
            (
                vec![of("cxi"), of("efa"), without(OfiPart::Library)],
                Some((1, OfiPart::SameProvider)),
            ),
            (vec![of("cxi"), of("cxi"), without(OfiPart::Library)], Some((2, OfiPart::Library))),
            (vec![without(OfiPart::Endpoint), of("cxi")], Some((0, OfiPart::Endpoint))),
        ] {
            let found = first_without(&cards).map(|without| (without.process, without.part));
            assert_eq!(found, expected, "{cards:?}");
        }
    }

    proptest! {
        #[test]
        fn bytes_of_any_content_are_a_card_or_not(bytes in vec(any::<u8>(), 0..40)) {
            if let Some(card) = Card::decode(&bytes) {
                prop_assert_eq!(Card::decode(&card.encode()), Some(card));
            }
        }
    }
}
