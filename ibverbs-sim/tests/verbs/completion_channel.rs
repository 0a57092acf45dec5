//! An armed completion queue fires once, and no completion is missed by a waiting thread.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::common::*;
use futures::{
    executor::block_on,
    task::{ArcWake, Context as PollContext, waker},
};
use ibverbs_sim::*;

/// Two ends, the second with a channel on its receives.
fn ends() -> (End, End, CompletionQueue, CompletionChannel) {
    let device = device();
    let (a, mut b) = (End::new(&device, |_| {}), End::new(&device, |_| {}));
    let channel = CompletionChannel::new();
    let cq = b.context.create_completion_queue(256, Some(&channel)).unwrap();
    b.queue_pair = b.domain.create_queue_pair(&QueuePairInit::new(&b.send_cq, &cq)).unwrap();
    connect(&a, &b, &Connection::default());
    (a, b, cq, channel)
}

#[test]
fn it_fires_once_an_arming() {
    let (a, b, cq, channel) = ends();
    b.receives(0..10);
    a.post(&[send(1)]);
    assert!(!channel.try_notified(), "not armed");
    cq.request_notify(false).unwrap();
    assert!(!channel.try_notified(), "the entry came before");
    a.post(&[send(2), send(3)]);
    assert!(channel.try_notified());
    assert!(!channel.try_notified());
    a.post(&[send(4)]);
    assert!(!channel.try_notified(), "not armed again");
    block_on(async {
        cq.request_notify(false).unwrap();
        a.post(&[send(5)]);
        channel.notified().await;
    });
}

#[test]
fn solicited_only_waits_for_a_solicited_or_failed_one() {
    let (a, b, cq, channel) = ends();
    b.receives(0..3);
    cq.request_notify(true).unwrap();
    a.post(&[send(1)]);
    assert!(!channel.try_notified());
    a.post(&[SendWorkRequest { flags: SendFlags::SOLICITED, ..send(2) }]);
    assert!(channel.try_notified());
    cq.request_notify(true).unwrap();
    b.go_to(QueuePairState::Error);
    assert!(channel.try_notified());
}

#[test]
fn a_queue_without_a_channel_cannot_be_armed() {
    let (a, _b) = pair();
    assert_eq!(a.recv_cq.request_notify(false), Err(Error::NoCompletionChannel));
}

struct Count(AtomicUsize);

impl ArcWake for Count {
    fn wake_by_ref(this: &Arc<Self>) {
        this.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_waiter_is_woken_and_a_dropped_one_loses_nothing() {
    let (a, b, cq, channel) = ends();
    b.receives(0..2);
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = waker(Arc::clone(&count));
    let mut poll_context = PollContext::from_waker(&waker);
    cq.request_notify(false).unwrap();
    {
        let mut waiting = pin!(channel.notified());
        assert!(waiting.as_mut().poll(&mut poll_context).is_pending());
        assert!(waiting.as_mut().poll(&mut poll_context).is_pending());
        a.post(&[send(1)]);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }
    assert!(pin!(channel.notified()).poll(&mut poll_context).is_ready());
}

#[test]
fn arm_then_poll_then_wait_sees_every_completion() {
    const MESSAGES: u64 = 30_000;
    let (a, b, cq, channel) = ends();
    let messages = a.site.rounds(MESSAGES);
    b.receives(0..64);
    thread::scope(|scope| {
        scope.spawn(|| {
            for wr_id in 0..messages {
                while a.try_post(&[send(wr_id)]).is_err() {
                    a.sent();
                    thread::yield_now();
                }
            }
        });
        block_on(async {
            let mut seen = 0;
            while seen < messages {
                cq.request_notify(false).unwrap();
                let got = poll_all(&cq);
                seen += got.len() as u64;
                b.receives(0..got.len() as u64);
                if got.is_empty() {
                    channel.notified().await;
                }
            }
        });
    });
}

/// A waker that panics, and one that counts.
struct Panics(Option<AtomicUsize>);

impl ArcWake for Panics {
    fn wake_by_ref(this: &Arc<Self>) {
        match &this.0 {
            Some(count) => count.fetch_add(1, Ordering::SeqCst),
            None => panic!("a waker of the program"),
        };
    }
}

#[test]
fn a_waker_that_panics_stops_neither_the_poster_nor_the_other_wakers() {
    let (a, b, cq, channel) = ends();
    b.receives(0..4);
    for wr_id in 0..2 {
        cq.request_notify(false).unwrap();
        let wakers = [None, Some(AtomicUsize::new(0)), None].map(|count| Arc::new(Panics(count)));
        let mut waits = [(); 3].map(|()| Box::pin(channel.notified()));
        for (wait, of) in waits.iter_mut().zip(&wakers) {
            let waker = waker(Arc::clone(of));
            assert!(wait.as_mut().poll(&mut PollContext::from_waker(&waker)).is_pending());
        }
        a.post(&[send(wr_id)]);
        let count = wakers[1].0.as_ref().unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        assert!(channel.try_notified());
    }
    assert_eq!(poll_all(&cq).len(), 2);
}
