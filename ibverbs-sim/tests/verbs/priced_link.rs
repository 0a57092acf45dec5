//! A link with a model: requests are carried out when their messages arrive, not before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ibverbs_sim::*;

use crate::common::{Buffer, End, connect};

/// Two connected ends of a device whose messages take time.
struct Ends {
    device: Device,
    first: End,
    second: End,
    here: Buffer,
    there: Buffer,
}

/// A microsecond, and a nanosecond a byte.
const LINK: &str = "latency=1us,bandwidth=1GB/s";

fn ends(link: &str) -> Ends {
    let link = Some(LinkModel::parse(link).unwrap());
    let device = Device::new(DeviceConfig { link, ..DeviceConfig::default() }).unwrap();
    let [first, second] = [0, 1].map(|_| End::new(&device, |_| {}));
    connect(&first, &second, &Connection::default());
    let (here, there) = (first.buffer(2_048), second.buffer(2_048));
    Ends { device, first, second, here, there }
}

impl Ends {
    /// Posts requests with payloads of so many bytes.
    fn post(&self, requests: &[(Operation, u32)]) {
        let lists: Vec<_> =
            requests.iter().map(|&(_, bytes)| [self.here.region.slice(0, bytes)]).collect();
        let request = |(wr_id, ((operation, _), list)): (usize, (&(Operation, u32), _))| {
            let payload = Payload::Gather(list);
            let flags = SendFlags::SIGNALLED;
            SendWorkRequest { wr_id: wr_id as u64, operation: *operation, payload, flags }
        };
        let requests = requests.iter().zip(lists.iter().map(|list| &list[..])).enumerate();
        self.first.post(&requests.map(request).collect::<Vec<_>>());
    }

    fn write(&self) -> Operation {
        Operation::Write { remote: self.there.region.at(0) }
    }

    /// Lets everything happen, and returns the times of the sender's completions.
    fn completions(&self) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        while let Some(next_ns) = self.device.next_on_link_ns() {
            self.device.advance_link(next_ns);
            for completion in self.first.sent() {
                assert_eq!(completion.status, CompletionStatus::Success);
                found.push((completion.wr_id, next_ns));
            }
        }
        found
    }
}

#[test]
fn a_write_lands_when_its_message_arrives() {
    let ends = ends(LINK);
    ends.here.word(0).store(77, Ordering::Relaxed);
    ends.post(&[(ends.write(), 8)]);
    ends.device.advance_link(1_007);
    assert_eq!(ends.there.word(0).load(Ordering::Relaxed), 0);
    ends.device.advance_link(1_008);
    assert_eq!(ends.there.word(0).load(Ordering::Relaxed), 77);
    assert!(ends.first.queue_pair.is_drained());
}

#[test]
fn requests_of_a_batch_and_those_posted_later_follow_each_other_through_the_port() {
    let ends = ends(LINK);
    let write = ends.write();
    ends.post(&[(write, 100), (write, 200), (write, 300)]);
    ends.post(&[(write, 50)]);
    assert_eq!(ends.completions(), [(0, 1_100), (1, 1_300), (2, 1_600), (0, 1_650)]);
    // The queue pair is idle again, and its time goes on.
    ends.post(&[(write, 100)]);
    assert_eq!(ends.completions(), [(0, 2_750)]);
}

#[test]
fn data_that_is_returned_takes_the_way_there_and_back() {
    let ends = ends(LINK);
    ends.there.word(44).store(9, Ordering::Relaxed);
    let word = ends.there.region.at(44 * 8);
    ends.post(&[(Operation::Read { remote: word }, 8), (ends.write(), 8)]);
    // The write arrives before the response, and is not carried out before the read.
    assert_eq!(ends.completions(), [(0, 2_008), (1, 2_008)]);
    assert_eq!(ends.here.word(0).load(Ordering::Relaxed), 9);
    ends.post(&[(Operation::FetchAdd { remote: word, add: 5 }, 8)]);
    assert_eq!(ends.completions(), [(0, 2_008 + 1_008 + 1_008)]);
    assert_eq!(ends.there.word(44).load(Ordering::Relaxed), 14);
}

#[test]
fn an_arrival_waits_for_a_receive_like_any_other() {
    let ends = ends(LINK);
    ends.post(&[(Operation::SendWithImmediate { immediate: 5 }, 0)]);
    assert_eq!(ends.completions(), []);
    assert_eq!(ends.second.received(), []);
    ends.second.receives(7..8);
    let received = ends.second.received();
    assert_eq!((received[0].wr_id, received[0].immediate), (7, Some(5)));
}

#[test]
fn an_ideal_link_takes_no_time() {
    let ends = ends("ideal");
    let write = ends.write();
    ends.post(&[(write, 2_000), (write, 2_000)]);
    assert_eq!(ends.completions(), [(0, 0), (1, 0)]);
}

#[test]
fn faults_and_a_price_are_refused() {
    let (fault, link) = (Some(FaultPlan::default()), Some(LinkModel::IDEAL));
    let refused = Device::new(DeviceConfig { fault, link, ..DeviceConfig::default() });
    assert_eq!(refused.err(), Some(Error::FaultsAndPrice));
}

#[test]
fn with_a_clock_requests_are_posted_at_its_time() {
    let ends = ends(LINK);
    let time = Arc::new(AtomicU64::new(500));
    let clock = Arc::clone(&time);
    ends.device.set_link_clock(move || clock.load(Ordering::Relaxed));
    ends.post(&[(ends.write(), 8)]);
    time.store(700, Ordering::Relaxed);
    ends.post(&[(ends.write(), 8)]);
    assert_eq!(ends.device.next_on_link_ns(), Some(500));
    let mut arrived = Vec::new();
    for now_ns in [1_507, 1_508, 1_707, 1_708] {
        time.store(now_ns, Ordering::Relaxed);
        ends.first.context.advance(now_ns);
        arrived.push(ends.first.sent().len());
    }
    assert_eq!(arrived, [0, 1, 0, 1]);
}
