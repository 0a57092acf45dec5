//! Calls of code outside this crate: wires, and wakers.
//!
//! A callback may do anything, such as call the device again on the same thread. So it is called
//! under no gate and under no lock, which debug builds check, and a panic ends at the call.

use std::panic::{AssertUnwindSafe, catch_unwind};

use talpf_primitives::assert_nothing_held_here;

/// Calls `callback`, which debug messages name `what`. Returns `None` if it has panicked.
pub(crate) fn call<R>(what: &'static str, callback: impl FnOnce() -> R) -> Option<R> {
    assert_nothing_held_here(what);
    catch_unwind(AssertUnwindSafe(callback)).map_err(forget).ok()
}

/// Leaks the payload of a panic, whose drop may panic.
#[cold]
fn forget(payload: Box<dyn std::any::Any + Send>) {
    std::mem::forget(payload);
}

#[cfg(all(test, debug_assertions, not(talpf_loom)))]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use talpf_primitives::Mutex;

    use crate::gate::{Gate, PostLimit};

    const POST_LIMIT: PostLimit = PostLimit { freed: 0, limit: 1, all_or_none: false };

    fn report() -> Option<String> {
        let called = catch_unwind(|| call("a test", || ()));
        called.err().and_then(|payload| payload.downcast::<String>().ok()).map(|text| *text)
    }

    #[test]
    fn a_call_under_a_lock_is_reported_with_the_place_where_it_was_taken() {
        let lock = Mutex::new(1);
        assert_eq!(report(), None);
        let (guard, line) = (lock.lock(), line!());
        let text = report().unwrap();
        assert!(
            text.contains("a test") && text.contains(&format!("{}:{line}:", file!())),
            "{text}"
        );
        assert_eq!(*guard, 1);
        drop(guard);
        assert_eq!(report(), None);
    }

    #[test]
    fn a_call_under_a_gate_is_reported_however_the_hold_began_and_ended() {
        let gate = Gate::new(());
        let (guard, _) = gate.enter(1, POST_LIMIT).unwrap();
        assert!(report().unwrap().contains("a gate"));
        assert!(!guard.release());
        assert_eq!(report(), None);
        let guard = gate.enter_blocking();
        assert!(report().is_some());
        guard.set_queued();
        drop(guard);
        assert_eq!(report(), None);
        let guard = gate.enter_to_drain().unwrap();
        assert!(report().is_some());
        assert!(guard.stall().is_ok());
        assert_eq!(report(), None);
    }
}
