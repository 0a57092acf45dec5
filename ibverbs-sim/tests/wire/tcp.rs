//! Processes that meet over TCP are connected as those of a mesh are.

use std::{
    io::{self, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use ibverbs_sim::{SocketWire, TcpMeeting, Wire};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TIMEOUT: Duration = Duration::from_secs(60);
const SECRET: u128 = 1 << 100 | 7;

fn meetings(count: usize) -> (Vec<TcpMeeting>, Vec<Option<SocketAddr>>) {
    let meetings: Vec<_> = (0..count).map(|_| TcpMeeting::listen(LOOPBACK).unwrap()).collect();
    let addresses = meetings.iter().map(|meeting| Some(meeting.address().unwrap())).collect();
    (meetings, addresses)
}

/// Lets all processes join at once, each with its own addresses and secret.
fn join_all(
    processes: Vec<(TcpMeeting, Vec<Option<SocketAddr>>, u128)>,
    timeout: Duration,
) -> Vec<io::Result<SocketWire>> {
    thread::scope(|scope| {
        let join = |(process, (meeting, addresses, secret)): (u32, (TcpMeeting, Vec<_>, u128))| {
            scope.spawn(move || meeting.join(process, &addresses, secret, timeout))
        };
        let threads: Vec<_> = (0..).zip(processes).map(join).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn wires(count: usize) -> Vec<SocketWire> {
    let (meetings, addresses) = meetings(count);
    let all = meetings.into_iter().map(|meeting| (meeting, addresses.clone(), SECRET)).collect();
    join_all(all, TIMEOUT).into_iter().map(Result::unwrap).collect()
}

/// Returns the next packet that arrives at `wire`, with its sender, while `others` send.
fn next(wire: &SocketWire, others: &[&SocketWire]) -> (u32, Vec<u8>) {
    let mut packets = Vec::new();
    while packets.is_empty() {
        others.iter().for_each(|other| other.poll(&mut |_, _| {}));
        wire.poll(&mut |from, packet| packets.push((from, packet.to_vec())));
    }
    packets.remove(0)
}

#[test]
fn everybody_reaches_everybody() {
    let wires = wires(4);
    for (from, wire) in wires.iter().enumerate() {
        assert_eq!((wire.process(), wire.processes()), (from as u32, 4));
        for to in (0..4).filter(|to| *to != from) {
            wire.send(to as u32, vec![from as u8, to as u8]);
            assert_eq!(next(&wires[to], &[wire]), (from as u32, vec![from as u8, to as u8]));
        }
    }
}

#[test]
fn a_packet_longer_than_any_buffer_arrives() {
    let wires = wires(2);
    let long: Vec<u8> = (0..20_000_000u32).map(|byte| (byte % 251) as u8).collect();
    wires[0].send(1, long.clone());
    assert!(next(&wires[1], &[&wires[0]]).1 == long);
}

#[test]
fn a_process_whose_wire_is_gone_is_lost() {
    let mut wires = wires(3);
    drop(wires.pop());
    while !wires[0].is_lost(2) {
        wires[0].poll(&mut |_, _| {});
    }
    assert!(!wires[0].is_lost(1));
}

#[test]
fn processes_without_an_address_are_left_out() {
    let (meetings, all) = meetings(3);
    let of = |process: usize| match process {
        // The wire leads from 2 to both others, and not from 0 to 1.
        2 => all.clone(),
        other => (0..3).map(|to| all[to].filter(|_| to == other || to == 2)).collect(),
    };
    let processes = meetings.into_iter().enumerate();
    let processes = processes.map(|(process, meeting)| (meeting, of(process), SECRET)).collect();
    let wires: Vec<_> = join_all(processes, TIMEOUT).into_iter().map(Result::unwrap).collect();
    wires[0].send(1, vec![1]);
    wires[0].send(2, vec![2]);
    assert_eq!(next(&wires[2], &[&wires[0]]), (0, vec![2]));
    assert!(!wires[0].is_lost(1) && !wires[0].has_unsent());
}

#[test]
fn strangers_keep_nobody_from_meeting() {
    let (meetings, addresses) = meetings(2);
    let at_first = addresses[0].unwrap();
    let silent = TcpStream::connect(at_first).unwrap();
    let mut loud = TcpStream::connect(at_first).unwrap();
    loud.write_all(b"GET / HTTP/1.1\r\nHost: somewhere else\r\n\r\n").unwrap();
    drop(TcpStream::connect(at_first).unwrap());
    let all = meetings.into_iter().map(|meeting| (meeting, addresses.clone(), SECRET)).collect();
    for wire in join_all(all, TIMEOUT) {
        wire.unwrap();
    }
    drop((silent, loud));
}

#[test]
fn a_process_of_another_run_is_refused() {
    let (meetings, addresses) = meetings(2);
    let secrets = [SECRET, SECRET + 1];
    let all = meetings.into_iter().zip(secrets);
    let all = all.map(|(meeting, secret)| (meeting, addresses.clone(), secret)).collect();
    let errors = join_all(all, Duration::from_millis(300)).into_iter().map(Result::err);
    let errors: Vec<String> = errors.map(|error| error.unwrap().to_string()).collect();
    assert_eq!(
        errors,
        ["no connection with process 1", "process 0 does not answer as one of this run"]
    );
}

#[test]
fn processes_that_count_themselves_differently_are_refused() {
    let (meetings, addresses) = meetings(2);
    let mut more = addresses.clone();
    more.push(None);
    let all = meetings.into_iter().zip([addresses, more]);
    let all = all.map(|(meeting, addresses)| (meeting, addresses, SECRET)).collect();
    let errors = join_all(all, Duration::from_millis(300));
    let error = errors[0].as_ref().err().unwrap().to_string();
    assert_eq!(error, "process 1 expects 3 processes, not 2");
    assert!(errors[1].is_err());
}

#[test]
fn who_does_not_come_is_named() {
    let (mut meetings, addresses) = meetings(4);
    let first = meetings.swap_remove(0);
    let error = first.join(0, &addresses, SECRET, Duration::from_millis(20)).err().unwrap();
    assert_eq!(error.to_string(), "no connection with process 1, 2, 3");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

#[test]
fn a_process_that_is_not_there_is_named_with_its_address() {
    let (mut meetings, addresses) = meetings(2);
    let second = meetings.pop().unwrap();
    drop(meetings);
    let error = second.join(1, &addresses, SECRET, TIMEOUT).err().unwrap();
    let begin = format!("process 0 at {}: ", addresses[0].unwrap());
    assert!(error.to_string().starts_with(&begin), "{error}");
}
