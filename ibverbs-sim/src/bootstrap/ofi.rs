//! Agreement of processes on a provider of libfabric.

use std::time::Duration;

use super::{Bootstrap, BootstrapError, message, message::Fields};
use crate::{OfiChoice, OfiEnd, OfiError, OfiRail, SocketWire};

/// Key of the value by which a process says what it has of libfabric.
const CARD: &str = "ofi-card-1";

/// Endpoint of a process on libfabric, or the reason for which it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Card {
    /// An endpoint, of a provider and with an address.
    Endpoint { provider: String, address: Vec<u8> },
    /// A reason for which the process has none.
    Nothing { reason: String },
}

/// Endpoints of all processes.
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
        let open = || {
            let end = OfiEnd::open(choice, bootstrap.address(), bootstrap.processes())?;
            let address = end.address()?;
            Ok::<_, OfiError>((end, address))
        };
        let opened = open();
        let own = match &opened {
            Ok((end, address)) => {
                Card::Endpoint { provider: end.provider(), address: address.clone() }
            }
            Err(error) => Card::Nothing { reason: error.to_string() },
        };
        // Whoever has none says so, that the others do not wait.
        bootstrap.put(CARD, &own.encode())?;
        bootstrap.fence()?;
        let process = bootstrap.process();
        let (end, _) = opened.map_err(|source| BootstrapError::Ofi { process, source })?;
        let mut addresses = Vec::new();
        for other in 0..bootstrap.processes() {
            let card = Card::decode(&bootstrap.get(other, CARD)?);
            match card {
                Some(Card::Endpoint { provider, address }) if provider == end.provider() => {
                    addresses.push(address);
                }
                Some(Card::Endpoint { provider: there, .. }) => {
                    let (here, own) = (process, end.provider());
                    return Err(BootstrapError::OtherProvider { here, own, process: other, there });
                }
                Some(Card::Nothing { reason }) => {
                    return Err(BootstrapError::NoOfi { process: other, reason });
                }
                None => {
                    let key = CARD.to_owned();
                    return Err(BootstrapError::NotPut { process: other, key });
                }
            }
        }
        Ok(Self { process, end, addresses })
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

impl Card {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Endpoint { provider, address } => {
                message::push(&mut bytes, provider.as_bytes());
                message::push(&mut bytes, address);
            }
            Self::Nothing { reason } => message::push(&mut bytes, reason.as_bytes()),
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let text = fields.text()?;
        if fields.is_empty() {
            return Some(Self::Nothing { reason: text });
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
            Card::Nothing { reason: "none".into() },
        ] {
            assert_eq!(Card::decode(&card.encode()), Some(card));
        }
        assert_eq!(Card::decode(&[]), None);
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
