use loom::{model, sync::Arc, thread};

use super::*;

/// Two threads may free the counts that they have polled in any order: the larger one stays.
#[test]
fn loom_a_count_only_grows() {
    model(|| {
        let slots = Arc::new(SendSlots::new(2));
        let number = slots.allocate().unwrap();
        let threads = [1, 2].map(|executed| {
            let slots = Arc::clone(&slots);
            thread::spawn(move || slots.free(number, executed))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(slots.freed(number), 2);
    });
}

/// A completion of a queue pair that is gone frees nothing of the next one.
#[test]
fn loom_a_late_completion_frees_nothing_of_the_successor() {
    model(|| {
        let slots = Arc::new(SendSlots::new(1));
        let old = slots.allocate().unwrap();
        let late = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || slots.free(old, 5))
        };
        slots.release(old);
        let new = slots.allocate().unwrap();
        assert_eq!((old.index(), slots.freed(new)), (new.index(), 0));
        late.join().unwrap();
        assert_eq!(slots.freed(new), 0);
    });
}
