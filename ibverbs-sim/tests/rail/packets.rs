//! The rail of packets, over sockets.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    thread,
    time::Duration,
};

use ibverbs_sim::{LossReason, Packets, Rail, RailEvent, SocketWire, TcpMeeting, Wire};

use super::{conformance, ends::Ends};

fn wires() -> [Arc<SocketWire>; 2] {
    let wires: Vec<_> = SocketWire::mesh(2).unwrap().into_iter().map(Arc::new).collect();
    wires.try_into().unwrap_or_else(|_| panic!("two wires"))
}

fn pair() -> Ends {
    Ends::new(wires().map(|wire| Arc::new(Packets::new(wire)) as Arc<dyn Rail>))
}

/// Returns wires over TCP, which lead to the processes to which `leads` leaves an address.
pub(crate) fn tcp_wires(leads: fn(SocketAddr) -> Option<SocketAddr>) -> [SocketWire; 2] {
    let meetings = [0, 1].map(|_| TcpMeeting::listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap());
    let addresses = meetings.each_ref().map(|meeting| leads(meeting.address().unwrap()));
    let mut number = 0..;
    let threads = meetings.map(|meeting| {
        let process = number.next().unwrap();
        thread::spawn(move || meeting.join(process, &addresses, 7, Duration::from_secs(60)))
    });
    threads.map(|thread| thread.join().unwrap().unwrap())
}

fn pair_over_tcp() -> Ends {
    let wires = tcp_wires(Some);
    Ends::new(wires.map(|wire| Arc::new(Packets::new(Arc::new(wire))) as Arc<dyn Rail>))
}

#[test]
fn packets_keep_the_rules_of_rails() {
    conformance::all(&mut pair());
    conformance::all(&mut pair_over_tcp());
}

#[test]
fn the_end_of_a_wire_is_the_loss_of_its_process() {
    conformance::the_loss_of_a_peer_ends_what_is_under_way(&mut pair());
    conformance::the_loss_of_a_peer_ends_what_is_under_way(&mut pair_over_tcp());
}

#[test]
fn a_malformed_packet_loses_its_sender() {
    for packet in [&b""[..], b"short", &[0; 8], &[0xff; 64], &[1, 1, 0, 0, 9, 0, 0, 0]] {
        let [a, b] = wires();
        let a = Packets::new(a);
        b.send(0, packet.to_vec());
        let mut lost = Vec::new();
        while lost.is_empty() {
            b.poll(&mut |_, _| {});
            a.poll(&mut |event| match event {
                RailEvent::Lost { process, reason } => lost.push((process, reason)),
                other => panic!("{other:?}"),
            });
        }
        assert!(matches!(lost[..], [(1, LossReason::Malformed(_))]), "{lost:?}");
    }
}
