//! The rules that every rail keeps.

use ibverbs_sim::{Access, CompletionStatus, LossReason, Posted, RailError, RailKey};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::ends::{Ends, Memory, at};

const SUCCESS: CompletionStatus = CompletionStatus::Success;
const REFUSED: CompletionStatus = CompletionStatus::RemoteAccess;

fn remote() -> Access {
    Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ
}

/// Runs every test of the suite but that of the loss.
pub(crate) fn all(ends: &mut Ends) {
    messages_arrive_whole_and_in_order(ends);
    a_message_beyond_the_limit_is_refused(ends);
    processes_that_are_no_peers_are_refused(ends);
    operations_equal_the_serial_oracle(ends);
    claims_beyond_what_was_registered_are_refused_and_touch_nothing(ends);
    a_key_that_was_deregistered_opens_nothing_any_more(ends);
    many_operations_are_under_way_at_once(ends);
    keys_are_as_many_as_the_limit_says(ends);
}

fn messages_arrive_whole_and_in_order(ends: &mut Ends) {
    let eager = ends.rail(0).limits().eager_bytes;
    let lengths = [0, 1, 7, 8, 48, 49, 56, 57, 1000, eager - 1, eager];
    let message = |number: usize| {
        let length = lengths[number % lengths.len()];
        (0..length).map(|byte| (byte * 31 + number) as u8).collect::<Vec<_>>()
    };
    for end in 0..2 {
        let (rail, to) = (ends.rail(end), 1 - end as u32);
        for number in 0..600 {
            ends.with_room(|| rail.send(to, &message(number)));
        }
        for number in 0..600 {
            let arrived = ends.until(|events| events[1 - end].messages.pop_front());
            assert!(arrived == message(number), "message {number} from {end}");
        }
    }
}

fn a_message_beyond_the_limit_is_refused(ends: &mut Ends) {
    let limit = ends.rail(0).limits().eager_bytes;
    let refused = ends.rail(0).send(1, &vec![0; limit + 1]);
    assert_eq!(refused, Err(RailError::TooLong { length: limit + 1, limit }));
}

fn processes_that_are_no_peers_are_refused(ends: &mut Ends) {
    for process in [0, 2, u32::MAX] {
        let refused = Err(RailError::NoSuchPeer { process, processes: 2 });
        assert_eq!(ends.rail(0).send(process, b"x"), refused);
    }
}

fn operations_equal_the_serial_oracle(ends: &mut Ends) {
    const BYTES: usize = 100_000;
    let memory = [0, 1].map(|end| (ends.memory[end])(BYTES));
    let keys = [0, 1].map(|end| ends.register(end, &memory[end], remote()));
    let local = Memory::private(BYTES);
    let mut runner = TestRunner::new(Config { cases: 24, ..Config::default() });
    let lengths = prop_oneof![0..100usize, 4000..5000usize, 8190..8200usize, 0..BYTES];
    let operation = (0..2usize, any::<bool>(), lengths, any::<u16>(), any::<Option<u32>>());
    let ends = std::cell::RefCell::new(ends);
    let run = runner.run(&vec(operation, 1..12), |operations| {
        let ends = &mut **ends.borrow_mut();
        let mut oracle = [0, 1].map(|end: usize| memory[end].bytes());
        for (number, (end, is_write, length, offset, notice)) in operations.into_iter().enumerate()
        {
            let offset = usize::from(offset) % (BYTES - length + 1);
            let bytes: Vec<u8> = (0..length).map(|byte| (byte * 7 + number) as u8).collect();
            local.fill(0, &bytes);
            let (part, remote) = (local.part(0, length), at(keys[1 - end], offset as u64));
            let notice = notice.filter(|_| is_write);
            prop_assert_eq!(ends.carry_out(end, is_write, part, remote, notice), SUCCESS);
            if is_write {
                oracle[1 - end][offset..offset + length].copy_from_slice(&bytes);
            } else {
                let read = &local.bytes()[..length];
                prop_assert!(read == &oracle[1 - end][offset..offset + length]);
            }
            if let Some(notice) = notice {
                let arrived = ends.until(|events| events[1 - end].notices.pop_front());
                prop_assert_eq!(arrived, notice);
            }
            prop_assert!(memory[1 - end].bytes() == oracle[1 - end]);
        }
        prop_assert!(ends.events.iter().all(|events| events.notices.is_empty()));
        Ok(())
    });
    run.unwrap();
    let ends = ends.into_inner();
    (0..2).for_each(|end| ends.rail(end).deregister(&keys[end]).unwrap());
}

fn claims_beyond_what_was_registered_are_refused_and_touch_nothing(ends: &mut Ends) {
    let (memory, local) = ((ends.memory[1])(10_000), Memory::private(20_000));
    local.fill(0, &[9; 20_000]);
    let key = ends.register(1, &memory, remote());
    // A key ends with its number, or with those of several rails.
    let forged = |change: fn(u64) -> u64| {
        let mut bytes = key.as_bytes().to_vec();
        for number in bytes.rchunks_exact_mut(8) {
            let forged = change(u64::from_le_bytes(number.try_into().unwrap()));
            number.copy_from_slice(&forged.to_le_bytes());
        }
        RailKey::from_bytes(&bytes).unwrap()
    };
    let other = RailKey::from_bytes(&[1; RailKey::MAX_BYTES]).unwrap();
    for is_write in [false, true] {
        for (remote, length) in [
            (at(key, 0), 10_001),
            (at(key, 1), 10_000),
            (at(key, 10_001), 0),
            (at(key, u64::MAX), 2),
            (at(key, u64::MAX - 9_999), 10_000),
            (at(forged(|number| number + 1), 0), 8),
            (at(forged(|number| number + 5000), 0), 8),
            (at(forged(|number| number ^ 1 << 33), 0), 8),
            (at(forged(|_| 0), 0), 8),
            (at(forged(|_| u64::MAX), 0), 8),
            (at(other, 0), 8),
        ] {
            let part = local.part(0, length);
            let notice = is_write.then_some(1);
            let status = ends.carry_out(0, is_write, part, remote, notice);
            assert_eq!(status, REFUSED, "{remote:?}, {length} bytes");
        }
        // The limits themselves.
        let part = local.part(0, if is_write { 0 } else { 10_000 });
        assert_eq!(ends.carry_out(0, is_write, part, at(key, 0), None), SUCCESS);
        let end = at(key, 10_000);
        assert_eq!(ends.carry_out(0, is_write, local.part(0, 0), end, None), SUCCESS);
    }
    ends.rail(1).deregister(&key).unwrap();
    for (access, is_write) in [(Access::REMOTE_WRITE, false), (Access::REMOTE_READ, true)] {
        let key = ends.register(1, &memory, Access::LOCAL_WRITE | access);
        let part = local.part(0, 8);
        assert_eq!(ends.carry_out(0, is_write, part, at(key, 0), None), REFUSED);
        ends.rail(1).deregister(&key).unwrap();
    }
    for _ in 0..100 {
        ends.poll();
    }
    assert!(memory.bytes().iter().all(|byte| *byte == 0));
    assert!(ends.events[1].notices.is_empty());
}

fn a_key_that_was_deregistered_opens_nothing_any_more(ends: &mut Ends) {
    let (memory, local) = ((ends.memory[1])(64), Memory::private(64));
    let old = ends.register(1, &memory, remote());
    ends.rail(1).deregister(&old).unwrap();
    assert_eq!(ends.rail(1).deregister(&old), Err(RailError::NotRegistered));
    let new = ends.register(1, &memory, remote());
    assert_ne!(old, new);
    for is_write in [false, true] {
        assert_eq!(ends.carry_out(0, is_write, local.all(), at(old, 0), None), REFUSED);
        assert_eq!(ends.carry_out(0, is_write, local.all(), at(new, 0), None), SUCCESS);
    }
    ends.rail(1).deregister(&new).unwrap();
}

fn many_operations_are_under_way_at_once(ends: &mut Ends) {
    const EACH: usize = 9_000;
    const COUNT: usize = 300;
    let (memory, local) = ((ends.memory[1])(EACH * COUNT), Memory::private(EACH * COUNT));
    let key = ends.register(1, &memory, remote());
    let bytes: Vec<u8> = (0..EACH * COUNT).map(|byte| (byte / 7) as u8).collect();
    local.fill(0, &bytes);
    let mut under_way = 0;
    let mut ended = 0;
    for is_write in [true, false] {
        for number in 0..COUNT {
            let part = local.part(number * EACH, EACH);
            let remote = at(key, (number * EACH) as u64);
            let notice = is_write.then_some(number as u32);
            loop {
                match ends.post(0, is_write, part, &remote, notice, number as u64) {
                    Ok(Posted::UnderWay) => under_way += 1,
                    Ok(Posted::Ended(status)) => assert_eq!(status, SUCCESS),
                    Err(RailError::NoRoom { process: 1 }) => {
                        ends.poll();
                        continue;
                    }
                    Err(other) => panic!("{other}"),
                }
                break;
            }
        }
        while ended < under_way {
            let (_, status) = ends.until(|events| events[0].completions.pop_front());
            assert_eq!(status, SUCCESS);
            ended += 1;
        }
        if is_write {
            let mut notices: Vec<_> =
                (0..COUNT).map(|_| ends.until(|events| events[1].notices.pop_front())).collect();
            notices.sort_unstable();
            assert!(notices.into_iter().eq(0..COUNT as u32));
            assert!(memory.bytes() == bytes);
            local.fill(0, &vec![0; EACH * COUNT]);
        }
    }
    assert!(local.bytes() == bytes);
    ends.rail(1).deregister(&key).unwrap();
}

#[allow(unsafe_code, reason = "memory of the test is registered")]
fn keys_are_as_many_as_the_limit_says(ends: &mut Ends) {
    let memory = (ends.memory[0])(8);
    let mut keys = Vec::new();
    let limit = loop {
        // SAFETY: the memory stays until all keys are deregistered.
        match unsafe { ends.rail(0).register(memory.all(), remote()) } {
            Ok(key) => keys.push(key),
            Err(RailError::TooManyKeys { limit }) => break limit,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(keys.len(), limit);
    keys.iter().for_each(|key| ends.rail(0).deregister(key).unwrap());
    let key = ends.register(0, &memory, remote());
    ends.rail(0).deregister(&key).unwrap();
}

/// Repeats a call until it has room, without a poll.
fn until_room<R>(mut call: impl FnMut() -> Result<R, RailError>) -> R {
    loop {
        match call() {
            Err(RailError::NoRoom { .. }) => {}
            other => return other.unwrap(),
        }
    }
}

/// Checks the end of rail 1, which has not polled.
pub(crate) fn the_loss_of_a_peer_ends_what_is_under_way(ends: &mut Ends) {
    let (memory, local) = ((ends.memory[1])(64), Memory::private(64));
    local.fill(0, &[3; 64]);
    let key = ends.register(1, &memory, remote());
    until_room(|| ends.rail(1).send(0, b"last words"));
    let posted = until_room(|| ends.post(0, true, local.all(), &at(key, 0), None, 5));
    ends.end();
    let reason = ends.until(|events| events[0].losses.pop());
    assert_eq!(reason, (1, LossReason::Ended));
    assert_eq!(ends.events[0].messages.pop_front().as_deref(), Some(&b"last words"[..]));
    let completions = &mut ends.events[0].completions;
    match posted {
        Posted::Ended(status) => assert_eq!((status, completions.len()), (SUCCESS, 0)),
        Posted::UnderWay => {
            // A rail that ends carries out what arrives until its last packets have left.
            let (context, status) = completions.pop_front().unwrap();
            assert_eq!(context, 5);
            if status != CompletionStatus::RetryExceeded {
                assert_eq!((status, memory.bytes()), (SUCCESS, vec![3; 64]));
            }
        }
    }
    let lost = RailError::Lost { process: 1 };
    assert_eq!(ends.rail(0).send(1, b"x"), Err(lost));
    assert_eq!(ends.post(0, true, local.all(), &at(key, 0), Some(1), 5), Err(lost));
    assert_eq!(ends.post(0, false, local.all(), &at(key, 0), None, 5), Err(lost));
    for _ in 0..10_000 {
        ends.poll();
    }
    assert!(ends.events[0].losses.is_empty() && ends.events[0].completions.is_empty());
}
