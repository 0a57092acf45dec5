//! The signals of one signaller at one end, and the signaller that the end waits for.
//!
//! An end that waits announces the signaller whose signal is missing, or that any will do, and then
//! tests the counts once more; a signaller counts, and then tests whether it is the announced one. So
//! only a signal that is missing wakes the end.
//!
//! **The race that the two fences prevent**: the signaller counts and sees no announcement, the end
//! announces and sees no count. One of the fences is the first; whoever passes the other one sees
//! what was stored before it.

use talpf_primitives::{AtomicU32, AtomicU64, Ordering, fence};

/// Marks of the end of a signaller, beside its count.
const CLOSED: u64 = 1 << 63;
const LOST: u64 = 1 << 62;
const COUNT: u64 = LOST - 1;

/// Announcement of no signaller, and of any.
const NOBODY: u32 = u32::MAX;
const ANYBODY: u32 = u32::MAX - 1;

/// The number that a signaller has signalled, and its end.
#[derive(Debug, Default)]
pub(crate) struct Signals(AtomicU64);

/// The end of a signaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    /// Lost in a panic.
    Lost,
}

/// The place of the signaller that an end waits for.
#[derive(Debug)]
pub(crate) struct Awaited(AtomicU32);

impl Signals {
    /// Sets the count, for the only thread that does.
    #[inline]
    fn set(&self, count: u64) {
        self.0.store(count, Ordering::Release);
    }

    /// Notes the end, for the only thread that changes the count.
    fn end(&self, end: End) {
        let mark = if end == End::Closed { CLOSED } else { LOST };
        self.0.fetch_or(mark, Ordering::AcqRel);
    }

    /// Returns the number that was signalled.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire) & COUNT
    }

    /// Returns the end of the signaller, after its last signal.
    pub(crate) fn ended(&self) -> Option<End> {
        self.all().1
    }

    /// Returns the number that was signalled, and the end of the signaller after it.
    #[inline]
    pub(crate) fn all(&self) -> (u64, Option<End>) {
        let word = self.0.load(Ordering::Acquire);
        let end = match word & !COUNT {
            0 => None,
            CLOSED => Some(End::Closed),
            _ => Some(End::Lost),
        };
        (word & COUNT, end)
    }
}

impl Awaited {
    pub(crate) fn nobody() -> Self {
        Awaited(AtomicU32::new(NOBODY))
    }

    /// Counts the signals of the signaller at `place`, `count` in all. Returns `true` if the end that
    /// waits is to be woken.
    #[inline]
    pub(crate) fn signal(&self, place: usize, signals: &Signals, count: u64) -> bool {
        signals.set(count);
        self.is_announced(place)
    }

    /// Notes the end of the signaller at `place`. Returns `true` if the end that waits is to be
    /// woken.
    pub(crate) fn end(&self, place: usize, signals: &Signals, end: End) -> bool {
        signals.end(end);
        self.is_announced(place)
    }

    #[inline]
    fn is_announced(&self, place: usize) -> bool {
        fence(Ordering::SeqCst);
        let announced = self.0.load(Ordering::Relaxed);
        announced == place as u32 || announced == ANYBODY
    }

    /// Announces a wait for the signaller at `place`, or for any. Whoever waits tests the count once
    /// more afterwards.
    pub(crate) fn announce(&self, place: Option<usize>) {
        self.0.store(place.map_or(ANYBODY, |place| place as u32), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Takes an announcement back.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.0.load(Ordering::Relaxed) != NOBODY {
            self.0.store(NOBODY, Ordering::Relaxed);
        }
    }

    /// Returns the place of the signaller that is waited for; that of none if any will do. A hint.
    pub(crate) fn place(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    use super::*;

    fn is_seen_or_wakes(announced: Option<usize>) {
        loom::model(move || {
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
            let seen = signals.count() > 0 || {
                awaited.announce(announced);
                signals.count() > 0
            };
            signaller.join().unwrap();
            assert!(seen || woken.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn loom_a_signal_is_seen_or_wakes() {
        is_seen_or_wakes(Some(3));
    }

    #[test]
    fn loom_a_signal_is_seen_or_wakes_who_waits_for_any() {
        is_seen_or_wakes(None);
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
            awaited.announce(Some(0));
            let ended = signals.ended();
            assert!(ended.is_none() || signals.count() == 1);
            signaller.join().unwrap();
            assert!(ended.is_some() || woken.load(Ordering::SeqCst));
        });
    }
}
