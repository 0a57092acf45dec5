#![allow(unsafe_code, reason = "the rail of a model implements the trait")]
use std::{fs::File, os::fd::AsFd, ptr::NonNull};

use loom::{
    sync::{Arc as Shared, Mutex as Plain},
    thread,
};

use super::*;
use crate::{
    Access, Armed, CompletionStatus, Connection, Device, DeviceConfig, Operation, Payload, Posted,
    QueuePair, QueuePairInit, QueuePairNumber, RailAddress, RailError, RailKey, RailLimits,
    ReceiveWorkRequest, SendFlags, SendWorkRequest, WorkCompletion,
};

/// A rail on which messages arrive, and that keeps what is sent as long as it has room.
struct Kept {
    arriving: Plain<Vec<Vec<u8>>>,
    sent: Plain<Vec<Vec<u8>>>,
    room: Plain<Room>,
    event: File,
}

#[derive(Default)]
struct Room {
    is_full: bool,
    was_missed: bool,
    is_slept_for: bool,
    /// Set once who sleeps for room is woken.
    has_woken: bool,
}

impl Default for Kept {
    fn default() -> Self {
        let event = File::open("/dev/null").unwrap();
        Kept { arriving: Plain::default(), sent: Plain::default(), room: Plain::default(), event }
    }
}

impl Rail for Kept {
    fn process(&self) -> u32 {
        0
    }

    fn processes(&self) -> u32 {
        2
    }

    fn limits(&self) -> RailLimits {
        RailLimits {
            eager_bytes: 1024,
            notice_bytes: 0,
            needs_peer_processor: true,
            is_mapped: false,
            long_bytes: None,
            has_event: false,
        }
    }

    unsafe fn register(&self, _: NonNull<[u8]>, _: Access) -> Result<RailKey, RailError> {
        Err(RailError::NotRegistered)
    }

    fn deregister(&self, _: &RailKey) -> Result<(), RailError> {
        Err(RailError::NotRegistered)
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), RailError> {
        let mut room = self.room.lock().unwrap();
        if room.is_full {
            room.was_missed = true;
            return Err(RailError::NoRoom { process: to });
        }
        drop(room);
        self.sent.lock().unwrap().push(bytes.to_vec());
        Ok(())
    }

    unsafe fn write(
        &self,
        to: u32,
        _: NonNull<[u8]>,
        _: &RailAddress,
        _: Option<u32>,
        _: u64,
    ) -> Result<Posted, RailError> {
        Err(RailError::NoRoom { process: to })
    }

    unsafe fn read(
        &self,
        to: u32,
        _: NonNull<[u8]>,
        _: &RailAddress,
        _: u64,
    ) -> Result<Posted, RailError> {
        Err(RailError::NoRoom { process: to })
    }

    fn poll(&self, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize {
        let arrived = std::mem::take(&mut *self.arriving.lock().unwrap());
        arrived.iter().for_each(|bytes| sink(RailEvent::Message { from: 1, bytes }));
        arrived.len()
    }

    fn has_unsent(&self) -> bool {
        false
    }

    fn arm(&self) -> Armed<'_> {
        let mut room = self.room.lock().unwrap();
        room.is_slept_for = room.was_missed;
        if room.was_missed && !room.is_full {
            room.was_missed = false;
            return Armed::Ready;
        }
        Armed::Descriptor(self.event.as_fd())
    }

    fn announces_room(&self, _: u32) -> bool {
        self.room.lock().unwrap().was_missed
    }
}

impl Kept {
    /// Makes room, and wakes who sleeps for that.
    fn make_room(&self) {
        let mut room = self.room.lock().unwrap();
        room.is_full = false;
        room.has_woken |= room.is_slept_for;
    }

    fn arrives(&self, packet: Packet<'_>) {
        let packet = [packet.head().as_bytes(), packet.payload()].concat();
        let message = [&(packet.len() as u32).to_le_bytes()[..], &packet].concat();
        self.arriving.lock().unwrap().push(message);
    }

    /// Passes the packets that were sent to `check`, in order.
    fn check_sent(&self, check: impl FnOnce(&[Packet<'_>])) {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap());
        let (mut incoming, mut packets) = (Incoming::default(), Vec::new());
        for message in &sent {
            incoming.receive(message, |packet| packets.push(packet.to_vec())).unwrap();
        }
        let packets = packets.iter().map(|bytes| Packet::from_bytes(bytes).unwrap());
        check(&packets.collect::<Vec<_>>());
    }
}

const PEER: QueuePairNumber = QueuePairNumber(7);

/// A queue pair whose peer is in another process.
struct Scene {
    device: Device,
    queue_pair: QueuePair,
    queue: crate::CompletionQueue,
    rail: Arc<Kept>,
}

fn scene() -> Scene {
    let rail = Arc::new(Kept::default());
    let device = Device::with_rail(DeviceConfig::default(), Arc::clone(&rail) as _).unwrap();
    let context = device.open();
    let queue = context.create_completion_queue(4, None).unwrap();
    let init = QueuePairInit {
        max_send_wr: 2,
        max_recv_wr: 2,
        max_recv_sge: 1,
        signal_all: true,
        ..QueuePairInit::new(&queue, &queue)
    };
    let queue_pair = context.allocate_protection_domain().create_queue_pair(&init).unwrap();
    let connection = Connection { timeout_ns: 0, ..Connection::default() };
    queue_pair.connect_to(1, PEER, &connection).unwrap();
    Scene { device, queue_pair, queue, rail }
}

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 100_000;
    builder.check(check);
}

/// A peer whose request finds no receive is notified of one that is posted in the meantime, after
/// the response that there is none.
#[test]
fn loom_a_remote_peer_is_notified_of_the_receive_that_it_missed() {
    model(|| {
        let Scene { device, queue_pair, queue: _queue, rail } = scene();
        rail.arrives(Packet::Request(Request {
            to: queue_pair.number(),
            from: PEER,
            psn: 0,
            connection: 3,
            solicited: false,
            is_delivered: false,
            operation: Operation::Send,
            length: 0,
            payload: b"",
        }));
        let receiver = thread::spawn(move || {
            let receive = ReceiveWorkRequest { wr_id: 2, scatter: &[] };
            queue_pair.post_receive(&[receive]).unwrap();
            queue_pair
        });
        assert_eq!(device.progress(), Ok(1));
        let _queue_pair = receiver.join().unwrap();
        let syndrome = |packet: &Packet<'_>| match packet {
            Packet::Response(response) => Some(response.syndrome),
            _ => None,
        };
        rail.check_sent(|sent| match sent {
            [response] => assert_eq!(syndrome(response), Some(Syndrome::Ack { original: 0 })),
            [refused, Packet::ReceiverReady { .. }] => {
                assert!(matches!(syndrome(refused), Some(Syndrome::RnrNak { .. })));
            }
            other => panic!("{other:?}"),
        });
    });
}

fn send(wr_id: u64) -> SendWorkRequest<'static> {
    let (operation, payload) = (Operation::Send, Payload::Inline(b""));
    SendWorkRequest { wr_id, operation, payload, flags: SendFlags::NONE }
}

/// The response to a request arrives while another thread posts the next: both are sent in order,
/// and the first completes.
#[test]
fn loom_a_response_meets_a_poster() {
    model(|| {
        let Scene { device, queue_pair, queue, rail } = scene();
        queue_pair.post_send(&[send(0)]).unwrap();
        rail.arrives(Packet::Response(Response {
            to: queue_pair.number(),
            from: PEER,
            connection: 0,
            psn: 0,
            syndrome: Syndrome::Ack { original: 0 },
            payload: &[],
        }));
        let queue_pair = Shared::new(queue_pair);
        let poster = {
            let queue_pair = Shared::clone(&queue_pair);
            thread::spawn(move || queue_pair.post_send(&[send(1)]).unwrap())
        };
        assert_eq!(device.progress(), Ok(1));
        poster.join().unwrap();
        let mut completions = [WorkCompletion::default(); 4];
        assert_eq!(queue.poll(&mut completions), 1);
        assert_eq!((completions[0].wr_id, completions[0].status), (0, CompletionStatus::Success));
        assert!(!queue_pair.is_drained());
        rail.check_sent(|sent| {
            let psns = sent.iter().map(|packet| match packet {
                Packet::Request(request) => request.psn,
                other => panic!("{other:?}"),
            });
            assert!(psns.eq(0..2));
        });
    });
}

/// A process is lost while a thread posts: no request is left without a completion.
#[test]
fn loom_no_request_is_left_when_its_process_is_lost() {
    model(|| {
        let Scene { device, queue_pair, queue, rail } = scene();
        let poster = thread::spawn(move || {
            queue_pair.post_send(&[send(0)]).unwrap();
            queue_pair
        });
        // A length that no packet has.
        rail.arriving.lock().unwrap().push(u32::MAX.to_le_bytes().to_vec());
        assert!(device.progress().is_err());
        let queue_pair = poster.join().unwrap();
        let mut completions = [WorkCompletion::default(); 4];
        assert_eq!(queue.poll(&mut completions), 1);
        assert_eq!(completions[0].status, CompletionStatus::RetryExceeded);
        assert!(queue_pair.is_drained());
    });
}

/// A request finds no room, which is made while a thread is about to sleep: the request is sent, or the
/// thread does not sleep, or is woken.
#[test]
fn loom_nobody_sleeps_through_room_for_what_is_unsent() {
    model(|| {
        let Scene { device, queue_pair, queue: _queue, rail } = scene();
        rail.room.lock().unwrap().is_full = true;
        let has_called = Shared::new(AtomicBool::new(false));
        let called = Shared::clone(&has_called);
        device.call_if_unsent(move || called.store(true, Ordering::Release));
        let poster = thread::spawn(move || {
            queue_pair.post_send(&[send(0)]).unwrap();
            queue_pair
        });
        let reader = {
            let rail = Arc::clone(&rail);
            thread::spawn(move || rail.make_room())
        };
        let sleeps = (0..3).find_map(|_| {
            assert_eq!(device.progress(), Ok(0));
            match device.arm() {
                Armed::Ready => None,
                armed => Some(matches!(armed, Armed::Descriptor(_))),
            }
        });
        let sleeps = sleeps.expect("the rail is ready once");
        let _queue_pair = poster.join().unwrap();
        reader.join().unwrap();
        let is_woken = has_called.load(Ordering::Acquire) || rail.room.lock().unwrap().has_woken;
        assert!(!sleeps || is_woken || !rail.sent.lock().unwrap().is_empty());
    });
}
