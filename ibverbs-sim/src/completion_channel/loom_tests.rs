use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering as Plain};
use std::task::{Context, Wake};

use loom::{model, thread};

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Plain::SeqCst);
    }
}

/// An event is found or wakes the thread that waits for it, and is taken once.
#[test]
fn loom_no_event_is_slept_through() {
    model(|| {
        let channel = CompletionChannel::new();
        let firing = {
            let channel = channel.clone();
            thread::spawn(move || channel.fire())
        };
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut notified = pin!(channel.notified());
        let is_notified = notified.as_mut().poll(&mut context).is_ready();
        firing.join().unwrap();
        if !is_notified {
            assert_eq!(count.0.load(Plain::SeqCst), 1, "woken");
            assert!(notified.as_mut().poll(&mut context).is_ready());
        }
        assert!(!channel.try_notified(), "one event");
    });
}

/// Of two threads that try to take one event, one takes it.
#[test]
fn loom_an_event_is_taken_once() {
    model(|| {
        let channel = CompletionChannel::new();
        channel.fire();
        let other = {
            let channel = channel.clone();
            thread::spawn(move || channel.try_notified())
        };
        assert_ne!(channel.try_notified(), other.join().unwrap());
    });
}
