//! The state of a queue pair.

use talpf_primitives::{AtomicU8, Ordering};

/// The state of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum QueuePairState {
    /// Accepts no requests.
    Reset = 0,
    /// Accepts receives.
    Init = 1,
    /// Also responds to its peer.
    ReadyToReceive = 2,
    /// Also accepts send requests.
    ReadyToSend = 3,
    /// Flushes all requests.
    Error = 4,
}

/// A state that any thread may read, with a flag that is set once the context is cut off.
pub(crate) struct StateCell(AtomicU8);

const CUT_OFF: u8 = 0x80;

impl StateCell {
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(QueuePairState::Reset as u8))
    }

    #[inline]
    pub(crate) fn load(&self) -> QueuePairState {
        decode(self.0.load(Ordering::SeqCst))
    }

    /// Returns `true` if the queue pair responds to its peer.
    #[inline]
    pub(crate) fn responds(&self) -> bool {
        let bits = self.0.load(Ordering::SeqCst);
        bits == QueuePairState::ReadyToSend as u8 || bits == QueuePairState::ReadyToReceive as u8
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        self.0.load(Ordering::SeqCst) & CUT_OFF != 0
    }

    pub(crate) fn cut_off(&self) {
        self.0.fetch_or(CUT_OFF, Ordering::SeqCst);
    }

    /// Moves from `from` to `to`. Returns `false` if the state is not `from`.
    pub(crate) fn change(&self, from: QueuePairState, to: QueuePairState) -> bool {
        let change = |bits: u8| (decode(bits) == from).then_some((bits & CUT_OFF) | to as u8);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change).is_ok()
    }

    /// Moves to `to` from any state, and returns the previous one.
    pub(crate) fn set(&self, to: QueuePairState) -> QueuePairState {
        let set = |bits: u8| Some((bits & CUT_OFF) | to as u8);
        let seen = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, set);
        decode(seen.unwrap_or_else(|bits| bits))
    }
}

/// The states by their numbers.
const STATES: [QueuePairState; 5] = [
    QueuePairState::Reset,
    QueuePairState::Init,
    QueuePairState::ReadyToReceive,
    QueuePairState::ReadyToSend,
    QueuePairState::Error,
];

#[inline]
fn decode(bits: u8) -> QueuePairState {
    STATES[usize::from(bits & !CUT_OFF).min(STATES.len() - 1)]
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
