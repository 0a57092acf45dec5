//! A lock that no thread waits for.

use crate::plain;

/// A lock that is only tried. Code of the program may run under it: a thread that tries it again
/// fails to get it, so debug builds do not count it among the held locks.
#[derive(Debug, Default)]
pub struct TryLock<T>(plain::Mutex<T>);

impl<T> TryLock<T> {
    /// Makes a lock that holds `value`.
    pub fn new(value: T) -> Self {
        TryLock(plain::Mutex::new(value))
    }

    /// Returns the lock, if no thread holds it.
    pub fn try_lock(&self) -> Option<plain::MutexGuard<'_, T>> {
        self.0.try_lock()
    }
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;
    use crate::assert_nothing_held;

    #[test]
    fn a_second_attempt_fails_and_nothing_counts_as_held() {
        let lock = TryLock::new(1);
        let guard = lock.try_lock();
        assert!(guard.is_some() && lock.try_lock().is_none());
        assert_nothing_held("a test");
        drop(guard);
        assert_eq!(lock.try_lock().map(|value| *value), Some(1));
    }
}
