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

#[test]
fn a_batch_is_seen_by_the_sleeper_or_written_at_once() {
    loom::model(|| {
        let rank = Arc::new((Sleeper::default(), BatchingLinks::default()));
        let sleeper = {
            let rank = Arc::clone(&rank);
            thread::spawn(move || {
                rank.0.prepare_sleep();
                rank.1.any()
            })
        };
        rank.1.begin();
        let writes = rank.0.is_asleep();
        let sees = sleeper.join().unwrap();
        assert!(writes || sees);
    });
}

#[test]
fn a_sleeper_that_is_woken_does_not_wait_on() {
    loom::model(|| {
        let (sleeper, over) = (Sleeper::default(), AtomicBool::new(false));
        let rank = Arc::new((sleeper, over));
        let waker = {
            let rank = Arc::clone(&rank);
            thread::spawn(move || {
                rank.1.store(true, Ordering::SeqCst);
                rank.0.wake();
            })
        };
        let count = Arc::new(Count::default());
        rank.0.prepare_sleep();
        let sees = rank.1.load(Ordering::SeqCst);
        let waits = !sees && rank.0.register(&Waker::from(Arc::clone(&count)));
        waker.join().unwrap();
        assert!(!waits || count.0.load(Ordering::SeqCst) == 1);
        rank.0.end_sleep();
        assert!(!rank.0.is_asleep());
    });
}

/// A rank that goes to sleep, and threads of its peers that write a cell each.
fn doorbells(peers: u64) {
    loom::model(move || {
        let words = Arc::new((AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(0)));
        let peers: Vec<_> = (0..peers)
            .map(|_| {
                let words = Arc::clone(&words);
                thread::spawn(move || {
                    let (cells, asleep, rung) = &*words;
                    cells.fetch_add(1, Ordering::Release);
                    if must_ring_doorbell(asleep) {
                        rung.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let (cells, asleep, rung) = &*words;
        asleep.store(1, Ordering::Release);
        fence_before_last_poll();
        let seen = cells.load(Ordering::Acquire);
        let count = peers.len() as u64;
        peers.into_iter().for_each(|peer| peer.join().unwrap());
        let rung = rung.load(Ordering::SeqCst);
        assert!(seen == count || rung == 1, "{seen} of {count} cells seen, {rung} doorbells");
        assert!(rung <= 1, "one doorbell for each sleep");
    });
}

#[test]
fn a_cell_is_seen_before_the_sleep_or_rings() {
    doorbells(1);
}

#[test]
fn of_two_cells_one_rings_for_both() {
    doorbells(2);
}
