//! Packets between queue pairs, and between processes.
//!
//! All numbers are little-endian. The first byte is the kind of the packet; its payload, if it has
//! one, is the rest of it. The head, which is everything before the payload, is made on the stack.

use crate::{CompletionStatus, Operation, QueuePairNumber, RailKey, RemoteAddress, RemoteKey};

/// Most bytes of a packet beside its payload.
pub(crate) const MAX_HEAD: usize = 64;

/// A packet that has arrived, or will be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packet<'a> {
    /// Bytes from process to process, which belong to no queue pair.
    Datagram(&'a [u8]),
    Request(Request<'a>),
    Response(Response<'a>),
    /// Notification that a receive is posted, for a request that found none.
    ReceiverReady {
        /// The queue pair of the request, and the one with the receive.
        to: QueuePairNumber,
        from: QueuePairNumber,
    },
    /// Announcement of a region of the sender.
    Region {
        key: RemoteKey,
        region: MappedRegion,
    },
    /// Notification that a region is deregistered.
    RegionClosed {
        key: RemoteKey,
    },
    /// Permission for the requests of a connection.
    Permit {
        to: QueuePairNumber,
        from: QueuePairNumber,
        /// Number of the connection at the receiver.
        connection: u32,
        permit: Permit,
    },
}

/// Region of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MappedRegion {
    /// Number of the protection domain.
    pub(crate) domain: u32,
    /// First address of the region in that process.
    pub(crate) address: u64,
    pub(crate) key: RailKey,
}

/// Right of a queue pair to use the memory of its peer at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    /// Number of the protection domain of the peer.
    pub(crate) domain: u32,
    pub(crate) key: RailKey,
}

/// A request of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) to: QueuePairNumber,
    pub(crate) from: QueuePairNumber,
    pub(crate) psn: u32,
    /// Number of the connection, which a reset of the sender changes. Responses repeat it.
    pub(crate) connection: u32,
    pub(crate) solicited: bool,
    /// `true` if the data of a write is at its target already; the payload is empty.
    pub(crate) is_delivered: bool,
    pub(crate) operation: Operation,
    /// Bytes of the message, including those that are returned.
    pub(crate) length: u64,
    /// Empty if the operation returns data.
    pub(crate) payload: &'a [u8],
}

/// Response to a request, which says that all requests before that one were carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Response<'a> {
    pub(crate) to: QueuePairNumber,
    pub(crate) from: QueuePairNumber,
    pub(crate) connection: u32,
    /// Sequence number of the request.
    pub(crate) psn: u32,
    pub(crate) syndrome: Syndrome,
    /// Data of a READ.
    pub(crate) payload: &'a [u8],
}

/// Result of a request, as in the acknowledgements of InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syndrome {
    /// The request was carried out, with the value that an atomic found.
    Ack {
        original: u64,
    },
    RnrNak {
        wait_ns: u64,
    },
    Nak(CompletionStatus),
}

/// Error of bytes that are not a valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

const DATAGRAM: u8 = 0;
const REQUEST: u8 = 1;
const RESPONSE: u8 = 2;
const RECEIVER_READY: u8 = 3;
const REGION: u8 = 4;
const REGION_CLOSED: u8 = 5;
const PERMIT: u8 = 6;

/// Flags of a request.
const SOLICITED: u8 = 1;
const DELIVERED: u8 = 2;

/// Statuses with which a peer may refuse a request, by their numbers in packets.
const NAK_STATUSES: [CompletionStatus; 3] = [
    CompletionStatus::RemoteAccess,
    CompletionStatus::RemoteInvalidRequest,
    CompletionStatus::RemoteOperation,
];

/// Codes of the syndromes; those from `NAK` on are the refusals.
const ACK: u8 = 0;
const RNR_NAK: u8 = 1;
const NAK: u8 = 2;

impl<'a> Packet<'a> {
    /// Returns the head, for a payload that follows it.
    pub(crate) fn head(&self) -> Head {
        match self {
            Self::Datagram(_) => Head::new(DATAGRAM),
            Self::Request(request) => request.head(),
            Self::Response(response) => response.head(),
            Self::ReceiverReady { to, from } => Head::new(RECEIVER_READY).word(to.0).word(from.0),
            Self::Region { key, region } => {
                let head = Head::new(REGION).word(key.0).word(region.domain);
                head.long(region.address).key(&region.key)
            }
            Self::RegionClosed { key } => Head::new(REGION_CLOSED).word(key.0),
            Self::Permit { to, from, connection, permit } => {
                let head = Head::new(PERMIT).word(to.0).word(from.0).word(*connection);
                head.word(permit.domain).key(&permit.key)
            }
        }
    }

    /// Returns the payload.
    pub(crate) fn payload(&self) -> &'a [u8] {
        match self {
            Self::Datagram(payload) => payload,
            Self::Request(request) => request.payload,
            Self::Response(response) => response.payload,
            Self::ReceiverReady { .. }
            | Self::Region { .. }
            | Self::RegionClosed { .. }
            | Self::Permit { .. } => &[],
        }
    }

    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        match reader.byte()? {
            DATAGRAM => Ok(Self::Datagram(reader.0)),
            REQUEST => Ok(Self::Request(Request::read(reader)?)),
            RESPONSE => Ok(Self::Response(Response::read(reader)?)),
            RECEIVER_READY => {
                let (to, from) = (reader.queue_pair()?, reader.queue_pair()?);
                reader.end()?;
                Ok(Self::ReceiverReady { to, from })
            }
            REGION => {
                let key = RemoteKey(reader.word()?);
                let (domain, address) = (reader.word()?, reader.long()?);
                let region = MappedRegion { domain, address, key: reader.key()? };
                Ok(Self::Region { key, region })
            }
            REGION_CLOSED => {
                let key = RemoteKey(reader.word()?);
                reader.end()?;
                Ok(Self::RegionClosed { key })
            }
            PERMIT => {
                let (to, from) = (reader.queue_pair()?, reader.queue_pair()?);
                let (connection, domain) = (reader.word()?, reader.word()?);
                let permit = Permit { domain, key: reader.key()? };
                Ok(Self::Permit { to, from, connection, permit })
            }
            _ => Err(Malformed),
        }
    }
}

impl<'a> Request<'a> {
    fn head(&self) -> Head {
        let (opcode, remote, first, second) = match self.operation {
            Operation::Send => (0, RemoteAddress::default(), 0, 0),
            Operation::SendWithImmediate { immediate } => {
                (1, RemoteAddress::default(), u64::from(immediate), 0)
            }
            Operation::Write { remote } => (2, remote, 0, 0),
            Operation::WriteWithImmediate { remote, immediate } => {
                (3, remote, u64::from(immediate), 0)
            }
            Operation::Read { remote } => (4, remote, 0, 0),
            Operation::FetchAdd { remote, add } => (5, remote, add, 0),
            Operation::CompareSwap { remote, compare, swap } => (6, remote, compare, swap),
        };
        let &Self { to, from, psn, connection, solicited, is_delivered, length, .. } = self;
        let flags =
            if solicited { SOLICITED } else { 0 } | if is_delivered { DELIVERED } else { 0 };
        let head = Head::new(REQUEST).word(to.0).word(from.0);
        let head = head.word(psn).word(connection).byte(flags).byte(opcode);
        let head = head.long(remote.address).word(remote.key.0).long(first).long(second);
        head.long(length)
    }

    fn read(mut reader: Reader<'a>) -> Result<Self, Malformed> {
        let (to, from) = (reader.queue_pair()?, reader.queue_pair()?);
        let (psn, connection) = (reader.word()?, reader.word()?);
        let (flags, opcode) = (reader.byte()?, reader.byte()?);
        let (solicited, is_delivered) = (flags & SOLICITED != 0, flags & DELIVERED != 0);
        let (address, key) = (reader.long()?, RemoteKey(reader.word()?));
        let remote = RemoteAddress { address, key };
        let (first, second) = (reader.long()?, reader.long()?);
        let immediate = || u32::try_from(first).map_err(|_| Malformed);
        let operation = match opcode {
            0 => Operation::Send,
            1 => Operation::SendWithImmediate { immediate: immediate()? },
            2 => Operation::Write { remote },
            3 => Operation::WriteWithImmediate { remote, immediate: immediate()? },
            4 => Operation::Read { remote },
            5 => Operation::FetchAdd { remote, add: first },
            6 => Operation::CompareSwap { remote, compare: first, swap: second },
            _ => return Err(Malformed),
        };
        let (length, payload) = (reader.long()?, reader.0);
        let is_write =
            matches!(operation, Operation::Write { .. } | Operation::WriteWithImmediate { .. });
        if is_delivered && !is_write {
            return Err(Malformed);
        }
        let returned = if operation.returns_data() || is_delivered { length } else { 0 };
        if payload.len() as u64 != length - returned || (operation.is_atomic() && length != 8) {
            return Err(Malformed);
        }
        Ok(Self { to, from, psn, connection, solicited, is_delivered, operation, length, payload })
    }
}

impl<'a> Response<'a> {
    fn head(&self) -> Head {
        let (code, value) = match self.syndrome {
            Syndrome::Ack { original } => (ACK, original),
            Syndrome::RnrNak { wait_ns } => (RNR_NAK, wait_ns),
            Syndrome::Nak(status) => {
                let number = NAK_STATUSES.iter().position(|refusal| *refusal == status);
                // A responder refuses with these statuses only.
                (NAK + number.unwrap_or(NAK_STATUSES.len() - 1) as u8, 0)
            }
        };
        let &Self { to, from, connection, psn, .. } = self;
        let head = Head::new(RESPONSE).word(to.0).word(from.0).word(connection).word(psn);
        head.byte(code).long(value)
    }

    fn read(mut reader: Reader<'a>) -> Result<Self, Malformed> {
        let (to, from) = (reader.queue_pair()?, reader.queue_pair()?);
        let (connection, psn) = (reader.word()?, reader.word()?);
        let (code, value) = (reader.byte()?, reader.long()?);
        let syndrome = match code {
            ACK => Syndrome::Ack { original: value },
            RNR_NAK => Syndrome::RnrNak { wait_ns: value },
            _ => {
                let status = NAK_STATUSES.get(usize::from(code - NAK)).ok_or(Malformed)?;
                Syndrome::Nak(*status)
            }
        };
        Ok(Self { to, from, connection, psn, syndrome, payload: reader.0 })
    }
}

/// Head of a packet.
pub(crate) struct Head {
    bytes: [u8; MAX_HEAD],
    length: usize,
}

impl Head {
    fn new(kind: u8) -> Self {
        Self { bytes: [0; MAX_HEAD], length: 0 }.byte(kind)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push<const N: usize>(mut self, chunk: [u8; N]) -> Self {
        self.bytes[self.length..self.length + N].copy_from_slice(&chunk);
        self.length += N;
        self
    }

    fn byte(self, byte: u8) -> Self {
        self.push([byte])
    }

    fn word(self, word: u32) -> Self {
        self.push(word.to_le_bytes())
    }

    fn long(self, long: u64) -> Self {
        self.push(long.to_le_bytes())
    }

    /// Adds a key of a rail, which ends the head.
    fn key(mut self, key: &RailKey) -> Self {
        let bytes = key.as_bytes();
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
        self
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (chunk, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*chunk)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(u8::from_le_bytes(self.chunk()?))
    }

    fn word(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.chunk()?))
    }

    fn long(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.chunk()?))
    }

    fn queue_pair(&mut self) -> Result<QueuePairNumber, Malformed> {
        Ok(QueuePairNumber(self.word()?))
    }

    /// Returns the key of a rail that the packet ends with.
    fn key(&self) -> Result<RailKey, Malformed> {
        RailKey::from_bytes(self.0).ok_or(Malformed)
    }

    fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn operations() -> impl Strategy<Value = Operation> {
        let remote = (any::<u64>(), any::<u32>())
            .prop_map(|(address, key)| RemoteAddress { address, key: RemoteKey(key) });
        (0..7, remote, any::<u64>(), any::<u64>()).prop_map(|(opcode, remote, first, second)| {
            let immediate = first as u32;
            match opcode {
                0 => Operation::Send,
                1 => Operation::SendWithImmediate { immediate },
                2 => Operation::Write { remote },
                3 => Operation::WriteWithImmediate { remote, immediate },
                4 => Operation::Read { remote },
                5 => Operation::FetchAdd { remote, add: first },
                _ => Operation::CompareSwap { remote, compare: first, swap: second },
            }
        })
    }

    fn to_bytes(packet: Packet<'_>) -> Vec<u8> {
        [packet.head().as_bytes(), packet.payload()].concat()
    }

    proptest! {
        #[test]
        fn a_request_comes_back(
            operation in operations(), to: u32, from: u32, psn: u32, connection: u32, solicited: bool,
            delivered: bool, bytes in proptest::collection::vec(any::<u8>(), 0..20), read in 0u64..1 << 40,
        ) {
            let brings = operation.returns_data();
            let is_write = matches!(
                operation,
                Operation::Write { .. } | Operation::WriteWithImmediate { .. }
            );
            let is_delivered = delivered && is_write;
            let payload = if brings || is_delivered { &[][..] } else { &bytes[..] };
            let length = match (operation.is_atomic(), brings || is_delivered) {
                (true, _) => 8,
                (_, true) => read,
                _ => payload.len() as u64,
            };
            let (to, from) = (QueuePairNumber(to), QueuePairNumber(from));
            let request = Request {
                to, from, psn, connection, solicited, is_delivered, operation, length, payload,
            };
            let sent = to_bytes(Packet::Request(request));
            prop_assert_eq!(Packet::from_bytes(&sent), Ok(Packet::Request(request)));
            prop_assert!(Packet::from_bytes(&sent[..sent.len() - 1]).is_err());
        }

        #[test]
        fn an_answer_comes_back(
            code in 0..5usize, value: u64, to: u32, from: u32, connection: u32, psn: u32,
            payload: Vec<u8>,
        ) {
            let syndrome = match code {
                0 => Syndrome::Ack { original: value },
                1 => Syndrome::RnrNak { wait_ns: value },
                _ => Syndrome::Nak(NAK_STATUSES[code - 2]),
            };
            let (to, from) = (QueuePairNumber(to), QueuePairNumber(from));
            let response = Response { to, from, connection, psn, syndrome, payload: &payload };
            let sent = to_bytes(Packet::Response(response));
            prop_assert_eq!(Packet::from_bytes(&sent), Ok(Packet::Response(response)));
        }

        #[test]
        fn announcements_come_back(
            to: u32, from: u32, connection: u32, domain: u32, address: u64,
            bytes in proptest::collection::vec(any::<u8>(), 0..=RailKey::MAX_BYTES),
        ) {
            let (remote, key) = (RemoteKey(from), RailKey::from_bytes(&bytes).unwrap());
            let region = MappedRegion { domain, address, key };
            let permit = Permit { domain, key };
            let (to, from) = (QueuePairNumber(to), QueuePairNumber(from));
            for packet in [
                Packet::Region { key: remote, region },
                Packet::RegionClosed { key: remote },
                Packet::Permit { to, from, connection, permit },
            ] {
                let sent = to_bytes(packet);
                prop_assert_eq!(Packet::from_bytes(&sent), Ok(packet));
            }
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            let _ = Packet::from_bytes(&bytes);
        }
    }
}
