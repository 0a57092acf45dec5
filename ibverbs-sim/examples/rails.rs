//! Two ends of a rail: one registers memory, the other writes into it with a notice.
//!
//! Here both ends are threads of one process. Two processes of a machine call [`ShmRail::join`]
//! instead, with the name of their run; [`Packets`](ibverbs_sim::Packets) is the same over any wire.
#![allow(unsafe_code, reason = "memory is registered, and written by the other end")]

use std::{ptr::NonNull, thread};

use ibverbs_sim::{
    Access, CompletionStatus, Posted, Rail, RailAddress, RailEvent, RailKey, ShmConfig, ShmRail,
};

pub(crate) fn main() {
    let config = ShmConfig::default();
    let [owner, writer]: [ShmRail; 2] = ShmRail::mesh(2, &config)
        .expect("memory and descriptors")
        .try_into()
        .unwrap_or_else(|_| unreachable!("two rails"));
    let writer = thread::spawn(move || write_a_text(&writer));

    // Memory of a segment is mapped by the peer, which stores into it directly.
    let segment = owner.allocate(64).expect("memory of the machine");
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    // SAFETY: the segment lives until the key is deregistered, and is read after the notice only.
    let key = unsafe { owner.register(segment.memory(), access) }.expect("few keys are in use");
    owner.send(1, key.as_bytes()).expect("the peer has just started");

    let mut length = None;
    while length.is_none() {
        owner.poll(&mut |event| {
            if let RailEvent::Notice { notice, .. } = event {
                length = Some(notice as usize);
            }
        });
    }
    owner.deregister(&key).expect("the key is registered");
    // SAFETY: nobody writes to the segment any more.
    let bytes = unsafe { segment.memory().as_ref() };
    assert_eq!(&bytes[..length.unwrap_or(0)], b"written by the peer");
    writer.join().expect("the writer has not panicked");
}

/// Waits for a key, and writes a text to what it opens. The notice is the length of the text.
fn write_a_text(rail: &ShmRail) {
    let mut key = None;
    while key.is_none() {
        rail.poll(&mut |event| {
            if let RailEvent::Message { bytes, .. } = event {
                key = RailKey::from_bytes(bytes);
            }
        });
    }
    let Some(key) = key else { return };
    let mut text = *b"written by the peer";
    let (local, remote) = (NonNull::from(&mut text[..]), RailAddress { key, offset: 0 });
    // SAFETY: the text stays until the write has ended, which is at once.
    let posted = unsafe { rail.write(0, local, &remote, Some(text.len() as u32), 0) };
    assert_eq!(posted, Ok(Posted::Ended(CompletionStatus::Success)));
}
