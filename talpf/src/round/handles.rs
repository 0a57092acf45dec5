//! The handles of a round that is open or not posted yet.

use talpf_primitives::{AtomicU32, Ordering};

use crate::error::Error;

/// Largest number of handles of one round, half of the counter's range: threads that exceed it at
/// the same time do not overflow the counter.
const MOST: u32 = 1 << 31;

/// Counts the handles of a round, and one more until a sync closes the round.
pub(super) struct Handles(AtomicU32);

impl Handles {
    pub(super) fn new() -> Self {
        Handles(AtomicU32::new(1))
    }

    /// Takes a handle, for a thread that has one or has locked the open rounds.
    ///
    /// **Errors**: too many handles, as of a program that forgets them. The handle is taken
    /// nevertheless, and the caller fails the run.
    #[inline]
    pub(super) fn enter(&self) -> Result<(), Error> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        if before < MOST { Ok(()) } else { Err(too_many(before)) }
    }

    /// Gives a handle back. Returns `true` for the last one.
    ///
    /// **Ordering**: a thread that sees [`Handles::is_none`] sees all actions before this call.
    #[inline]
    pub(super) fn leave(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns `true` if all handles were given back, and the round is closed.
    #[inline]
    pub(super) fn is_none(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    /// Returns the number of handles, for reports.
    pub(super) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cold]
fn too_many(before: u32) -> Error {
    let what = "number of handles of one round";
    Error::Limit { what, value: u64::from(before) + 1, limit: u64::from(MOST) }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_handle_too_many_is_an_error_that_names_the_limit() {
        let handles = Handles(AtomicU32::new(MOST - 1));
        handles.enter().unwrap();
        let error = handles.enter().unwrap_err().to_string();
        assert_eq!(
            error,
            "number of handles of one round is 2147483649, expected at most 2147483648"
        );
        assert_eq!(handles.count(), MOST + 1);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// A round: its handles, and operations that were issued with them.
    type Round = (Handles, AtomicU32);

    /// Issues an operation with a handle of its own, taken by a thread that has one.
    fn issue(round: &Arc<Round>) {
        round.0.enter().unwrap();
        round.1.fetch_add(1, Ordering::Relaxed);
        round.0.leave();
    }

    #[test]
    fn operations_are_final_once_no_handle_is_left_and_one_returns_the_last() {
        loom::model(|| {
            let round = Arc::new((Handles::new(), AtomicU32::new(0)));
            round.0.enter().unwrap();
            let issuer = {
                let round = Arc::clone(&round);
                thread::spawn(move || {
                    issue(&round);
                    round.0.leave()
                })
            };
            // The sync closes the round.
            let was_last = round.0.leave();
            if round.0.is_none() {
                assert_eq!(round.1.load(Ordering::Relaxed), 1);
            }
            assert!(issuer.join().unwrap() ^ was_last, "one rings the doorbell of the engine");
        });
    }

    /// The round is used again by the owner of the only reference, as in `OpenRounds::close`.
    #[test]
    fn a_round_that_is_used_again_has_no_operations_of_the_one_before() {
        loom::model(|| {
            let mut spare = Arc::new((Handles::new(), AtomicU32::new(0)));
            spare.0.enter().unwrap();
            let issuer = {
                let round = Arc::clone(&spare);
                thread::spawn(move || {
                    issue(&round);
                    round.0.leave();
                })
            };
            spare.0.leave();
            if spare.0.is_none()
                && let Some((handles, sent)) = Arc::get_mut(&mut spare)
            {
                assert_eq!((handles.count(), sent.load(Ordering::Relaxed)), (0, 1));
                (*handles, *sent) = (Handles::new(), AtomicU32::new(0));
                issue(&spare);
                assert_eq!((spare.0.count(), spare.1.load(Ordering::Relaxed)), (1, 1));
            }
            issuer.join().unwrap();
        });
    }
}
