//! Long writes and reads, whose data the rail moves before their packets are sent.

use std::sync::Arc;

use ibverbs_sim::*;

use crate::{common::*, devices::choice};

const SUCCESS: CompletionStatus = CompletionStatus::Success;
const REFUSED: CompletionStatus = CompletionStatus::RemoteAccess;
/// Bytes of a write that packets do not carry.
const LONG: usize = 512 << 10;

/// Two connected ends on devices that libfabric joins.
struct Pair {
    a: End,
    b: End,
    devices: Vec<Device>,
}

impl Pair {
    /// Connects two ends, of which the first has the permit of the other. `None` without libfabric.
    fn new() -> Option<Self> {
        if let Err(error) = OfiProviders::find() {
            eprintln!("skipped: {error}");
            return None;
        }
        let on = |rail| Device::with_rail(DeviceConfig::default(), Arc::new(rail)).unwrap();
        let rails = OfiRail::mesh(2, &choice()).unwrap();
        if rails[0].limits().long_bytes.is_none() {
            eprintln!("skipped: nothing is read by RMA");
            return None;
        }
        let devices: Vec<_> = rails.into_iter().map(on).collect();
        let (a, b) = (End::new(&devices[0], |_| {}), End::new(&devices[1], |_| {}));
        let connection = Connection::default();
        a.queue_pair.connect_to(1, b.queue_pair.number(), &connection).unwrap();
        b.queue_pair.connect_to(0, a.queue_pair.number(), &connection).unwrap();
        Some(Self { a, b, devices })
    }

    /// Creates buffers at both ends. The first end knows that of the other, and may write there.
    fn buffers(&self, length: usize) -> [Buffer; 2] {
        let buffers = [self.a.buffer(length), self.b.buffer(length)];
        self.b.receives(0..1);
        self.a.post(&[send(0)]);
        assert_eq!(self.sent(1), [(0, SUCCESS)]);
        assert_eq!(self.received(1).len(), 1);
        buffers
    }

    fn progress(&self) {
        for device in &self.devices {
            device.progress().unwrap();
        }
    }

    /// Moves packets until so many requests of the first end have ended.
    fn sent(&self, count: usize) -> Vec<(u64, CompletionStatus)> {
        let mut all = Vec::new();
        while all.len() < count {
            self.progress();
            all.extend(statuses(&self.a.sent()));
        }
        all
    }

    /// Moves packets until so many receives of the second end have ended.
    fn received(&self, count: usize) -> Vec<WorkCompletion> {
        let mut all = Vec::new();
        while all.len() < count {
            self.progress();
            all.extend(self.b.received());
        }
        all
    }

    /// Lets the second end progress alone.
    fn progress_there(&self) {
        for _ in 0..2000 {
            self.devices[1].progress().unwrap();
        }
    }
}

fn immediate(buffer: &Buffer, offset: usize, immediate: u32) -> Operation {
    Operation::WriteWithImmediate { remote: buffer.region.at(offset), immediate }
}

fn content(number: usize) -> Vec<u8> {
    (0..LONG).map(|byte| (byte * 7 + number) as u8).collect()
}

#[test]
fn many_arrive_whole_before_their_immediates_and_complete_in_order() {
    const COUNT: usize = 24;
    let Some(pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(COUNT * LONG);
    let all: Vec<u8> = (0..COUNT).flat_map(content).collect();
    local.fill(&all);
    pair.b.receives(0..COUNT as u64 + 1);
    for number in 0..COUNT {
        let list = [local.region.slice(number * LONG, LONG as u32)];
        let write = immediate(&remote, number * LONG, number as u32);
        pair.a.post(&[request(number as u64, write, Payload::Gather(&list))]);
    }
    pair.a.post(&[send(COUNT as u64)]);
    let mut received = 0;
    while received <= COUNT {
        for completion in pair.received(1) {
            if let Some(immediate) = completion.immediate {
                assert_eq!((immediate as usize, completion.byte_len as usize), (received, LONG));
                let there = &remote.bytes()[received * LONG..][..LONG];
                assert!(there == &all[received * LONG..][..LONG], "write {received}");
            }
            received += 1;
        }
    }
    let expected: Vec<_> = (0..=COUNT as u64).map(|wr_id| (wr_id, SUCCESS)).collect();
    assert_eq!(pair.sent(COUNT + 1), expected);
}

#[test]
fn writes_to_the_same_place_land_in_the_order_of_posting() {
    let Some(pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(2 * LONG);
    local.fill(&[content(1), content(2)].concat());
    let write = Operation::Write { remote: remote.region.at(0) };
    for number in 0..20 {
        let list = [local.region.slice(number % 2 * LONG, LONG as u32)];
        pair.a.post(&[request(number as u64, write, Payload::Gather(&list))]);
    }
    assert_eq!(pair.sent(20).len(), 20);
    assert!(remote.bytes()[..LONG] == content(2));
}

/// Bytes of an operation in many pieces, more than are under way at a time.
const VERY_LONG: usize = 4 << 20;

#[test]
fn a_write_longer_than_what_is_under_way_at_a_time_arrives_whole() {
    let Some(pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(VERY_LONG);
    let all: Vec<u8> = (0..VERY_LONG).map(|byte| ((byte * 7) >> 5) as u8).collect();
    local.fill(&all);
    pair.b.receives(0..1);
    pair.a.post(&[request(1, immediate(&remote, 0, 9), Payload::Gather(&[local.all()]))]);
    let received = pair.received(1);
    assert_eq!((received[0].immediate, received[0].byte_len as usize), (Some(9), VERY_LONG));
    assert!(remote.bytes() == all);
    assert_eq!(pair.sent(1), [(1, SUCCESS)]);
}

fn read(buffer: &Buffer, offset: usize) -> Operation {
    Operation::Read { remote: buffer.region.at(offset) }
}

#[test]
fn many_reads_bring_their_bytes_and_complete_in_order() {
    const COUNT: usize = 24;
    let Some(pair) = Pair::new() else { return };
    let [_, remote] = pair.buffers(COUNT * LONG);
    // The memory of a read needs no remote right.
    let local = Buffer::new(&pair.a.domain, COUNT * LONG, Access::LOCAL_WRITE);
    let all: Vec<u8> = (0..COUNT).flat_map(content).collect();
    remote.fill(&all);
    pair.b.receives(0..1);
    for number in 0..COUNT {
        let list = [local.region.slice(number * LONG, LONG as u32)];
        let read = read(&remote, number * LONG);
        pair.a.post(&[request(number as u64, read, Payload::Gather(&list))]);
    }
    pair.a.post(&[send(COUNT as u64)]);
    let mut sent = 0;
    while sent <= COUNT {
        pair.progress();
        for completion in pair.a.sent() {
            assert_eq!((completion.wr_id as usize, completion.status), (sent, SUCCESS));
            if sent < COUNT {
                assert_eq!(completion.byte_len as usize, LONG);
                let here = &local.bytes()[sent * LONG..][..LONG];
                assert!(here == &all[sent * LONG..][..LONG], "read {sent}");
            }
            sent += 1;
        }
    }
    assert_eq!(pair.received(1).len(), 1);
}

#[test]
fn reads_and_writes_of_the_same_place_have_their_effects_in_the_order_of_posting() {
    const COUNT: usize = 12;
    let Some(pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(2 * COUNT * LONG);
    local.fill(&(0..COUNT).flat_map(content).collect::<Vec<_>>());
    for number in 0..COUNT {
        let from = [local.region.slice(number * LONG, LONG as u32)];
        let to = [local.region.slice((COUNT + number) * LONG, LONG as u32)];
        let write = Operation::Write { remote: remote.region.at(0) };
        let requests = [
            request(2 * number as u64, write, Payload::Gather(&from)),
            request(2 * number as u64 + 1, read(&remote, 0), Payload::Gather(&to)),
        ];
        pair.a.post(&requests);
    }
    let expected: Vec<_> = (0..2 * COUNT as u64).map(|wr_id| (wr_id, SUCCESS)).collect();
    assert_eq!(pair.sent(2 * COUNT), expected);
    let local = local.bytes();
    assert!(local[..COUNT * LONG] == local[COUNT * LONG..]);
}

#[test]
fn a_fenced_request_waits_for_reads_before_it() {
    let Some(pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(2 * LONG);
    remote.fill(&content(4));
    let list = [local.region.slice(0, LONG as u32)];
    // What the read brings is what the write sends.
    let write = Operation::Write { remote: remote.region.at(LONG) };
    let fenced = SendWorkRequest {
        flags: SendFlags::SIGNALLED | SendFlags::FENCE,
        ..request(2, write, Payload::Gather(&list))
    };
    pair.a.post(&[request(1, read(&remote, 0), Payload::Gather(&list)), fenced]);
    assert_eq!(pair.sent(2), [(1, SUCCESS), (2, SUCCESS)]);
    assert!(remote.bytes()[LONG..] == content(4));
}

#[test]
fn a_read_past_the_end_or_without_the_right_is_refused() {
    for has_right in [true, false] {
        let Some(pair) = Pair::new() else { return };
        let [local, remote] = pair.buffers(LONG);
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        let write_only = Buffer::new(&pair.b.domain, LONG, access);
        let _ = pair.buffers(8);
        [&remote, &write_only].iter().for_each(|buffer| buffer.fill(&content(1)));
        let target = if has_right { (&remote, 1) } else { (&write_only, 0) };
        let read = read(target.0, target.1);
        pair.a.post(&[request(1, read, Payload::Gather(&[local.all()]))]);
        assert_eq!(pair.sent(1), [(1, REFUSED)]);
        assert!(local.bytes().iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_read_whose_region_closes_is_refused_at_either_end() {
    for is_here in [true, false] {
        let Some(pair) = Pair::new() else { return };
        let [local, remote] = pair.buffers(VERY_LONG);
        pair.a.post(&[request(1, read(&remote, 0), Payload::Gather(&[local.all()]))]);
        (0..3).for_each(|_| pair.progress());
        let expected = if is_here { CompletionStatus::LocalProtection } else { REFUSED };
        let words = if is_here { local.deregister() } else { remote.deregister() };
        for word in words.iter() {
            word.store(u64::from_ne_bytes([5; 8]), std::sync::atomic::Ordering::SeqCst);
        }
        assert_eq!(pair.sent(1), [(1, expected)]);
        (0..2000).for_each(|_| pair.progress());
        let is_five = |word: &std::sync::atomic::AtomicU64| {
            word.load(std::sync::atomic::Ordering::SeqCst) == u64::from_ne_bytes([5; 8])
        };
        assert!(words.iter().all(is_five));
    }
}

#[test]
fn a_queue_pair_that_fails_or_is_reset_meanwhile_uses_no_memory_afterwards() {
    for (is_read, state) in [
        (true, QueuePairState::Error),
        (true, QueuePairState::Reset),
        (false, QueuePairState::Error),
        (false, QueuePairState::Reset),
    ] {
        let Some(pair) = Pair::new() else { return };
        let [local, remote] = pair.buffers(VERY_LONG);
        let (operation, from) = if is_read {
            (read(&remote, 0), &remote)
        } else {
            (Operation::Write { remote: remote.region.at(0) }, &local)
        };
        from.fill(&[7; VERY_LONG]);
        pair.a.post(&[request(1, operation, Payload::Gather(&[local.all()]))]);
        (0..3).for_each(|_| pair.progress());
        pair.a.go_to(state);
        let sent = if state == QueuePairState::Error { pair.sent(1) } else { Vec::new() };
        assert!(sent.iter().all(|end| *end == (1, CompletionStatus::WorkRequestFlushed)));
        local.fill(&[5; VERY_LONG]);
        (0..5000).for_each(|_| pair.progress());
        assert!(local.bytes() == [5; VERY_LONG]);
        assert!(!remote.bytes().contains(&5));
        assert!(pair.a.sent().is_empty());
    }
}

#[test]
fn a_write_whose_region_closes_while_it_is_under_way_is_refused_and_touches_nothing() {
    let Some(pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(LONG);
    let other = pair.buffers(LONG);
    local.fill(&content(3));
    let list = [local.all()];
    pair.b.receives(0..2);
    let stays = immediate(&other[1], 0, 1);
    pair.a.post(&[request(1, stays, Payload::Gather(&list))]);
    pair.a.post(&[request(2, immediate(&remote, 0, 2), Payload::Gather(&list))]);
    // The data does not come as long as the first end does nothing.
    pair.progress_there();
    assert!(remote.bytes().iter().chain(&other[1].bytes()).all(|byte| *byte == 0));
    let words = remote.deregister();
    assert_eq!(pair.sent(2), [(1, SUCCESS), (2, REFUSED)]);
    assert!(words.iter().all(|word| word.load(std::sync::atomic::Ordering::SeqCst) == 0));
    assert!(other[1].bytes() == content(3));
    let immediates = pair.b.received().into_iter().map(|completion| completion.immediate);
    assert_eq!(immediates.flatten().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_write_past_the_end_or_without_the_right_is_refused() {
    for has_right in [true, false] {
        let Some(pair) = Pair::new() else { return };
        let [local, remote] = pair.buffers(LONG);
        let read_only = Buffer::new(&pair.b.domain, LONG, Access::REMOTE_READ);
        let _ = pair.buffers(8);
        let target = if has_right { remote.region.at(1) } else { read_only.region.at(0) };
        local.fill(&content(1));
        let write = Operation::Write { remote: target };
        pair.a.post(&[request(1, write, Payload::Gather(&[local.all()]))]);
        assert_eq!(pair.sent(1), [(1, REFUSED)]);
        assert!(remote.bytes().iter().chain(&read_only.bytes()).all(|byte| *byte == 0));
    }
}

#[test]
fn a_write_without_a_receive_goes_on_once_there_is_one() {
    let Some(pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(LONG);
    local.fill(&content(5));
    pair.a.post(&[request(1, immediate(&remote, 0, 9), Payload::Gather(&[local.all()])), send(2)]);
    while remote.bytes() != content(5) {
        pair.progress();
    }
    (0..500).for_each(|_| pair.progress());
    assert!(pair.a.sent().is_empty());
    pair.b.receives(0..2);
    assert_eq!(pair.sent(2), [(1, SUCCESS), (2, SUCCESS)]);
    assert_eq!(pair.received(2)[0].immediate, Some(9));
}

#[test]
fn a_queue_pair_that_is_reset_meanwhile_has_none_under_way() {
    let Some(pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(LONG);
    local.fill(&content(1));
    let write = Operation::Write { remote: remote.region.at(0) };
    pair.a.post(&[request(1, write, Payload::Gather(&[local.all()]))]);
    pair.a.go_to(QueuePairState::Reset);
    pair.b.go_to(QueuePairState::Reset);
    local.fill(&content(2));
    let (connection, [a, b]) = (Connection::default(), [&pair.a.queue_pair, &pair.b.queue_pair]);
    a.connect_to(1, b.number(), &connection).unwrap();
    b.connect_to(0, a.number(), &connection).unwrap();
    (0..500).for_each(|_| pair.progress());
    assert!(pair.a.sent().is_empty());
    assert!(remote.bytes() == [0; LONG], "nothing is read after the reset");
    pair.a.post(&[request(2, write, Payload::Gather(&[local.all()]))]);
    assert_eq!(pair.sent(1), [(2, SUCCESS)]);
    assert!(remote.bytes() == content(2));
}

#[test]
fn a_peer_that_ends_ends_the_operations_to_it() {
    for is_read in [false, true] {
        a_peer_ends(is_read);
    }
}

fn a_peer_ends(is_read: bool) {
    let Some(mut pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(LONG);
    let write = Operation::Write { remote: remote.region.at(0) };
    let operation = if is_read { read(&remote, 0) } else { write };
    for wr_id in 1..=3 {
        pair.a.post(&[request(wr_id, operation, Payload::Gather(&[local.all()]))]);
    }
    pair.progress_there();
    drop(remote);
    let Pair { a, b, devices } = &mut pair;
    *b = End::new(&devices[0], |_| {});
    devices.truncate(1);
    let mut sent = Vec::new();
    while sent.len() < 3 {
        devices[0].progress().unwrap();
        sent.extend(statuses(&a.sent()));
    }
    let flushed = CompletionStatus::WorkRequestFlushed;
    let exceeded = CompletionStatus::RetryExceeded;
    assert_eq!(sent, [(1, exceeded), (2, flushed), (3, flushed)]);
}
