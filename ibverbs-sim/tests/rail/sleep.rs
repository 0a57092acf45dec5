//! A rail that sleeps is woken, by a message and by the end of its peer.

use std::{collections::VecDeque, sync::Arc, thread};

use ibverbs_sim::{Armed, LossReason, Rail, RailEvent, ShmRail};
use rustix::event::{PollFd, PollFlags, poll};

use super::shm::pair;

/// Messages and losses of a rail that sleeps until there is one.
pub(crate) struct Incoming<'a> {
    rail: &'a ShmRail,
    queue: VecDeque<Result<Vec<u8>, LossReason>>,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(rail: &'a ShmRail) -> Self {
        Self { rail, queue: VecDeque::new() }
    }

    pub(crate) fn next(&mut self) -> Result<Vec<u8>, LossReason> {
        loop {
            self.rail.poll(&mut |event| {
                self.queue.push_back(match event {
                    RailEvent::Message { bytes, .. } => Ok(bytes.to_vec()),
                    RailEvent::Lost { reason, .. } => Err(reason),
                    other => panic!("{other:?}"),
                });
            });
            if let Some(next) = self.queue.pop_front() {
                return next;
            }
            if let Armed::Descriptor(descriptor) = self.rail.arm() {
                let mut wanted = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
                poll(&mut wanted, None).unwrap();
            }
        }
    }
}

#[test]
fn a_message_and_the_end_of_a_peer_wake_a_rail_that_sleeps() {
    let [a, b] = pair();
    let sleeper = thread::spawn(move || {
        let mut incoming = Incoming::new(&b);
        for number in 0..2000u32 {
            assert_eq!(incoming.next(), Ok(number.to_ne_bytes().to_vec()));
            b.send(0, &number.to_ne_bytes()).unwrap();
        }
        incoming.next()
    });
    let mut incoming = Incoming::new(&a);
    for number in 0..2000u32 {
        a.send(1, &number.to_ne_bytes()).unwrap();
        assert_eq!(incoming.next(), Ok(number.to_ne_bytes().to_vec()));
    }
    assert!(Arc::into_inner(a).is_some());
    assert_eq!(sleeper.join().unwrap(), Err(LossReason::Ended));
}
