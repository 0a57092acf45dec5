use loom::{model, sync::Arc, thread};

use super::*;
use crate::rail::frame::Frame;

type Ring = RingMemory<2, 24>;

/// Bytes that fit a slot, bytes that need words of the ring, and others that fit a slot.
const BODIES: [&[u8]; 3] = [b"short", &[7; 80], b"last"];

#[test]
fn loom_frames_are_seen_whole_and_in_order_and_their_room_is_used_again_after_that() {
    model(|| {
        let ring = Arc::new(Ring::new());
        let writer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                let mut writer = Writer::default();
                for body in BODIES {
                    while !writer.push(&*ring, &Frame::Message(body).encode()).unwrap() {
                        thread::yield_now();
                    }
                }
            })
        };
        let (mut reader, mut buffer) = (Reader::default(), [0; 12]);
        for body in BODIES {
            let lengths = loop {
                match reader.pop(&*ring, &mut buffer).unwrap() {
                    Some(lengths) => break lengths,
                    None => thread::yield_now(),
                }
            };
            let bytes: Vec<u8> = buffer[1..].iter().flat_map(|word| word.to_ne_bytes()).collect();
            assert_eq!(&bytes[..lengths.body], body);
        }
        writer.join().unwrap();
    });
}
