//! A send request keeps its slot until its completion, or a later one, is polled.

use crate::common::*;
use ibverbs_sim::*;

fn ends(adjust: impl Fn(&mut QueuePairInit)) -> (End, End) {
    let device = device();
    let small = |init: &mut QueuePairInit| {
        init.max_send_wr = 4;
        adjust(init);
    };
    let ends = (End::new(&device, small), End::new(&device, |_| {}));
    connect(&ends.0, &ends.1, &Connection::default());
    ends
}

fn write(remote: RemoteAddress, flags: SendFlags) -> SendWorkRequest<'static> {
    let operation = Operation::Write { remote };
    SendWorkRequest { flags, ..request(0, operation, Payload::Inline(b"x")) }
}

fn full(index: usize) -> PostError {
    PostError { index, reason: Error::QueueFull { capacity: 4 } }
}

#[test]
fn unsignalled_requests_fill_the_queue_for_good() {
    let (a, b) = ends(|_| {});
    let target = b.buffer(8);
    let quiet = write(target.region.at(0), SendFlags::NONE);
    assert_eq!(a.try_post(&[quiet; 5]), Err(full(4)));
    assert!(a.sent().is_empty());
    assert_eq!(a.try_post(&[quiet]), Err(full(0)));
    a.go_to(QueuePairState::Reset);
    b.go_to(QueuePairState::Reset);
    connect(&a, &b, &Connection::default());
    assert_eq!(a.try_post(&[quiet; 5]), Err(full(4)));
}

#[test]
fn polling_a_later_completion_frees_them() {
    let (a, b) = ends(|_| {});
    let target = b.buffer(8);
    let quiet = write(target.region.at(0), SendFlags::NONE);
    let loud = write(target.region.at(0), SendFlags::SIGNALLED);
    for _ in 0..10 {
        a.post(&[quiet, quiet, loud, quiet]);
        // The completion is there, but slots are freed by polling it.
        assert_eq!(a.try_post(&[quiet]), Err(full(0)));
        assert_eq!(a.sent().len(), 1);
        assert_eq!(a.try_post(&[loud, quiet, quiet, quiet]), Err(full(3)));
        assert_eq!(a.sent().len(), 1);
        a.post(&[loud, loud]);
        assert_eq!(a.sent().len(), 2);
    }
}

#[test]
fn a_post_of_all_requests_finds_room_for_all_or_posts_none() {
    let (a, b) = ends(|_| {});
    let target = b.buffer(8);
    let quiet = write(target.region.at(0), SendFlags::NONE);
    let loud = write(target.region.at(0), SendFlags::SIGNALLED);
    assert_eq!(a.queue_pair.post_send_all(&[loud; 5]), Err(full(0)));
    assert!(a.sent().is_empty());
    a.queue_pair.post_send_all(&[quiet, loud]).unwrap();
    assert_eq!(a.queue_pair.post_send_all(&[loud; 3]), Err(full(0)));
    a.queue_pair.post_send_all(&[quiet, loud]).unwrap();
    assert_eq!(a.sent().len(), 2);
    a.queue_pair.post_send_all(&[loud; 4]).unwrap();
}

#[test]
fn a_post_of_all_requests_posts_none_before_a_bad_one() {
    let (a, b) = ends(|_| {});
    let target = b.buffer(8);
    let loud = write(target.region.at(0), SendFlags::SIGNALLED);
    let long = SendWorkRequest { payload: Payload::Inline(&[0; 65]), ..loud };
    let error = a.queue_pair.post_send_all(&[loud, long, loud]).unwrap_err();
    assert_eq!(error.index, 1);
    assert!(a.sent().is_empty());
    a.queue_pair.post_send_all(&[loud; 4]).unwrap();
}

#[test]
fn signal_all_signals_all() {
    let (a, b) = ends(|init| init.signal_all = true);
    let target = b.buffer(8);
    a.post(&[write(target.region.at(0), SendFlags::NONE); 4]);
    assert_eq!(a.sent().len(), 4);
    a.post(&[write(target.region.at(0), SendFlags::NONE); 4]);
}

#[test]
fn completions_of_a_destroyed_queue_pair_free_nothing_of_its_successor() {
    let device = device();
    let b = End::new(&device, |_| {});
    let target = b.buffer(8);
    let a = End::new(&device, |init| init.max_send_wr = 4);
    connect(&a, &b, &Connection::default());
    a.post(&[write(target.region.at(0), SendFlags::SIGNALLED); 4]);
    let End { context: _context, domain, send_cq, recv_cq, queue_pair, site } = a;
    let old = queue_pair.number();
    drop(queue_pair);
    let init = QueuePairInit { max_send_wr: 4, ..QueuePairInit::new(&send_cq, &recv_cq) };
    let successor = domain.create_queue_pair(&init).unwrap();
    assert_ne!(successor.number(), old);
    b.go_to(QueuePairState::Reset);
    b.site.connect(&b.queue_pair, &successor, &Connection::default());
    site.connect(&successor, &b.queue_pair, &Connection::default());
    successor.post_send(&[write(target.region.at(0), SendFlags::NONE); 4]).unwrap();
    assert_eq!(poll_all(&send_cq).len(), 4);
    assert!(successor.post_send(&[write(target.region.at(0), SendFlags::NONE)]).is_err());
}
