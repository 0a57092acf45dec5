//! The batches that have an owner and those that are filled, a bit each.
//!
//! The bits of the first word are changed by the owner of a batch, those of the second by the
//! thread that has locked it. The polling task must not sleep while a batch is filled: the thread
//! that adds the first put sets the bit and then wakes the polling task, if that sleeps; the task
//! announces its sleep and then checks the bits. Both change the word of the bits, so the later one
//! sees what the other did before.

use talpf_primitives::{AtomicU32, Ordering};

/// The state words of the batches of a rank.
pub(super) struct Occupancy {
    owned: AtomicU32,
    filled: AtomicU32,
}

impl Occupancy {
    pub(super) fn new() -> Self {
        Occupancy { owned: AtomicU32::new(0), filled: AtomicU32::new(0) }
    }

    /// Takes the first free one of `count` batches.
    ///
    /// **Ordering**: sees the actions of its previous owner.
    pub(super) fn acquire(&self, count: usize) -> Option<usize> {
        let take_first = |owned: u32| {
            let free = owned.trailing_ones();
            (free < count as u32).then_some(owned | 1 << free)
        };
        let owned = self.owned.fetch_update(Ordering::Acquire, Ordering::Relaxed, take_first);
        Some(owned.ok()?.trailing_ones() as usize)
    }

    pub(super) fn release(&self, number: usize) {
        self.owned.fetch_and(!(1 << number), Ordering::Release);
    }

    pub(super) fn fill(&self, number: usize) {
        self.filled.fetch_or(1 << number, Ordering::SeqCst);
    }

    pub(super) fn empty(&self, number: usize) {
        self.filled.fetch_and(!(1 << number), Ordering::SeqCst);
    }

    /// Returns the bits of the filled batches.
    #[inline]
    pub(super) fn filled(&self) -> u32 {
        self.filled.load(Ordering::SeqCst)
    }

    /// As `filled`, for a polling task that has announced its sleep.
    pub(super) fn filled_at_last(&self) -> u32 {
        self.filled.fetch_or(0, Ordering::SeqCst)
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use talpf_primitives::Mutex;
    use talpf_runtime::service::Sleeper;

    /// A batch, the number of puts in it, and the polling task that would post them.
    struct Model {
        occupancy: Occupancy,
        sleeper: Sleeper,
        batch: Mutex<u32>,
    }

    impl Model {
        fn new() -> Arc<Self> {
            let (occupancy, sleeper) = (Occupancy::new(), Sleeper::default());
            Arc::new(Model { occupancy, sleeper, batch: Mutex::new(0) })
        }

        fn post(&self, batch: &mut u32) {
            if *batch > 0 {
                *batch = 0;
                self.occupancy.empty(0);
            }
        }

        /// As `Batches::add`.
        fn add(&self) {
            let mut batch = self.batch.lock();
            *batch += 1;
            let is_first = *batch == 1;
            if is_first {
                self.occupancy.fill(0);
            }
            drop(batch);
            if is_first {
                self.sleeper.wake();
            }
        }
    }

    #[test]
    fn nothing_stays_batched_while_the_polling_task_sleeps() {
        loom::model(|| {
            let model = Model::new();
            let adder = {
                let model = model.clone();
                thread::spawn(move || (0..2).for_each(|_| model.add()))
            };
            model.post(&mut model.batch.lock());
            model.sleeper.announce();
            let sleeps = model.occupancy.filled_at_last() == 0;
            adder.join().unwrap();
            let sleeps_on = sleeps && model.sleeper.is_asleep();
            assert!(!sleeps_on || *model.batch.lock() == 0, "a put is never posted");
        });
    }

    #[test]
    fn a_batch_has_one_owner_who_sees_what_the_one_before_left() {
        loom::model(|| {
            let model = Arc::new((Occupancy::new(), AtomicU32::new(0)));
            let use_it = |(occupancy, used): &(Occupancy, AtomicU32)| {
                let Some(number) = occupancy.acquire(1) else { return 0 };
                assert_eq!(number, 0);
                let before = used.load(Ordering::Relaxed);
                used.store(before + 1, Ordering::Relaxed);
                occupancy.release(0);
                1
            };
            let other = {
                let model = model.clone();
                thread::spawn(move || use_it(&model))
            };
            let mine = use_it(&model);
            let uses = mine + other.join().unwrap();
            assert_eq!(model.1.load(Ordering::Relaxed), uses);
        });
    }
}
