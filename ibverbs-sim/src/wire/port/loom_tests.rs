#![allow(unsafe_code, reason = "a model shares memory to see that nobody else uses it")]
use loom::{
    model,
    sync::{Arc as Shared, Mutex as Plain},
    thread,
};

use super::*;
use talpf_primitives::UnsafeCell;

use crate::{
    Connection, Device, DeviceConfig, Operation, QueuePair, QueuePairInit, ReceiveWorkRequest,
};

struct Polled {
    polled: AtomicBool,
    wire: UnsafeCell<u32>,
}

// SAFETY: the model below checks that no two threads use the cell at the same time.
unsafe impl Sync for Polled {}

/// Polling is done by one thread at a time, which sees what those before it have done.
#[test]
fn loom_one_thread_polls() {
    model(|| {
        let (polled, wire) = (AtomicBool::new(false), UnsafeCell::new(0));
        let port = Shared::new(Polled { polled, wire });
        let poll = |port: &Polled| {
            if let Some(_guard) = PollGuard::take(&port.polled) {
                // SAFETY: the guard excludes other threads.
                port.wire.with_mut(|wire| unsafe { *wire += 1 });
            }
        };
        let other = {
            let port = Shared::clone(&port);
            thread::spawn(move || (0..2).for_each(|_| poll(&port)))
        };
        poll(&port);
        other.join().unwrap();
        assert!(PollGuard::take(&port.polled).is_some());
    });
}

/// A wire on which one packet arrives, and that keeps what is sent.
struct Once {
    arriving: Plain<Option<Vec<u8>>>,
    sent: Plain<Vec<Vec<u8>>>,
}

impl Wire for Once {
    fn process(&self) -> u32 {
        0
    }

    fn processes(&self) -> u32 {
        2
    }

    fn send(&self, _: u32, packet: Vec<u8>) {
        self.sent.lock().unwrap().push(packet);
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        let arrived = self.arriving.lock().unwrap().take();
        arrived.iter().for_each(|packet| sink(1, packet));
    }

    fn has_unsent(&self) -> bool {
        false
    }

    fn is_lost(&self, _: u32) -> bool {
        false
    }
}

/// A queue pair whose peer is in another process, and a SEND of that on its way.
fn scene() -> (Device, QueuePair, Arc<Once>) {
    let wire = Arc::new(Once { arriving: Plain::new(None), sent: Plain::new(Vec::new()) });
    let device = Device::with_wire(DeviceConfig::default(), Arc::clone(&wire) as _).unwrap();
    let context = device.open();
    let queue = context.create_completion_queue(4, None).unwrap();
    let init = QueuePairInit {
        max_send_wr: 2,
        max_recv_wr: 2,
        max_recv_sge: 1,
        ..QueuePairInit::new(&queue, &queue)
    };
    let queue_pair = context.allocate_protection_domain().create_queue_pair(&init).unwrap();
    let peer = QueuePairNumber(7);
    queue_pair.connect_to(1, peer, &Connection::default()).unwrap();
    let request = Request {
        to: queue_pair.number(),
        from: peer,
        psn: 0,
        serial: 3,
        solicited: false,
        operation: Operation::Send,
        length: 0,
        payload: b"",
    };
    *wire.arriving.lock().unwrap() = Some(Packet::Request(request).to_bytes());
    (device, queue_pair, wire)
}

/// A peer whose request finds no receive is notified of one that is posted in the meantime, after
/// the response that there is none.
#[test]
fn loom_a_remote_peer_is_notified_of_the_receive_that_it_missed() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 100_000;
    builder.check(|| {
        let (device, queue_pair, wire) = scene();
        let receiver = thread::spawn(move || {
            let receive = ReceiveWorkRequest { wr_id: 2, scatter: &[] };
            queue_pair.post_receive(&[receive]).unwrap();
            queue_pair
        });
        assert_eq!(device.progress(), Ok(1));
        let _queue_pair = receiver.join().unwrap();
        let sent = std::mem::take(&mut *wire.sent.lock().unwrap());
        let sent: Vec<_> = sent.iter().map(|bytes| Packet::from_bytes(bytes).unwrap()).collect();
        let syndrome = |packet: &Packet<'_>| match packet {
            Packet::Response(response) => Some(response.syndrome),
            _ => None,
        };
        match &sent[..] {
            [response] => assert_eq!(syndrome(response), Some(Syndrome::Ack { original: 0 })),
            [refused, Packet::ReceiverReady { .. }] => {
                assert!(matches!(syndrome(refused), Some(Syndrome::RnrNak { .. })));
            }
            other => panic!("{other:?}"),
        }
    });
}
