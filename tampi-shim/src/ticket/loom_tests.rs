use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use loom::thread;

use super::*;
use crate::rank::Rank;
use crate::tag::Tag;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn status() -> Status {
    Status::new(Rank(3), Tag(4), 5)
}

#[test]
fn a_result_is_found_or_its_waker_is_woken() {
    loom::model(|| {
        let (ticket, mut awaited) = ticket();
        let completer = thread::spawn(move || ticket.complete(Ok(status())));
        let count = std::sync::Arc::new(Count::default());
        let waker = Waker::from(std::sync::Arc::clone(&count));
        // Twice, so that a waker is replaced.
        let mut found = awaited.poll(&waker).or_else(|| awaited.poll(&waker));
        completer.join().unwrap();
        if found.is_none() {
            assert!(count.0.load(Ordering::SeqCst) >= 1, "woken");
            found = awaited.poll(&waker);
        }
        assert_eq!(found.expect("it has ended").ok(), Some(status().into()));
    });
}

#[test]
fn a_call_is_made_once_wherever_the_end_comes() {
    loom::model(|| {
        let (ticket, awaited) = ticket();
        let completer = thread::spawn(move || ticket.complete(Ok(status())));
        let count = std::sync::Arc::new(AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&count);
        awaited.call(Box::new(move |result| {
            assert_eq!(result.ok(), Some(status()));
            counted.fetch_add(1, Ordering::SeqCst);
        }));
        completer.join().unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_ticket_that_is_dropped_says_so() {
    loom::model(|| {
        let (ticket, mut awaited) = ticket();
        let completer = thread::spawn(move || drop(ticket));
        let waker = Waker::from(std::sync::Arc::new(Count::default()));
        let found = awaited.poll(&waker);
        completer.join().unwrap();
        let found = found.or_else(|| awaited.poll(&waker));
        let error = found.and_then(Result::err).expect("an error");
        assert!(matches!(*error, Error::Abandoned));
    });
}

#[test]
fn one_that_is_let_go_is_freed_once_wherever_the_end_comes() {
    loom::model(|| {
        let (ticket, mut awaited) = ticket();
        let completer = thread::spawn(move || ticket.complete(Ok(status())));
        let count = std::sync::Arc::new(Count::default());
        let waker = Waker::from(std::sync::Arc::clone(&count));
        let found = awaited.poll(&waker);
        drop(awaited);
        completer.join().unwrap();
        if found.is_some() {
            assert_eq!(count.0.load(Ordering::SeqCst), 0);
        }
        drop(waker);
        assert_eq!(std::sync::Arc::strong_count(&count), 1, "no waker is left");
    });
}
