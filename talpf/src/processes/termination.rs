//! Termination detection: finds that the run hangs, which no process alone can know.
//!
//! A process that is idle until another one sends to it reports so to all, with the number of
//! packets that it has sent to each process and taken from it. Once all have reported and all
//! counts match - each has taken as many packets as were sent to it - nothing is under way and no
//! process will ever send: the first to continue after its report could only do so for a packet
//! that was sent before its sender reported, and that is counted. A process that has continued
//! meanwhile reports again later, with other counts.
//!
//! **Source**: the channel counting of Mattern, *Algorithms for distributed termination detection*
//! (1987).

use std::sync::atomic::{AtomicU64, Ordering};

use talpf_primitives::Mutex;

use super::Processes;
use super::control_message::ControlMessage;

/// For each process, packets sent to it and taken from it, without the reports of this file.
type Traffic = Vec<(u64, u64)>;

/// The latest reports of all processes.
#[derive(Default)]
pub(super) struct TerminationDetector {
    /// Number of times that this process has handled everything that had arrived.
    passes: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of reports sent to each process.
    sent: u64,
    /// Numbers of reports received, by source.
    received: Vec<u64>,
    /// Counts of the previous check in this process, and the pass in which it was made.
    last: Option<(Traffic, u64)>,
    /// Latest report of each process, this one included.
    reports: Vec<Option<Traffic>>,
}

impl TerminationDetector {
    pub(super) fn new(processes: u32) -> Self {
        let count = processes as usize;
        let state =
            State { received: vec![0; count], reports: vec![None; count], ..State::default() };
        TerminationDetector { passes: AtomicU64::new(0), state: Mutex::new(state) }
    }

    /// Notes that everything that had arrived has been handled, for the thread that does this.
    pub(super) fn note_pass(&self) {
        let passes = self.passes.load(Ordering::Relaxed) + 1;
        self.passes.store(passes, Ordering::Release);
    }

    /// Takes in the report of a process. Returns `false` if it is malformed.
    pub(super) fn receive(&self, from: u32, bytes: &[u8]) -> bool {
        let from = from as usize;
        let (words, rest) = bytes.as_chunks();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let mut state = self.state.lock();
        let fits = rest.is_empty() && words.len() == 2 * state.reports.len();
        if fits {
            state.received[from] += 1;
            state.reports[from] = Some(words.chunks(2).map(|of| (of[0], of[1])).collect());
        }
        fits
    }
}

impl Processes {
    /// Returns `true` if the whole run has come to a stop for ever. Called repeatedly while this
    /// process is idle; sends a report to the others once the counts are stable.
    pub(crate) fn is_terminated(&self) -> bool {
        // A polling task that sleeps makes no passes.
        self.events.wake();
        let passes = self.termination.passes.load(Ordering::Acquire);
        let mut state = self.termination.state.lock();
        let traffic = self.traffic(&state);
        // Stable once two passes have handled whatever had arrived at the count, without effect.
        let is_stable = state
            .last
            .as_ref()
            .is_some_and(|(before, pass)| *before == traffic && passes >= pass + 2);
        if !is_stable {
            state.last = Some((traffic, passes));
            return false;
        }
        let report = &mut state.reports[self.distribution.process() as usize];
        if report.as_ref() != Some(&traffic) {
            let words = traffic.iter().flat_map(|(sent, taken)| [*sent, *taken]);
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            *report = Some(traffic);
            state.sent += 1;
            self.send_to_all(self.speaker(), ControlMessage::Idle(&bytes));
        }
        matches(&state.reports)
    }

    /// As [`Processes::is_terminated`], for a process that has ended, once another has sent a report.
    pub(super) fn join_termination(&self) {
        if self.termination.state.lock().received.iter().any(|count| *count > 0) {
            self.is_terminated();
        }
    }

    fn traffic(&self, state: &State) -> Traffic {
        let count = |process: u32| {
            if process == self.distribution.process() {
                return (0, 0);
            }
            let received = state.received[process as usize];
            let (sent, taken) = self.device.traffic(process);
            (sent - state.sent, taken - received)
        };
        (0..self.distribution.processes()).map(count).collect()
    }
}

/// Returns `true` if all have reported, and each has taken as many packets as were sent to it.
fn matches(reports: &[Option<Traffic>]) -> bool {
    let all: Option<Vec<&Traffic>> = reports.iter().map(Option::as_ref).collect();
    all.is_some_and(|all| {
        let pairs = |from: usize| (0..all.len()).map(move |to| (from, to));
        (0..all.len()).flat_map(pairs).all(|(from, to)| all[from][to].0 == all[to][from].1)
    })
}
