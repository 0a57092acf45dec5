//! Packets with any numbers: forbidden accesses are refused before memory is touched, and memory is
//! allocated only for received bytes and for data that the peer may read.

use proptest::{collection::vec, prelude::*, sample::select};

use crate::{
    common::*,
    counting_allocator::peak_during,
    forger::{Scene, message},
};
use ibverbs_sim::*;

/// A number in a packet, relative to its valid value in the scene.
#[derive(Clone, Copy, Debug)]
enum Claimed {
    Right,
    /// An offset from the valid value, wrapping.
    Beside(i64),
    Any(u64),
}

impl Claimed {
    fn number(self, right: u64) -> u64 {
        match self {
            Self::Right => right,
            Self::Beside(by) => right.wrapping_add_signed(by),
            Self::Any(number) => number,
        }
    }
}

fn claimed() -> impl Strategy<Value = Claimed> {
    let edges = [0, 1, 7, 8, 63, 64, 65, 1 << 24, 1 << 31, u64::from(u32::MAX), 1 << 32, 1 << 63];
    prop_oneof![
        6 => Just(Claimed::Right),
        2 => (-70i64..70).prop_map(Claimed::Beside),
        2 => select(edges.to_vec()).prop_map(Claimed::Any),
        1 => (0u64..70).prop_map(|less| Claimed::Any(u64::MAX - less)),
        1 => any::<u64>().prop_map(Claimed::Any),
    ]
}

/// Parts of a packet: kind, opcode or code, numbers, payload, and the length to which it is cut or
/// extended.
#[derive(Clone, Debug)]
struct Forged {
    kind: u8,
    code: u8,
    to: Claimed,
    from: Claimed,
    psn: Claimed,
    connection: Claimed,
    key: Claimed,
    address: Claimed,
    length: Claimed,
    payload: Vec<u8>,
    in_closed: bool,
    cut: Option<usize>,
    more: usize,
}

fn forged() -> impl Strategy<Value = Forged> {
    let payload = prop_oneof![vec(any::<u8>(), 0..80), Just(vec![1; 8]), Just(vec![1; 1 << 16])];
    let shape = (0..6u8, prop_oneof![0..8u8, any::<u8>()], payload, any::<bool>());
    let numbers = (claimed(), claimed(), claimed(), claimed(), claimed(), claimed(), claimed());
    let ends = (prop::option::weighted(0.2, 0..80usize), prop_oneof![4 => Just(0), 1 => 1..9usize]);
    (shape, numbers, ends).prop_map(|(shape, numbers, (cut, more))| {
        let (kind, code, payload, in_closed) = shape;
        let (to, from, psn, connection, key, address, length) = numbers;
        Forged {
            kind,
            code,
            to,
            from,
            psn,
            connection,
            key,
            address,
            length,
            payload,
            in_closed,
            cut,
            more,
        }
    })
}

impl Forged {
    /// Returns the bytes of the packet, with sequence number `nth`.
    fn bytes(&self, scene: &Scene, nth: u32) -> Vec<u8> {
        let region = if self.in_closed { &scene.closed } else { &scene.open }.region.at(0);
        let mut packet = vec![self.kind];
        let word = |packet: &mut Vec<u8>, number: u64| packet.extend((number as u32).to_le_bytes());
        word(&mut packet, self.to.number(scene.end.queue_pair.number().to_u32().into()));
        word(&mut packet, self.from.number(1));
        match self.kind {
            1 => {
                word(&mut packet, self.psn.number(nth.into()));
                word(&mut packet, self.connection.number(0));
                packet.extend([0, self.code]);
                packet.extend(self.address.number(region.address).to_le_bytes());
                word(&mut packet, self.key.number(region.key.to_u32().into()));
                packet.extend([0; 16]);
                packet.extend(self.length.number(self.payload.len() as u64).to_le_bytes());
            }
            2 => {
                word(&mut packet, self.connection.number(0));
                word(&mut packet, self.psn.number(0));
                packet.push(self.code);
                packet.extend(self.length.number(0).to_le_bytes());
            }
            _ => {}
        }
        if self.kind != 3 {
            packet.extend(&self.payload);
        }
        packet.truncate(self.cut.unwrap_or(packet.len()));
        packet.extend(vec![0; self.more]);
        packet
    }
}

/// Bytes that a packet may allocate beside some copies of itself: for 64 readable bytes, a
/// response, completions, events and list entries.
const SMALL: usize = 16 << 10;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn packets_of_any_numbers_touch_and_allocate_no_more_than_they_may(
        packets in vec(forged(), 1..12),
    ) {
        let scene = Scene::new();
        scene.closed.fill(&[7; 64]);
        for (nth, forged) in packets.iter().enumerate() {
            let packet = forged.bytes(&scene, nth as u32);
            let mut progressed = Ok(0);
            let most = peak_during(|| progressed = scene.arrives(&packet));
            let is_sound = matches!(progressed, Ok(1) | Err(Error::MalformedPacket { process: 1 }));
            prop_assert!(is_sound, "{progressed:?}");
            prop_assert!(most <= 4 * packet.len() + SMALL, "{most} bytes for {}", packet.len());
            prop_assert_eq!(scene.closed.bytes(), [7; 64]);
        }
        // Responses have a header, and at most the readable bytes.
        prop_assert!(scene.forger.sent.lock().iter().all(|sent| sent.len() <= 64 + 64));
        // One request and one receive were posted.
        prop_assert!(scene.end.sent().len() <= 1 && scene.end.received().len() <= 1);
    }
}

#[test]
fn an_answer_longer_than_any_message_is_not_kept() {
    let scene = Scene::new();
    let answer = scene.forge_response(&vec![1; 48 << 20]);
    scene.forger.arriving.lock().push(message(&[&answer]));
    let most = peak_during(|| assert_eq!(scene.device.progress(), Ok(1)));
    assert!(most <= (4 << 20) + SMALL, "{most}");
    assert_eq!(statuses(&scene.end.sent()), [(1, CompletionStatus::RemoteOperation)]);
    assert_eq!(scene.open.bytes(), [0; 64]);
}

#[test]
fn a_flood_of_packets_that_bring_nothing_is_not_listed() {
    let scene = Scene::new();
    let mut ready = vec![3];
    ready.extend(scene.end.queue_pair.number().to_u32().to_le_bytes());
    ready.extend(1u32.to_le_bytes());
    scene.forger.arriving.lock().extend(vec![message(&[&ready]); 100_000]);
    let most = peak_during(|| assert_eq!(scene.device.progress(), Ok(100_000)));
    assert!(most <= SMALL, "{most}");
}
