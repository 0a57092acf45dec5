//! Connections of strangers, and of processes that send what they like.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use ibverbs_sim::bootstrap::Bootstrap;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::{Server, TIMEOUT, each};

#[test]
fn strangers_keep_nobody_from_meeting() {
    let server = Server::start(2, TIMEOUT);
    let connect = || TcpStream::connect(&server.address).unwrap();
    let silent = connect();
    let mut loud = connect();
    loud.write_all(b"GET / HTTP/1.1\r\nHost: somewhere else\r\n\r\n").unwrap();
    drop(connect());
    each(2, |process| server.join(process, 2).fence().unwrap());
    assert_eq!(server.error(), None);
    assert_eq!(loud.read(&mut [0; 8]).unwrap_or(0), 0);
    drop(silent);
}

#[test]
fn a_message_longer_than_any_ends_its_connection_before_it_has_come() {
    let server = Server::start(1, TIMEOUT);
    let mut stranger = TcpStream::connect(&server.address).unwrap();
    stranger.write_all(&[1, 0, 16, 0, 1]).unwrap();
    assert_eq!(stranger.read(&mut [0; 8]).unwrap_or(0), 0);
    server.join(0, 1).fence().unwrap();
    assert_eq!(server.error(), None);
}

#[test]
fn bytes_of_any_content_disturb_nobody() {
    let mut runner = TestRunner::new(Config { cases: 40, ..Config::default() });
    let message = (0..6u8, vec(any::<u8>(), 0..40));
    let run = runner.run(&vec(message, 0..4), |messages| {
        let server = Server::start(1, TIMEOUT);
        let mut stranger = TcpStream::connect(&server.address).unwrap();
        for (kind, content) in messages {
            let length = (content.len() as u32).to_le_bytes();
            // The server may have closed the connection by now.
            let _ = stranger.write_all(&[&length[..], &[kind], &content].concat());
        }
        server.join(0, 1).fence().unwrap();
        prop_assert_eq!(server.error(), None);
        Ok(())
    });
    run.unwrap();
}
