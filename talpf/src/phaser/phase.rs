//! The signals of one signaller at one waiter, and the signaller that the waiter waits for.
//!
//! A waiter goes through the signallers one by one. It announces the one that has not signalled the
//! phase, and then tests its count once more; a signaller counts, and then tests whether it is the
//! announced one. So only the last signal that is missing wakes the waiter, or the few that are
//! missing one after another.
//!
//! **The race that the two fences prevent**: the signaller counts and sees no announcement, the waiter
//! announces and sees no count. One of the fences is the first; whoever passes the other one sees
//! what was stored before it.

use talpf_primitives::{AtomicU32, AtomicU64, Ordering, fence};

/// Marks of the end of a signaller, beside its count.
const CLOSED: u64 = 1 << 63;
const LOST: u64 = 1 << 62;
const COUNT: u64 = LOST - 1;

/// Announcement of no signaller.
const NOBODY: u32 = u32::MAX;

/// The number of phases that a signaller has signalled, and its end.
#[derive(Debug, Default)]
pub(super) struct Signals(AtomicU64);

/// The end of a signaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    /// Lost in a panic.
    Lost,
}

/// The place of the signaller that the waiter waits for.
#[derive(Debug)]
pub(super) struct Awaited(AtomicU32);

impl Signals {
    /// Sets the count, for the only thread that does.
    #[inline]
    fn set(&self, phases: u64) {
        self.0.store(phases, Ordering::Release);
    }

    /// Notes the end, for the only thread that changes the count.
    fn end(&self, end: End) {
        let mark = if end == End::Closed { CLOSED } else { LOST };
        self.0.fetch_or(mark, Ordering::AcqRel);
    }

    /// Returns the number of phases that were signalled.
    #[inline]
    pub(super) fn phases(&self) -> u64 {
        self.0.load(Ordering::Acquire) & COUNT
    }

    /// Returns the end of the signaller, after its last signal.
    pub(super) fn ended(&self) -> Option<End> {
        match self.0.load(Ordering::Acquire) & !COUNT {
            0 => None,
            CLOSED => Some(End::Closed),
            _ => Some(End::Lost),
        }
    }
}

impl Awaited {
    pub(super) fn nobody() -> Self {
        Awaited(AtomicU32::new(NOBODY))
    }

    /// Counts the signals of the signaller at `place`, of `phases` in all. Returns `true` if the waiter
    /// is to be woken.
    #[inline]
    pub(super) fn signal(&self, place: usize, signals: &Signals, phases: u64) -> bool {
        signals.set(phases);
        self.is_announced(place)
    }

    /// Notes the end of the signaller at `place`. Returns `true` if the waiter is to be woken.
    pub(super) fn end(&self, place: usize, signals: &Signals, end: End) -> bool {
        signals.end(end);
        self.is_announced(place)
    }

    #[inline]
    fn is_announced(&self, place: usize) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) == place as u32
    }

    /// Announces that the waiter waits for the signaller at `place`. It tests the count once more
    /// afterwards.
    pub(super) fn announce(&self, place: usize) {
        self.0.store(place as u32, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Returns the place of the signaller that is waited for. A hint.
    pub(super) fn place(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    use super::*;

    #[test]
    fn loom_a_signal_is_seen_or_wakes() {
        loom::model(|| {
            let shared = Arc::new((Awaited::nobody(), Signals::default(), AtomicBool::new(false)));
            let signaller = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (awaited, signals, woken) = &*shared;
                    if awaited.signal(3, signals, 1) {
                        woken.store(true, Ordering::SeqCst);
                    }
                })
            };
            let (awaited, signals, woken) = &*shared;
            let seen = signals.phases() > 0 || {
                awaited.announce(3);
                signals.phases() > 0
            };
            signaller.join().unwrap();
            assert!(seen || woken.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn loom_an_end_is_seen_or_wakes_and_follows_the_last_signal() {
        loom::model(|| {
            let shared = Arc::new((Awaited::nobody(), Signals::default(), AtomicBool::new(false)));
            let signaller = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (awaited, signals, woken) = &*shared;
                    let wakes = awaited.signal(0, signals, 1);
                    if awaited.end(0, signals, End::Closed) || wakes {
                        woken.store(true, Ordering::SeqCst);
                    }
                })
            };
            let (awaited, signals, woken) = &*shared;
            awaited.announce(0);
            let ended = signals.ended();
            assert!(ended.is_none() || signals.phases() == 1);
            signaller.join().unwrap();
            assert!(ended.is_some() || woken.load(Ordering::SeqCst));
        });
    }
}
