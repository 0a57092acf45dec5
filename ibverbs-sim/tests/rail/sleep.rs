//! A rail that sleeps is woken, by a message, by the end of its peer, and by room for what it could not send.

use std::{collections::VecDeque, os::fd::BorrowedFd, sync::Arc, thread};

use ibverbs_sim::{Armed, LossReason, Packets, Rail, RailError, RailEvent, SocketWire, Wire};
use rustix::event::{PollFd, PollFlags, poll};

use super::{ofi, packets, routed, shm};

/// Messages and losses of a rail that sleeps until there is one.
pub(crate) struct Incoming<'a> {
    rail: &'a dyn Rail,
    queue: VecDeque<Result<Vec<u8>, LossReason>>,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(rail: &'a dyn Rail) -> Self {
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

/// Returns pairs of rails of all kinds that have an event.
fn pairs() -> Vec<[Arc<dyn Rail>; 2]> {
    let of_wires = |wires: [SocketWire; 2]| {
        wires.map(|wire| Arc::new(Packets::new(Arc::new(wire))) as Arc<dyn Rail>)
    };
    let mesh = SocketWire::mesh(2).unwrap().try_into().ok();
    let mut pairs = vec![
        shm::pair().map(|rail| rail as Arc<dyn Rail>),
        of_wires(mesh.unwrap()),
        of_wires(packets::tcp_wires(Some)),
        routed::rails_of_one_machine(),
        routed::rails_of_two_machines(),
    ];
    pairs.extend(ofi::providers().iter().map(|provider| ofi::pair(provider)));
    pairs
}

#[test]
fn a_message_and_the_end_of_a_peer_wake_a_rail_that_sleeps() {
    for [a, b] in pairs() {
        wake_by_messages_and_the_end(a, b);
    }
}

fn wake_by_messages_and_the_end(a: Arc<dyn Rail>, b: Arc<dyn Rail>) {
    assert!(a.limits().has_event && b.limits().has_event);
    let sleeper = thread::spawn(move || {
        let mut incoming = Incoming::new(&*b);
        for number in 0..2000u32 {
            assert_eq!(incoming.next(), Ok(number.to_ne_bytes().to_vec()));
            b.send(0, &number.to_ne_bytes()).unwrap();
        }
        incoming.next()
    });
    let mut incoming = Incoming::new(&*a);
    for number in 0..2000u32 {
        a.send(1, &number.to_ne_bytes()).unwrap();
        assert_eq!(incoming.next(), Ok(number.to_ne_bytes().to_vec()));
    }
    drop(a);
    assert_eq!(sleeper.join().unwrap(), Err(LossReason::Ended));
}

/// Returns `true` if the descriptor of a rail is readable at present.
fn is_ready(rail: &dyn Rail) -> bool {
    match rail.arm() {
        Armed::Descriptor(descriptor) => is_readable(descriptor),
        armed => panic!("{armed:?}"),
    }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut wanted = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    poll(&mut wanted, Some(&Default::default())).unwrap() > 0
}

#[test]
fn room_for_what_was_refused_wakes_a_rail_over_shared_memory() {
    for [a, b] in [shm::pair().map(|rail| rail as Arc<dyn Rail>), routed::rails_of_one_machine()] {
        assert!(!a.announces_room(1), "nothing was refused");
        while a.send(1, &[7; 64]).is_ok() {}
        assert_eq!(a.send(1, &[7; 64]), Err(RailError::NoRoom { process: 1 }));
        assert!(a.announces_room(1));
        let Armed::Descriptor(event) = a.arm() else { panic!("nothing is there") };
        assert!(!is_readable(event), "nobody has made room");
        assert!(b.poll(&mut |_| ()) > 0);
        assert!(is_readable(event), "there is room");
        assert_eq!(a.poll(&mut |event| panic!("{event:?}")), 0);
        while a.send(1, &[7; 64]).is_ok() {}
        assert!(b.poll(&mut |_| ()) > 0);
        assert!(matches!(a.arm(), Armed::Ready), "there was room before the sleep");
        assert!(!a.announces_room(1), "there is room");
        assert_eq!(a.poll(&mut |event| panic!("{event:?}")), 0);
        a.send(1, &[7; 64]).unwrap();
        assert!(!is_ready(&*a), "nothing waits for room");
        assert!(b.poll(&mut |_| ()) > 0);
        assert!(!is_ready(&*a), "nothing waits for room");
    }
}

#[test]
fn room_for_what_is_unsent_wakes_a_rail_over_sockets() {
    let mut wires = SocketWire::mesh(2).unwrap();
    let (receiver, sender) = (wires.remove(1), wires.remove(0));
    let rail = Packets::new(Arc::new(sender));
    while !rail.has_unsent() {
        rail.send(1, &[7; 4096]).unwrap();
    }
    assert!(!is_ready(&rail), "nobody has made room");
    while !is_ready(&rail) {
        receiver.poll(&mut |_, _| {});
    }
    while rail.has_unsent() {
        receiver.poll(&mut |_, _| {});
        assert_eq!(rail.poll(&mut |event| panic!("{event:?}")), 0);
    }
    assert!(!is_ready(&rail), "all is sent");
}

#[test]
fn a_peer_that_is_given_up_wakes_a_rail_that_sleeps() {
    for [a, b] in pairs() {
        let rail = Arc::clone(&a);
        let sleeper = thread::spawn(move || Incoming::new(&*rail).next());
        a.give_up(1);
        assert_eq!(sleeper.join().unwrap(), Err(LossReason::Silent));
        assert_eq!(a.send(1, b"late"), Err(RailError::Lost { process: 1 }));
        // Its own numbers, and those of nobody, are ignored.
        a.give_up(0);
        a.give_up(7);
        // The other one learns that it was given up.
        assert_eq!(Incoming::new(&*b).next(), Err(LossReason::Ended));
    }
}
