use std::sync::Arc;

use loom::thread;
use talpf_runtime::service::Sleeper;

use super::*;

#[test]
fn a_batch_is_seen_by_the_sleeper_or_written_at_once() {
    loom::model(|| {
        let rank = Arc::new((Sleeper::default(), BatchingLinks::default()));
        let sleeper = {
            let rank = Arc::clone(&rank);
            thread::spawn(move || {
                rank.0.announce();
                rank.1.any()
            })
        };
        rank.1.begin();
        let writes = rank.0.is_asleep();
        let sees = sleeper.join().unwrap();
        assert!(writes || sees);
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
