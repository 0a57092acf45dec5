//! Words in shared memory by which processes wait for each other, uses of memory and sleep, and one by
//! which they show life.
//!
//! Words of uses and words of sleep follow the same protocol. One side announces itself and then checks what the other has
//! published; the other publishes, and then checks for an announcement; a fence lies between on both
//! sides, which costs the frequent side nothing (see `fence`).
//!
//! | | announces | publishes |
//! |---|---|---|
//! | use | the peer, in its use word, before it checks a key: often | the owner, which closes the key: rarely |
//! | sleep | the reader, which is about to sleep: rarely | the writer, a frame: often |
//! | sleep for room | the writer, which is about to sleep: rarely | the reader, what it has taken: often |
//!
//! The race that this prevents: the owner closes a key, finds no use, and gives the memory back, while
//! the peer has found the key open before its use became visible. Of two fences, one comes first. If
//! that of the peer does, the owner's load after its own fence sees the use, and waits for its end; else
//! the peer's load after its fence sees the key closed. Sleep is the same, with frame and sleeper.

use talpf_primitives::{AtomicU64, Ordering};

use super::fence::AsymmetricFence;

/// Word that is odd while a peer may use memory of the owner. The holder of one lock changes it.
#[repr(C, align(64))]
pub(super) struct UseWord(AtomicU64);

impl UseWord {
    /// Begins a use, before the key is checked.
    #[inline]
    pub(super) fn begin(&self, fence: AsymmetricFence) {
        // Released: an owner that waits for the use before may see this number first.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1) | 1, Ordering::Release);
        fence.light();
    }

    /// Ends the use.
    #[inline]
    pub(super) fn end(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1) & !1, Ordering::Release);
    }

    /// Waits until a use that may have begun before the key was closed has ended, or `gives_up` returns `true`. The
    /// caller has passed a heavy fence since. Returns `true` if the use has ended.
    pub(super) fn wait(&self, mut gives_up: impl FnMut() -> bool) -> bool {
        let seen = self.0.load(Ordering::Acquire);
        let has_ended = || seen.is_multiple_of(2) || self.0.load(Ordering::Acquire) != seen;
        while !has_ended() {
            if gives_up() {
                return has_ended();
            }
            talpf_primitives::yield_now();
        }
        true
    }
}

/// Word that is not 0 while the process sleeps, or is about to, and says what is to wake it.
#[repr(C, align(64))]
pub(super) struct SleepWord(AtomicU64);

/// The process sleeps until there is a frame.
const FOR_FRAMES: u64 = 1;
/// The process sleeps until there is a frame, or room in a ring that it writes.
const FOR_ROOM: u64 = 2;

impl SleepWord {
    /// Announces sleep until there is a frame, or also room. The caller checks for both once more
    /// before it sleeps.
    pub(super) fn announce(&self, for_room: bool, fence: AsymmetricFence) {
        let what = if for_room { FOR_ROOM } else { FOR_FRAMES };
        self.0.store(what, Ordering::Relaxed);
        fence.heavy();
    }

    /// Takes the announcement back.
    pub(super) fn retract(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns `true` if the caller, which has published a frame, is the one to wake the process.
    #[inline]
    pub(super) fn must_wake(&self, fence: AsymmetricFence) -> bool {
        fence.light();
        self.0.load(Ordering::Relaxed) != 0 && self.0.swap(0, Ordering::AcqRel) != 0
    }

    /// Returns `true` if the caller, which has published that it has taken frames, is the one to wake
    /// the process.
    #[inline]
    pub(super) fn must_wake_for_room(&self, fence: AsymmetricFence) -> bool {
        fence.light();
        self.0.load(Ordering::Relaxed) == FOR_ROOM && self.0.swap(0, Ordering::AcqRel) != 0
    }
}

/// Number that grows while the process shows life.
#[repr(C, align(64))]
pub(super) struct LifeWord(AtomicU64);

impl LifeWord {
    /// Shows a sign of life. The process itself calls this, from one thread at a time.
    pub(super) fn show(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns the number of signs of life.
    pub(super) fn signs(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::{cell::UnsafeCell, model, sync::Arc, thread};
    use talpf_primitives::AtomicBool;

    use super::*;

    const FENCE: AsymmetricFence = AsymmetricFence::new(false);

    #[test]
    fn loom_memory_is_the_owners_once_no_use_of_it_is_under_way() {
        model(|| {
            let word = Arc::new(UseWord(AtomicU64::new(0)));
            let memory = Arc::new(UnsafeCell::new(0));
            let is_open = Arc::new(AtomicBool::new(true));
            let peer = {
                let (word, memory) = (Arc::clone(&word), Arc::clone(&memory));
                let is_open = Arc::clone(&is_open);
                thread::spawn(move || {
                    for _ in 0..2 {
                        word.begin(FENCE);
                        if is_open.load(Ordering::Acquire) {
                            // loom reports a use at the same time.
                            memory.with_mut(|_| ());
                        }
                        word.end();
                    }
                })
            };
            is_open.store(false, Ordering::Release);
            FENCE.heavy();
            assert!(word.wait(|| false));
            memory.with_mut(|_| ());
            peer.join().unwrap();
        });
    }

    #[test]
    fn loom_no_room_is_slept_through_and_no_frame_by_who_waits_for_room() {
        model(|| {
            let word = Arc::new(SleepWord(AtomicU64::new(0)));
            let [frame, room] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
            let publish = |flag: &Arc<AtomicBool>, must_wake: fn(&SleepWord) -> bool| {
                let (word, flag) = (Arc::clone(&word), Arc::clone(flag));
                thread::spawn(move || {
                    flag.store(true, Ordering::Release);
                    must_wake(&word)
                })
            };
            let others = [
                publish(&frame, |word| word.must_wake(FENCE)),
                publish(&room, |word| word.must_wake_for_room(FENCE)),
            ];
            word.announce(true, FENCE);
            let sleeps = [&frame, &room].iter().all(|flag| !flag.load(Ordering::Acquire));
            let wakes = others.map(|other| other.join().unwrap());
            assert!(!sleeps || wakes != [false; 2]);
        });
    }

    #[test]
    fn loom_no_frame_is_slept_through() {
        model(|| {
            let word = Arc::new(SleepWord(AtomicU64::new(0)));
            let frame = Arc::new(AtomicBool::new(false));
            let writer = {
                let (word, frame) = (Arc::clone(&word), Arc::clone(&frame));
                thread::spawn(move || {
                    frame.store(true, Ordering::Release);
                    word.must_wake(FENCE)
                })
            };
            word.announce(false, FENCE);
            let sleeps = !frame.load(Ordering::Acquire);
            let wakes = writer.join().unwrap();
            assert!(!sleeps || wakes);
        });
    }
}
