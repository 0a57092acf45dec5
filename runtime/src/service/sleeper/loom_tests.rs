use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Counter;
use std::task::Wake;

use loom::thread;

use super::*;

#[derive(Default)]
struct Count(Counter);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A service that sleeps, and `threads` threads that each write a word and wake it.
fn wakes(threads: usize) {
    loom::model(move || {
        let words: Vec<_> = (0..threads).map(|_| AtomicBool::new(false)).collect();
        let shared = Arc::new((Sleeper::default(), words));
        let wakers: Vec<_> = (0..threads)
            .map(|number| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.1[number].store(true, Ordering::Relaxed);
                    shared.0.wake();
                })
            })
            .collect();
        let (sleeper, words) = &*shared;
        let count = Arc::new(Count::default());
        sleeper.announce();
        let sees_all = words.iter().all(|word| word.load(Ordering::Relaxed));
        let sleeps = !sees_all && sleeper.register(&Waker::from(Arc::clone(&count)));
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
        assert!(!sleeps || count.0.load(Ordering::SeqCst) == 1, "a write is slept through");
        sleeper.end();
        assert!(!sleeper.is_asleep());
    });
}

#[test]
fn a_write_is_seen_by_the_last_poll_or_wakes() {
    wakes(1);
}

#[test]
fn of_two_writes_one_wakes_for_both() {
    wakes(2);
}

/// A waker of one sleep that comes late does not end the next one for ever.
#[test]
fn a_late_wake_leaves_the_next_sleep_to_its_own_wakers() {
    loom::model(|| {
        let shared = Arc::new((Sleeper::default(), AtomicBool::new(false)));
        let waker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.wake();
                shared.1.store(true, Ordering::Relaxed);
                shared.0.wake();
            })
        };
        let (sleeper, word) = &*shared;
        sleeper.announce();
        sleeper.end();
        let count = Arc::new(Count::default());
        sleeper.announce();
        let sees = word.load(Ordering::Relaxed);
        let sleeps = !sees && sleeper.register(&Waker::from(Arc::clone(&count)));
        waker.join().unwrap();
        assert!(!sleeps || count.0.load(Ordering::SeqCst) >= 1, "a write is slept through");
    });
}
