use proptest::{collection::vec, prelude::*};

use super::*;
use crate::rail::frame::Frame;

type Ring = RingMemory<4, 24>;
const BUFFER: usize = 12;

/// Pops a message.
fn pop(reader: &mut Reader, ring: &Ring) -> Result<Option<Vec<u8>>, Malformed> {
    let mut buffer = [0; BUFFER];
    let Some(lengths) = reader.pop(ring, &mut buffer)? else { return Ok(None) };
    let bytes: Vec<u8> =
        buffer[lengths.head..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    Ok(Some(bytes[..lengths.body].to_vec()))
}

#[test]
fn a_slot_is_a_cache_line() {
    assert_eq!(size_of::<Slot>(), 64);
    assert_eq!(size_of::<Taken>(), 64);
}

#[test]
fn a_reserved_slot_has_room_though_the_ring_is_full() {
    let (ring, mut writer, mut reader) = (Ring::new(), Writer::default(), Reader::default());
    let frame = Frame::Message(b"x").encode();
    assert_eq!(writer.reserve(&ring), Ok(true));
    assert_eq!([(); 4].map(|()| writer.push(&ring, &frame)), [true, true, true, false].map(Ok));
    assert_eq!(writer.reserve(&ring), Ok(false));
    assert_eq!(writer.push_reserved(&ring, &Frame::Message(b"kept").encode()), Ok(true));
    for expected in ["x", "x", "x", "kept"] {
        assert_eq!(pop(&mut reader, &ring), Ok(Some(expected.into())));
    }
    assert_eq!(pop(&mut reader, &ring), Ok(None));
}

proptest! {
    #[test]
    fn frames_come_out_as_they_went_in(
        lengths in vec(0usize..80, 1..60),
        pops in vec(0usize..4, 60),
    ) {
        let (ring, mut writer, mut reader) = (Ring::new(), Writer::default(), Reader::default());
        let message = |index: usize| vec![index as u8; lengths[index]];
        let (mut pushed, mut popped) = (0, 0);
        for count in pops.into_iter().chain(std::iter::repeat(1)) {
            while pushed < lengths.len()
                && writer.push(&ring, &Frame::Message(&message(pushed)).encode()).unwrap()
            {
                pushed += 1;
            }
            for _ in 0..count {
                let Some(bytes) = pop(&mut reader, &ring).unwrap() else { break };
                prop_assert_eq!(bytes, message(popped));
                popped += 1;
            }
            if popped == lengths.len() {
                break;
            }
        }
    }

    #[test]
    fn slots_of_any_content_are_frames_or_refused(
        forged in vec((0usize..4, 0u64..9, any::<[u64; 7]>(), 0u64..4), 1..20),
    ) {
        let (ring, mut reader) = (Ring::new(), Reader::default());
        for (slot, sequence, mut words, kind) in forged {
            if kind > 0 {
                words[0] = words[0] & 0xffff_0000_07ff | kind << 8;
            }
            ring.forge(slot, sequence, words);
            let _ = pop(&mut reader, &ring);
        }
    }

    #[test]
    fn counts_out_of_step_are_refused(slots in any::<u64>(), words in any::<u64>()) {
        let (ring, mut writer) = (Ring::new(), Writer::default());
        let frame = Frame::Message(b"x").encode();
        for _ in 0..4 {
            prop_assert_eq!(writer.push(&ring, &frame), Ok(true));
        }
        ring.forge_taken(slots, words);
        let is_possible = slots <= 4 && words == 0;
        prop_assert_eq!(writer.push(&ring, &frame).is_ok(), is_possible);
    }
}
