//! Peers that break the protocol.

use proptest::{collection::vec, prelude::*};

use super::{ShmConfig, ShmRail};
use crate::rail::{LossReason, Rail, RailError, RailEvent};

fn pair() -> [ShmRail; 2] {
    let config = ShmConfig { segment_bytes: 1 << 20, ..ShmConfig::default() };
    let rails = ShmRail::mesh(2, &config).unwrap();
    rails.try_into().unwrap_or_else(|_| panic!("two rails"))
}

/// Polls once and returns the losses.
fn losses(rail: &ShmRail) -> Vec<LossReason> {
    let mut losses = Vec::new();
    rail.poll(&mut |event| {
        if let RailEvent::Lost { process: 0, reason } = event {
            losses.push(reason);
        }
    });
    losses
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn slots_of_any_content_lose_their_sender_and_nothing_else(
        forged in vec((0usize..8, 0u64..9, any::<[u64; 7]>(), 0u64..9, 0u64..6), 1..12),
    ) {
        let [_, rail] = pair();
        let ring = rail.ring_from(0);
        for (slot, sequence, mut words, kind, head) in forged {
            words[0] = words[0] & 0x1f_0000_0000 | kind | head << 8;
            ring.forge(slot, sequence, words);
            let losses = losses(&rail);
            prop_assert!(losses.len() <= 1);
            if let Some(reason) = losses.first() {
                prop_assert!(matches!(reason, LossReason::Malformed(_)), "{:?}", reason);
                prop_assert_eq!(rail.send(0, b"x"), Err(RailError::Lost { process: 0 }));
                break;
            }
        }
    }
}

#[test]
fn a_length_beyond_the_ring_loses_its_sender() {
    for length in [8193u64, 1 << 20, u64::from(u32::MAX)] {
        let [_, rail] = pair();
        rail.ring_from(0).forge(0, 1, [1 | 1 << 8 | length << 32, 0, 0, 0, 0, 0, 0]);
        assert_eq!(losses(&rail), [LossReason::Malformed("a frame beyond its ring")]);
    }
}

#[test]
fn a_sequence_number_out_of_step_loses_its_sender() {
    let [_, rail] = pair();
    rail.ring_from(0).forge(0, 2, [0; 7]);
    let reason = LossReason::Malformed("a sequence number that is out of step");
    assert_eq!(losses(&rail), [reason]);
}

#[test]
fn a_count_out_of_step_loses_the_reader() {
    let [_, rail] = pair();
    while rail.send(0, b"x").is_ok() {}
    rail.ring_to(0).forge_taken(u64::MAX, 0);
    assert_eq!(rail.send(0, b"x"), Err(RailError::Lost { process: 0 }));
    assert!(matches!(losses(&rail)[..], [LossReason::Malformed(_)]));
}
