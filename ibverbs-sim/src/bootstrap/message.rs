//! Messages between a process and the server.
//!
//! ```text
//! process                                     server
//!     Handshake: version, number, secret ──►  compares it with those of the others
//!     Fence(values) ──►
//!     ◄── All(values of each process)         once all have come to the fence
//!     ◄── Refused(reason)                     instead, to all, and the connection ends
//! ```
//!
//! A message is its length and its kind, in four and one bytes, and its content. Numbers are
//! little-endian; text and values have their length in front.

use std::io::{self, Read, Write};

/// First bytes of a handshake.
pub(super) const MAGIC: [u8; 8] = *b"verbboot";
/// Version of the protocol.
pub(super) const VERSION: u32 = 1;
/// Most bytes of a message of a process.
pub(super) const MAX_REQUEST: usize = 1 << 20;
/// Most bytes of a message of the server.
pub(super) const MAX_RESPONSE: usize = 1 << 30;

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Handshake = 1,
    Fence,
    All,
    Refused,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        [Self::Handshake, Self::Fence, Self::All, Self::Refused]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// Handshake of a process, which says which one it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handshake {
    pub(super) version: u32,
    pub(super) process: u32,
    pub(super) processes: u32,
    pub(super) secret: Vec<u8>,
    /// Settings that all processes must have in common.
    pub(super) settings: Vec<(String, String)>,
}

impl Handshake {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.version, self.process, self.processes] {
            bytes.extend(number.to_le_bytes());
        }
        push(&mut bytes, &self.secret);
        for (name, value) in &self.settings {
            push(&mut bytes, name.as_bytes());
            push(&mut bytes, value.as_bytes());
        }
        bytes
    }

    /// Decodes a handshake. Of another version only the numbers are there.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes.strip_prefix(&MAGIC)?);
        let (version, process, processes) = (fields.number()?, fields.number()?, fields.number()?);
        let mut handshake =
            Self { version, process, processes, secret: Vec::new(), settings: Vec::new() };
        if version == VERSION {
            handshake.secret = fields.bytes()?.to_vec();
            while !fields.is_empty() {
                handshake.settings.push((fields.text()?, fields.text()?));
            }
        }
        Some(handshake)
    }
}

/// Appends bytes with their length in front.
pub(super) fn push(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u32).to_le_bytes());
    to.extend(bytes);
}

/// Reader of the fields of a message.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }
}

/// Returns a message in the form in which it travels.
pub(super) fn frame(kind: Kind, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 5);
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.push(kind as u8);
    bytes.extend(content);
    bytes
}

/// Sends a message.
pub(super) fn send(mut to: impl Write, kind: Kind, content: &[u8]) -> io::Result<()> {
    to.write_all(&frame(kind, content))
}

/// Messages that arrive in parts.
#[derive(Default)]
pub(super) struct Incoming(Vec<u8>);

impl Incoming {
    /// Reads what is there; `false` at the end of the stream.
    pub(super) fn read(&mut self, mut from: impl Read) -> io::Result<bool> {
        let mut chunk = [0; 4096];
        let count = from.read(&mut chunk)?;
        self.0.extend_from_slice(&chunk[..count]);
        Ok(count > 0)
    }

    /// Takes the next message that is complete. `Err` if the bytes are no message of at most `limit`
    /// bytes.
    pub(super) fn take(&mut self, limit: usize) -> Result<Option<(Kind, Vec<u8>)>, ()> {
        let Some((length, rest)) = self.0.split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        let Some((kind, content)) = rest.split_first() else { return Ok(None) };
        let kind = Kind::of(*kind).filter(|_| length <= limit).ok_or(())?;
        let Some(content) = content.get(..length) else { return Ok(None) };
        let content = content.to_vec();
        self.0.drain(..5 + length);
        Ok(Some((kind, content)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn handshake() -> Handshake {
        let settings = vec![("fabric".into(), "auto".into()), ("line".into(), String::new())];
        Handshake { version: VERSION, process: 3, processes: 9, secret: vec![1, 2], settings }
    }

    #[test]
    fn a_handshake_comes_back() {
        assert_eq!(Handshake::decode(&handshake().encode()), Some(handshake()));
    }

    #[test]
    fn of_another_version_the_numbers_are_read() {
        let mut bytes = Handshake { version: 77, ..handshake() }.encode();
        bytes.truncate(20);
        bytes.extend(b"anything");
        let decoded = Handshake::decode(&bytes).unwrap();
        assert_eq!((decoded.version, decoded.process, decoded.processes), (77, 3, 9));
    }

    #[test]
    fn every_part_of_a_handshake_is_no_handshake() {
        let bytes = handshake().encode();
        for length in (0..bytes.len()).filter(|length| *length != 26 && *length != 44) {
            assert_eq!(Handshake::decode(&bytes[..length]), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn messages_come_back_however_they_were_cut(
            contents in vec(vec(any::<u8>(), 0..20), 0..6), cuts in vec(1..9usize, 1..9),
        ) {
            let stream: Vec<u8> =
                contents.iter().flat_map(|content| frame(Kind::Fence, content)).collect();
            let (mut incoming, mut seen, mut left) = (Incoming::default(), Vec::new(), &stream[..]);
            for cut in cuts.iter().cycle() {
                if left.is_empty() {
                    break;
                }
                let (now, later) = left.split_at((*cut).min(left.len()));
                incoming.read(now).unwrap();
                while let Some((kind, content)) = incoming.take(20).unwrap() {
                    assert_eq!(kind, Kind::Fence);
                    seen.push(content);
                }
                left = later;
            }
            prop_assert_eq!(seen, contents);
        }

        #[test]
        fn bytes_of_any_content_are_a_handshake_or_not(bytes in vec(any::<u8>(), 0..60)) {
            let mut all = MAGIC.to_vec();
            all.extend(VERSION.to_le_bytes());
            all.extend(bytes);
            if let Some(handshake) = Handshake::decode(&all) {
                prop_assert_eq!(handshake.encode(), all);
            }
        }
    }
}
