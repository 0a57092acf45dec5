//! A wire that calls its device, on the same thread, finds no lock of the device held.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use crate::common::*;
use ibverbs_sim::*;

type Action = Box<dyn FnOnce() + Send>;

/// A wire that runs an action of the test once, in its next send or poll.
struct CallbackWire {
    wire: SocketWire,
    in_send: Mutex<Option<Action>>,
    in_poll: Mutex<Option<Action>>,
}

impl CallbackWire {
    fn new(wire: SocketWire) -> Arc<Self> {
        Arc::new(Self { wire, in_send: Mutex::default(), in_poll: Mutex::default() })
    }
}

fn act(place: &Mutex<Option<Action>>) {
    let action = place.lock().take();
    action.into_iter().for_each(|action| action());
}

impl Wire for CallbackWire {
    fn process(&self) -> u32 {
        self.wire.process()
    }

    fn processes(&self) -> u32 {
        self.wire.processes()
    }

    fn send(&self, to: u32, packet: Vec<u8>) {
        act(&self.in_send);
        self.wire.send(to, packet);
    }

    fn poll(&self, sink: &mut dyn FnMut(u32, &[u8])) {
        act(&self.in_poll);
        self.wire.poll(sink);
    }

    fn has_unsent(&self) -> bool {
        self.wire.has_unsent()
    }

    fn is_lost(&self, process: u32) -> bool {
        self.wire.is_lost(process)
    }
}

struct Scene {
    wires: [Arc<CallbackWire>; 2],
    devices: Vec<Device>,
    ends: [End; 2],
}

impl Scene {
    fn new() -> Self {
        let mut wires = SocketWire::mesh(2).unwrap().into_iter();
        let wires = [(); 2].map(|()| CallbackWire::new(wires.next().unwrap()));
        let on = |wire: &Arc<CallbackWire>| {
            Device::with_wire(DeviceConfig::default(), Arc::clone(wire) as _).unwrap()
        };
        let devices: Vec<_> = wires.iter().map(on).collect();
        let ends = [0, 1].map(|process: usize| End::new(&devices[process], |_| {}));
        for process in [0, 1] {
            let peer = ends[1 - process].queue_pair.number();
            let connection = Connection::default();
            ends[process].queue_pair.connect_to(1 - process as u32, peer, &connection).unwrap();
        }
        Self { wires, devices, ends }
    }

    /// Makes an action that deregisters memory of this process, makes progress, and sends a
    /// message.
    fn deregister_action(&self, process: usize) -> (Action, mpsc::Receiver<()>) {
        let (sender, receiver) = mpsc::channel();
        let device = self.devices[process].clone();
        let buffer = self.ends[process].buffer(64);
        let action = move || {
            drop(buffer.deregister());
            device.progress().unwrap();
            sender.send(()).unwrap();
        };
        (Box::new(action), receiver)
    }

    fn settle(&self) {
        crate::connected_pair::settle(&self.devices);
    }
}

/// Runs a test, and fails if it hangs because a lock is held.
fn does_not_hang(test: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let tester = thread::spawn(move || {
        test();
        sender.send(()).unwrap();
    });
    match receiver.recv_timeout(Duration::from_secs(20)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the wire waits for its own thread"),
        _ => tester.join().unwrap(),
    }
}

#[test]
fn a_region_ends_in_the_send_of_a_request() {
    does_not_hang(|| {
        let scene = Scene::new();
        let target = scene.ends[1].buffer(8);
        let (action, done) = scene.deregister_action(0);
        *scene.wires[0].in_send.lock() = Some(action);
        let write = Operation::Write { remote: target.region.at(0) };
        scene.ends[0].post(&[request(1, write, Payload::Inline(b"12345678"))]);
        done.try_recv().unwrap();
        scene.settle();
        assert_eq!(statuses(&scene.ends[0].sent()), [(1, CompletionStatus::Success)]);
        assert_eq!(target.bytes(), b"12345678");
    });
}

#[test]
fn a_region_ends_in_the_send_of_an_answer() {
    does_not_hang(|| {
        let scene = Scene::new();
        let target = scene.ends[1].buffer(8);
        let (action, done) = scene.deregister_action(1);
        *scene.wires[1].in_send.lock() = Some(action);
        let read = Operation::Read { remote: target.region.at(0) };
        let to = scene.ends[0].buffer(8);
        scene.ends[0].post(&[request(1, read, Payload::Gather(&[to.all()]))]);
        scene.settle();
        done.try_recv().unwrap();
        assert_eq!(statuses(&scene.ends[0].sent()), [(1, CompletionStatus::Success)]);
    });
}

#[test]
fn a_region_ends_in_the_send_of_what_says_that_a_receive_is_posted() {
    does_not_hang(|| {
        let scene = Scene::new();
        scene.ends[0].post(&[send(1)]);
        scene.settle();
        let (action, done) = scene.deregister_action(1);
        *scene.wires[1].in_send.lock() = Some(action);
        scene.ends[1].receives(7..8);
        done.try_recv().unwrap();
        scene.settle();
        assert_eq!(statuses(&scene.ends[0].sent()), [(1, CompletionStatus::Success)]);
    });
}

#[test]
fn a_region_ends_in_a_poll() {
    does_not_hang(|| {
        let scene = Scene::new();
        let (action, done) = scene.deregister_action(1);
        *scene.wires[1].in_poll.lock() = Some(action);
        scene.devices[1].progress().unwrap();
        done.try_recv().unwrap();
    });
}

/// The request that is being sent is flushed, as any without a response.
#[test]
fn a_queue_pair_fails_and_goes_in_the_send_of_its_request() {
    for state in [QueuePairState::Error, QueuePairState::Reset] {
        does_not_hang(move || {
            let Scene { wires, devices, ends } = Scene::new();
            let [end, other] = ends;
            let end = Arc::new(end);
            let acting = Arc::clone(&end);
            *wires[0].in_send.lock() = Some(Box::new(move || acting.go_to(state)));
            end.post(&[send(1)]);
            let flushed = [(1, CompletionStatus::WorkRequestFlushed)];
            let expected = if state == QueuePairState::Error { &flushed[..] } else { &[] };
            assert_eq!(statuses(&end.sent()), expected);
            crate::connected_pair::settle(&devices);
            assert!(other.received().is_empty());
        });
    }
}

/// A request that the wire itself posts is carried out.
#[test]
fn a_request_is_posted_in_the_send_of_another() {
    does_not_hang(|| {
        let Scene { wires, devices, ends } = Scene::new();
        let [end, other] = ends;
        other.receives(0..2);
        let end = Arc::new(end);
        let acting = Arc::clone(&end);
        *wires[0].in_send.lock() = Some(Box::new(move || acting.post(&[send(2)])));
        end.post(&[send(1)]);
        crate::connected_pair::settle(&devices);
        let success = CompletionStatus::Success;
        assert_eq!(statuses(&end.sent()), [(1, success), (2, success)]);
        assert_eq!(statuses(&other.received()), [(0, success), (1, success)]);
    });
}
