//! Long writes, whose data the rail brings to the target before their packets are sent.

use std::sync::Arc;

use ibverbs_sim::*;

use crate::common::*;

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
        let rails = OfiRail::mesh(2, &OfiChoice::default()).unwrap();
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
    local.fill(&content(2));
    let connection = Connection::default();
    pair.a.queue_pair.connect_to(1, pair.b.queue_pair.number(), &connection).unwrap();
    // What was taken lands; its end is that of no request.
    while remote.bytes() != content(1) {
        pair.progress();
    }
    (0..500).for_each(|_| pair.progress());
    assert!(pair.a.sent().is_empty());
}

#[test]
fn a_peer_that_ends_ends_the_writes_to_it() {
    let Some(mut pair) = Pair::new() else { return };
    let [local, remote] = pair.buffers(LONG);
    let write = Operation::Write { remote: remote.region.at(0) };
    for wr_id in 1..=3 {
        pair.a.post(&[request(wr_id, write, Payload::Gather(&[local.all()]))]);
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
