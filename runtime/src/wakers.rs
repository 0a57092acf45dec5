//! The wakers of all waits for one thing.

use std::task::Waker;

use talpf_primitives::{AtomicUsize, Mutex, Ordering};

/// A list of wakers, each once.
///
/// Wakers are code of the program: none is cloned, called or dropped under the lock.
#[derive(Default)]
pub(crate) struct Wakers {
    /// The length of the list, written under its lock.
    count: AtomicUsize,
    list: Mutex<Vec<Waker>>,
}

impl Wakers {
    /// Adds a waker unless it is in the list.
    pub(crate) fn add(&self, waker: &Waker) {
        let new = waker.clone();
        let mut list = self.list.lock();
        let known = list.iter().any(|known| known.will_wake(&new));
        // The known waker stays, and the other one drops after the lock.
        let _surplus = if known {
            Some(new)
        } else {
            list.push(new);
            None
        };
        self.count.store(list.len(), Ordering::SeqCst);
        drop(list);
    }

    /// Removes all wakers, to be called.
    pub(crate) fn take(&self) -> Vec<Waker> {
        let mut list = self.list.lock();
        self.count.store(0, Ordering::SeqCst);
        std::mem::take(&mut list)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Returns the same as `is_empty`, but may miss a waker that is being added.
    #[inline]
    pub(crate) fn seem_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }
}

#[cfg(all(test, talpf_loom))]
pub(crate) mod model {
    //! A waker for models.

    use std::sync::Arc;
    use std::task::{Wake, Waker};

    use talpf_primitives::{AtomicBool, Ordering};

    /// Notes that its waker was called.
    #[derive(Default)]
    pub(crate) struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    impl Woken {
        /// Creates a waker and its record.
        pub(crate) fn waker() -> (Waker, Arc<Self>) {
            let woken = Arc::new(Self::default());
            (Waker::from(Arc::clone(&woken)), woken)
        }

        pub(crate) fn is_woken(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }
}
