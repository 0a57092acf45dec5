//! Incoming packets of a process: its messages are a stream, from which packets are taken.

use super::{LENGTH_BYTES, packet::Malformed};
use crate::MAX_PACKET;

/// Memory for a packet of several messages that is kept after its end.
const KEPT_BYTES: usize = 1 << 20;

/// Stream of packets from a process.
#[derive(Default)]
pub(super) struct Incoming {
    /// Beginning of a packet whose other bytes have not arrived, with its length before it.
    begun: Vec<u8>,
}

impl Incoming {
    /// Takes a message, and passes each packet that is complete to `sink`.
    ///
    /// Memory grows with the bytes that have arrived, whatever length was announced.
    pub(super) fn receive(
        &mut self,
        mut bytes: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            if self.begun.is_empty()
                && let Some(length) = length(bytes)?
                && let Some((packet, rest)) = bytes[LENGTH_BYTES..].split_at_checked(length)
            {
                sink(packet);
                bytes = rest;
                continue;
            }
            let end = LENGTH_BYTES + length(&self.begun)?.unwrap_or(0);
            let missing = end - self.begun.len();
            let (now, later) = bytes.split_at(missing.min(bytes.len()));
            self.begun.extend_from_slice(now);
            bytes = later;
            if length(&self.begun)?.is_some_and(|length| LENGTH_BYTES + length == self.begun.len())
            {
                sink(&self.begun[LENGTH_BYTES..]);
                self.begun.clear();
                self.begun.shrink_to(KEPT_BYTES);
            }
        }
        Ok(())
    }
}

/// Returns the length of the packet that `bytes` begin with, once it has arrived.
fn length(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(length) = bytes.first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_PACKET { Err(Malformed) } else { Ok(Some(length)) }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn packets_come_back_however_their_stream_was_cut(
            packets in vec(vec(any::<u8>(), 0..20), 0..8), cuts in vec(1..30usize, 1..9),
        ) {
            let mut stream = Vec::new();
            for packet in &packets {
                stream.extend((packet.len() as u32).to_le_bytes());
                stream.extend(packet);
            }
            let (mut incoming, mut seen) = (Incoming::default(), Vec::new());
            let mut left = &stream[..];
            for cut in cuts.iter().cycle() {
                if left.is_empty() {
                    break;
                }
                let (message, rest) = left.split_at((*cut).min(left.len()));
                incoming.receive(message, |packet| seen.push(packet.to_vec())).unwrap();
                left = rest;
            }
            prop_assert_eq!(seen, packets);
        }
    }

    #[test]
    fn a_packet_longer_than_any_is_refused_before_it_arrives() {
        let announced = (MAX_PACKET as u32 + 1).to_le_bytes();
        let mut incoming = Incoming::default();
        assert_eq!(incoming.receive(&announced[..3], |_| unreachable!()), Ok(()));
        assert_eq!(incoming.receive(&announced[3..], |_| unreachable!()), Err(Malformed));
    }
}
