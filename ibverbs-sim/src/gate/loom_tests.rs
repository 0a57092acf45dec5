#![allow(unsafe_code, reason = "a model shares memory to see that nobody else uses it")]
use loom::{model, sync::Arc, thread};

use super::*;

const POST_LIMIT: PostLimit = PostLimit { freed: 0, limit: 8, all_or_none: false };

struct Memory(UnsafeCell<u32>);

// SAFETY: the model below checks that no two threads touch it at the same time.
unsafe impl Sync for Memory {}

/// After the wait no thread uses memory that was closed before it, and threads that enter later see
/// it closed.
#[test]
fn loom_the_wait_for_the_holder_covers_every_use() {
    model(|| {
        let gate = Arc::new(Gate::new(0));
        let open = Arc::new(AtomicU64::new(1));
        let memory = Arc::new(Memory(UnsafeCell::new(0)));
        let user = {
            let (gate, open, memory) = (Arc::clone(&gate), Arc::clone(&open), Arc::clone(&memory));
            thread::spawn(move || {
                for _ in 0..2 {
                    if let Some((guard, _)) = gate.enter(1, POST_LIMIT) {
                        if open.load(Ordering::SeqCst) == 1 {
                            memory.0.with_mut(|value| {
                                // SAFETY: the closer touches it only after its wait.
                                unsafe { *value += 1 }
                            });
                        }
                        drop(guard);
                    }
                }
            })
        };
        open.store(0, Ordering::SeqCst);
        gate.wait_for_holder();
        memory.0.with_mut(|value| {
            // SAFETY: closed and waited: no user is inside, none will come in.
            unsafe { *value = 0 }
        });
        user.join().unwrap();
    });
}
