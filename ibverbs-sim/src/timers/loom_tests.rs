use loom::{model, sync::Arc, thread};

use super::*;

/// A queue pair that arms a timer as its deadline is reached is either resumed or refused.
#[test]
fn loom_no_deadline_is_slept_through() {
    model(|| {
        let timers = Arc::new(Timers::default());
        let advancer = {
            let timers = Arc::clone(&timers);
            thread::spawn(move || timers.advance(10).len())
        };
        let is_listed = timers.arm(10, &Weak::new());
        let resumed = advancer.join().unwrap();
        assert_eq!(resumed, usize::from(is_listed));
    });
}
