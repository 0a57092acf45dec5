#![allow(unsafe_code, reason = "memory is registered")]
//! Peers that break the protocol.

use std::{
    io,
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    process, thread,
    time::Duration,
};

use proptest::{collection::vec, prelude::*};
use talpf_primitives::HUGE_PAGE;

use super::{ShmConfig, ShmRail, ShmSegment, join::address, local::LocalEnd};
use crate::{
    Access,
    rail::{LossReason, Rail, RailError, RailEvent},
};

fn pair() -> [ShmRail; 2] {
    let config = ShmConfig { segment_bytes: 1 << 20, ..ShmConfig::default() };
    let rails = ShmRail::mesh(2, &config).unwrap();
    rails.try_into().unwrap_or_else(|_| panic!("two rails"))
}

/// Polls once and returns the losses.
fn losses(rail: &ShmRail) -> Vec<LossReason> {
    let mut losses = Vec::new();
    rail.poll(&mut |event| {
        if let RailEvent::Lost { process: 0, reason } = event {
            losses.push(reason);
        }
    });
    losses
}

/// Returns the kilobytes of huge pages of the mapping that an address lies in.
fn huge_kilobytes(address: usize) -> usize {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let is_it = |line: &&str| {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16).ok();
        range.is_some_and(|(start, end)| {
            number(start).is_some_and(|start| start <= address)
                && number(end).is_some_and(|end| address < end)
        })
    };
    let mut lines = maps.lines().skip_while(|line| !is_it(line));
    let line = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[test]
fn long_segments_are_in_huge_pages_where_the_kernel_has_them() {
    const LONG: usize = 3 * HUGE_PAGE + HUGE_PAGE / 2;
    let config = ShmConfig { segment_bytes: 64 << 20, ..ShmConfig::default() };
    let rails = ShmRail::mesh(1, &config).unwrap();
    let _short = rails[0].allocate(1).unwrap();
    for byte in [1u8, 2] {
        let long = [0; 2].map(|_| rails[0].allocate(LONG).unwrap());
        for segment in &long {
            let start = segment.memory().cast::<u8>();
            assert!(start.addr().get().is_multiple_of(HUGE_PAGE));
            // SAFETY: the segment has so many bytes, which nobody else uses.
            let bytes = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), LONG) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(byte);
        }
        let kilobytes = huge_kilobytes(long[0].memory().cast::<u8>().addr().get());
        eprintln!("{kilobytes} kB of huge pages in two segments of {LONG} bytes");
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut numbers = release.split('.').map(|number| number.parse::<u32>());
        let is_able = matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (6, 1));
        let denied = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
        let is_denied = std::fs::read_to_string(denied).is_ok_and(|all| all.contains("[deny]"));
        let has_any = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert!(kilobytes > 0 || !is_able || !has_any || is_denied, "{release}");
    }
}

/// A peer that was stopped as it copied may go on after it was given up.
#[test]
fn memory_that_a_peer_which_was_given_up_may_use_is_kept() {
    let [owner, peer] = pair();
    let key_of = |segment: &ShmSegment| {
        // SAFETY: the segment outlives the key.
        unsafe { owner.register(segment.memory(), Access::ALL) }.unwrap()
    };
    let [used, freed] = [0; 2].map(|_| owner.allocate(4096).unwrap());
    let (key, other_key) = (key_of(&used), key_of(&freed));
    let place = |segment: &ShmSegment| segment.memory().cast::<u8>().addr();
    let places = [&used, &freed].map(place);
    owner.deregister(&other_key).unwrap();
    drop(freed);
    peer.begin_use(0);
    owner.give_up(1);
    owner.deregister(&key).unwrap();
    drop(used);
    let next = [0; 2].map(|_| owner.allocate(4096).unwrap());
    assert!(!next.iter().map(place).any(|place| place == places[0]));
    assert!(next.iter().map(place).any(|place| place == places[1]));
    peer.end_use(0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn slots_of_any_content_lose_their_sender_and_nothing_else(
        forged in vec((0usize..8, 0u64..9, any::<[u64; 7]>(), 0u64..9, 0u64..6), 1..12),
    ) {
        let [_, rail] = pair();
        let ring = rail.ring_from(0);
        for (slot, sequence, mut words, kind, head) in forged {
            words[0] = words[0] & 0x1f_0000_0000 | kind | head << 8;
            ring.forge(slot, sequence, words);
            let losses = losses(&rail);
            prop_assert!(losses.len() <= 1);
            if let Some(reason) = losses.first() {
                prop_assert!(matches!(reason, LossReason::Malformed(_)), "{:?}", reason);
                prop_assert_eq!(rail.send(0, b"x"), Err(RailError::Lost { process: 0 }));
                break;
            }
        }
    }
}

#[test]
fn a_length_beyond_the_ring_loses_its_sender() {
    for length in [8193u64, 1 << 20, u64::from(u32::MAX)] {
        let [_, rail] = pair();
        rail.ring_from(0).forge(0, 1, [1 | 1 << 8 | length << 32, 0, 0, 0, 0, 0, 0]);
        assert_eq!(losses(&rail), [LossReason::Malformed("a frame beyond its ring")]);
    }
}

#[test]
fn a_sequence_number_out_of_step_loses_its_sender() {
    let [_, rail] = pair();
    rail.ring_from(0).forge(0, 2, [0; 7]);
    let reason = LossReason::Malformed("a sequence number that is out of step");
    assert_eq!(losses(&rail), [reason]);
}

#[test]
fn a_count_out_of_step_loses_the_reader() {
    let [_, rail] = pair();
    while rail.send(0, b"x").is_ok() {}
    rail.ring_to(0).forge_taken(u64::MAX, 0);
    assert_eq!(rail.send(0, b"x"), Err(RailError::Lost { process: 0 }));
    assert!(matches!(losses(&rail)[..], [LossReason::Malformed(_)]));
}

/// Lets process 0 of two join, while another thread acts on a connection to it.
fn join_beside(run: &str, act: impl FnOnce(UnixStream) + Send + 'static) -> io::Result<ShmRail> {
    let run = format!("test-{run}-{}", process::id());
    let name = run.clone();
    let peer = thread::spawn(move || {
        let address = address(&name, 0).unwrap();
        act(std::iter::repeat_with(|| UnixStream::connect_addr(&address))
            .find_map(Result::ok)
            .unwrap());
    });
    let joined = ShmRail::join(&run, 0, 2, Duration::from_millis(200), &ShmConfig::default());
    peer.join().unwrap();
    joined
}

#[test]
fn a_process_that_ends_behind_its_greeting_is_named() {
    let joined = join_beside("behind", |socket| {
        let end = LocalEnd::create(1, 2, &ShmConfig::default()).unwrap();
        socket.shutdown(Shutdown::Read).unwrap();
        end.greet(&socket).unwrap();
    });
    let error = joined.err().unwrap().to_string();
    assert!(error.contains("no connection with process 1: Broken pipe"), "{error}");
}

/// Process 1 has answered and ended, and process 0 has ended because of that.
#[test]
fn processes_that_have_ended_are_named_together() {
    let run = format!("test-together-{}", process::id());
    let listen = |process| UnixListener::bind_addr(&address(&run, process).unwrap()).unwrap();
    let [zero, one] = [listen(0), listen(1)];
    let others = thread::spawn(move || {
        let end = LocalEnd::create(1, 3, &ShmConfig::default()).unwrap();
        let [of_zero, of_one] = [zero, one].map(|listener| listener.accept().unwrap().0);
        end.greet(&of_one).unwrap();
        drop(of_one);
        drop(of_zero);
    });
    let joined = ShmRail::join(&run, 2, 3, Duration::from_secs(20), &ShmConfig::default());
    others.join().unwrap();
    let error = joined.err().unwrap().to_string();
    assert!(error.contains("no connection with process 0: "), "{error}");
    assert!(error.ends_with(", nor with process 1"), "{error}");
}

#[test]
fn a_process_that_ends_before_its_greeting_is_missed() {
    let error = join_beside("before", drop).err().unwrap().to_string();
    assert!(error.contains("no connection with process 1"), "{error}");
}
