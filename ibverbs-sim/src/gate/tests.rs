#![allow(unsafe_code, reason = "a model shares memory to see that nobody else uses it")]
use super::*;

/// Runs under loom's scheduler, or once without it.
fn model(check: impl Fn() + Send + Sync + 'static) {
    #[cfg(talpf_loom)]
    loom::model(check);
    #[cfg(not(talpf_loom))]
    check();
}

#[cfg(talpf_loom)]
use loom::{sync::Arc, thread};
#[cfg(not(talpf_loom))]
use std::{sync::Arc, thread};

const ROOM: Room = Room { freed: 0, limit: 8, whole: false };

struct Memory(UnsafeCell<u32>);

// SAFETY: the model below checks that no two threads touch it at the same time.
unsafe impl Sync for Memory {}

/// After the wait nobody uses what was closed before it, and whoever enters later sees it closed.
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
                    if let Some((hold, _)) = gate.enter(1, ROOM) {
                        if open.load(Ordering::SeqCst) == 1 {
                            memory.0.with_mut(|value| {
                                // SAFETY: the closer touches it only after its wait.
                                unsafe { *value += 1 }
                            });
                        }
                        drop(hold);
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

#[test]
fn posts_are_granted_up_to_the_limit() {
    let gate = Gate::new(());
    let room = Room { freed: 0, limit: 3, whole: false };
    assert_eq!(gate.enter(2, room).unwrap().1, 2);
    assert_eq!(gate.enter(2, room).unwrap().1, 1);
    assert_eq!(gate.enter(2, room).unwrap().1, 0);
    assert_eq!(gate.enter(9, Room { freed: 2, ..room }).unwrap().1, 2);
    assert_eq!(gate.posted(), 5);
}

#[test]
fn counts_wrap_without_touching_each_other() {
    let gate = Gate::new(());
    gate.word.store(u64::MAX << POSTED_SHIFT | HOLDS, Ordering::SeqCst);
    let room = Room { freed: u32::MAX - 1, limit: 8, whole: false };
    let (hold, granted) = gate.enter(3, room).unwrap();
    assert_eq!((granted, gate.posted()), (3, 2));
    assert_eq!(gate.word.load(Ordering::SeqCst) & HOLDS, 0);
    drop(hold);
    assert_eq!(gate.word.load(Ordering::SeqCst) & FLAGS, 0);
}
