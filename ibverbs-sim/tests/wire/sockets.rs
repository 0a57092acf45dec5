//! Processes that join through a folder are connected as those of a mesh are.

use std::{
    fs,
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    process, thread,
    time::Duration,
};

use ibverbs_sim::{MAX_PACKET, SocketWire, Wire};
use proptest::{collection::vec, prelude::*};

/// A temporary folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("verbs-{name}-{}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn everybody_reaches_everybody() {
    let folder = Folder::new("meet");
    thread::scope(|scope| {
        for process in (0..4).rev() {
            let folder = &folder.0;
            scope.spawn(move || {
                let timeout = Duration::from_secs(60);
                let wire = SocketWire::join(folder, process, 4, timeout).unwrap();
                assert_eq!((wire.process(), wire.processes()), (process, 4));
                let others = (0..4).filter(|other| *other != process);
                others.clone().for_each(|other| wire.send(other, vec![process as u8, other as u8]));
                let mut from = Vec::new();
                while from.len() < 3 {
                    wire.poll(&mut |sender, packet| {
                        assert_eq!(packet, [sender as u8, process as u8]);
                        from.push(sender);
                    });
                    thread::yield_now();
                }
                from.sort_unstable();
                assert!(from.into_iter().eq(others));
            });
        }
    });
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

/// Creates a wire whose only peer is a socket of the test.
fn with_raw_peer(folder: &Folder) -> (SocketWire, UnixStream) {
    thread::scope(|scope| {
        let timeout = Duration::from_secs(60);
        let wire = scope.spawn(move || SocketWire::join(&folder.0, 0, 2, timeout).unwrap());
        let mut peer = loop {
            match UnixStream::connect(folder.0.join("process-0")) {
                Ok(peer) => break peer,
                Err(_) => thread::yield_now(),
            }
        };
        peer.write_all(&1u32.to_le_bytes()).unwrap();
        (wire.join().unwrap(), peer)
    })
}

#[test]
fn a_peer_that_announces_too_long_a_packet_is_lost() {
    let folder = Folder::new("too-long");
    let (wire, mut peer) = with_raw_peer(&folder);
    peer.write_all(&(MAX_PACKET as u32 + 1).to_le_bytes()).unwrap();
    while !wire.is_lost(1) {
        wire.poll(&mut |_, _| panic!("a packet"));
    }
}

#[test]
fn what_a_peer_does_not_take_in_is_counted() {
    let folder = Folder::new("not-taken-in");
    let (wire, mut peer) = with_raw_peer(&folder);
    const LENGTH: usize = 8 << 20;
    wire.send(1, vec![7; LENGTH]);
    let waits = wire.unsent_bytes(1);
    assert!(wire.has_unsent() && waits > LENGTH / 2 && waits <= LENGTH + 4, "{waits}");
    let reader = thread::spawn(move || {
        let mut bytes = vec![0; LENGTH + 4];
        peer.read_exact(&mut bytes).unwrap();
        peer
    });
    while wire.has_unsent() {
        wire.poll(&mut |_, _| {});
    }
    assert_eq!(wire.unsent_bytes(1), 0);
    drop(reader.join().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Complete packets arrive regardless of the pieces of the stream, and malformed bytes lose the
    /// peer or wait for more.
    #[test]
    fn a_stream_of_any_bytes_is_taken_in(
        packets in vec(vec(any::<u8>(), 0..40), 0..5), garbage in vec(any::<u8>(), 0..40),
    ) {
        let folder = Folder::new("any-bytes");
        let (wire, mut peer) = with_raw_peer(&folder);
        for packet in &packets {
            peer.write_all(&(packet.len() as u32).to_le_bytes()).unwrap();
            peer.write_all(packet).unwrap();
        }
        peer.write_all(&garbage).unwrap();
        drop(peer);
        let mut arrived = Vec::new();
        while !wire.is_lost(1) {
            wire.poll(&mut |from, packet| {
                assert_eq!(from, 1);
                arrived.push(packet.to_vec());
            });
        }
        prop_assert!(arrived.len() >= packets.len() && arrived[..packets.len()] == packets[..]);
    }
}

#[test]
fn a_join_without_the_other_processes_fails() {
    let folder = Folder::new("alone");
    assert!(SocketWire::join(&folder.0, 1, 2, Duration::from_millis(2)).is_err());
    assert!(SocketWire::join(&folder.0.join("none"), 0, 1, Duration::ZERO).is_err());
}
