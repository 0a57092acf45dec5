//! Noticing that the run hangs when no process alone can know.
//!
//! A process in which nothing goes on, until something comes from another one, says so to all,
//! with how many packets have gone to each process and come from it by then. Once everybody has
//! said so and all counts match - what one has sent to another is what that has taken - nothing is
//! under way and nobody will ever send: the first to go on after it has spoken could only do so for
//! a packet that was sent before its sender spoke, and that is counted. Who has gone on meanwhile
//! says so again later, with other counts.
//!
//! **Source**: the channel counting of Mattern, *Algorithms for distributed termination detection*
//! (1987).

use std::sync::atomic::{AtomicU64, Ordering};

use talpf_primitives::Mutex;

use super::{ControlMessage, Processes};
use crate::numbers::Rank;

/// For each process, packets sent to it and taken from it. The letters of this file do not count.
type Traffic = Vec<(u64, u64)>;

/// What is known of who goes on.
#[derive(Default)]
pub(super) struct TerminationDetector {
    /// Times this process has taken in everything that had come.
    passes: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Letters of this file that have gone to each process; those that have come, by source.
    sent: u64,
    received: Vec<u64>,
    /// What was counted when this process was last asked, and in which pass.
    last: Option<(Traffic, u64)>,
    /// What each has said last; this one, too.
    said: Vec<Option<Traffic>>,
}

impl TerminationDetector {
    pub(super) fn new(ranks: u32) -> Self {
        let ranks = ranks as usize;
        let state = State { received: vec![0; ranks], said: vec![None; ranks], ..State::default() };
        TerminationDetector { passes: AtomicU64::new(0), state: Mutex::new(state) }
    }

    /// Everything that has come by now has been taken in.
    pub(super) fn note_pass(&self) {
        self.passes.fetch_add(1, Ordering::SeqCst);
    }

    /// What a process has said. False if that is nothing it can say.
    pub(super) fn hear(&self, from: Rank, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let mut state = self.state.lock();
        let fits = rest.is_empty() && words.len() == 2 * state.said.len();
        if fits {
            state.received[from.index()] += 1;
            state.said[from.index()] = Some(words.chunks(2).map(|of| (of[0], of[1])).collect());
        }
        fits
    }
}

impl Processes {
    /// Nothing goes on here: whether that holds for the whole run, for ever. WindowRequests again
    /// and again as long as nothing goes on; tells the others once that is sure.
    pub(crate) fn is_terminated(&self) -> bool {
        let passes = self.termination.passes.load(Ordering::SeqCst);
        let mut state = self.termination.state.lock();
        let traffic = self.traffic(&state);
        // What had come when it was counted may have been taken in later, and has led to nothing.
        let sure = state
            .last
            .as_ref()
            .is_some_and(|(before, pass)| *before == traffic && passes >= pass + 2);
        if !sure {
            state.last = Some((traffic, passes));
            return false;
        }
        let said = &mut state.said[self.here.index()];
        if said.as_ref() != Some(&traffic) {
            let words = traffic.iter().flat_map(|(sent, taken)| [*sent, *taken]);
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            *said = Some(traffic);
            state.sent += 1;
            self.send_to_all(ControlMessage::Idle(&bytes));
        }
        matches(&state.said)
    }

    /// As [`Processes::is_terminated`], for a rank that has ended, if anybody wants to know.
    pub(super) fn join_termination(&self) {
        if self.termination.state.lock().received.iter().any(|count| *count > 0) {
            self.is_terminated();
        }
    }

    fn traffic(&self, state: &State) -> Traffic {
        let count = |rank: u32| {
            if rank == self.here.0 {
                return (0, 0);
            }
            let received = state.received[rank as usize];
            (self.wire.sent(rank) - state.sent, self.wire.taken(rank) - received)
        };
        (0..self.peers.len() as u32).map(count).collect()
    }
}

/// Whether all have spoken, and what each has sent to another is what that has taken.
fn matches(said: &[Option<Traffic>]) -> bool {
    let spoken: Option<Vec<&Traffic>> = said.iter().map(Option::as_ref).collect();
    spoken.is_some_and(|all| {
        let pairs = |from: usize| (0..all.len()).map(move |to| (from, to));
        (0..all.len()).flat_map(pairs).all(|(from, to)| all[from][to].0 == all[to][from].1)
    })
}
