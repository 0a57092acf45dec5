//! A sync on its way, and the future that waits for it.

use std::fmt::Write;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use talpf_runtime::PendingEvent;

use super::SyncMode;
use super::arrivals::RoundArrivals;
use crate::error::Error;
use crate::round::RoundState;

/// Where a sync is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Operations of this rank are not posted yet.
    Posting,
    /// Counts of other ranks are missing.
    Counting,
    /// Operations have not arrived yet.
    Arriving,
    /// In step `.0` of the barrier.
    Barrier(u32),
    /// Targets have not ended the previous round.
    Acknowledging,
    /// Something that arrived is still being carried out.
    Closing,
}

/// A sync that the engine carries on.
pub(crate) struct Request {
    pub(crate) round: Arc<RoundState>,
    pub(crate) mode: SyncMode,
    pub(crate) stage: Stage,
    /// Operations that are expected, by source; empty under `Msg`.
    pub(crate) expected: Vec<u32>,
    pub(crate) expected_total: u32,
    pub(crate) sent: Vec<u32>,
    pub(crate) ending: Ending,
}

impl Request {
    /// What it waits for.
    pub(crate) fn describe(&self, arrivals: Option<&RoundArrivals>, text: &mut String) {
        let _ = match (self.stage, arrivals) {
            (Stage::Posting, _) => {
                write!(text, "waits for {} operations to be posted", self.round.unposted())
            }
            (Stage::Counting, Some(arrivals)) => {
                let missing = arrivals.counts.iter().enumerate().filter(|(_, c)| c.is_none());
                let ranks: Vec<String> = missing.map(|(rank, _)| rank.to_string()).collect();
                write!(text, "waits for the counts of ranks {}", ranks.join(", "))
            }
            (Stage::Arriving, Some(arrivals)) => {
                let (total, expected) = (arrivals.total, self.expected_total);
                let _ = write!(text, "expects {expected} operations, {total} have arrived");
                if self.expected.is_empty() {
                    let sources =
                        arrivals.sources().map(|rank| (rank, arrivals.data[rank.index()]));
                    for (number, (rank, count)) in sources.enumerate() {
                        let separator = if number == 0 { ": " } else { ", " };
                        let _ = write!(text, "{separator}{count} from {rank}");
                    }
                }
                for (rank, (expected, arrived)) in
                    self.expected.iter().zip(&arrivals.data).enumerate()
                {
                    if arrived < expected {
                        let _ = write!(text, "; {} missing from rank {rank}", expected - arrived);
                    }
                }
                Ok(())
            }
            (Stage::Barrier(step), _) => {
                let (rank, ranks) =
                    (u64::from(self.round.rank.0), u64::from(self.round.world.size()));
                let before = (rank + ranks - (1 << step) % ranks) % ranks;
                write!(text, "is in step {step} of its barrier and waits for rank {before}")
            }
            (Stage::Acknowledging, _) => {
                text.write_str("waits for its targets to end the round before")
            }
            (Stage::Closing, _) => text.write_str("waits for operations to land"),
            (_, None) => Ok(()),
        };
    }
}

/// Who is told when a sync ends.
pub(crate) struct Ending {
    /// Holds the sync task.
    pub(crate) event: Option<PendingEvent>,
    pub(crate) outcome: Arc<Outcome>,
}

/// How a sync ended.
#[derive(Default)]
pub(crate) struct Outcome {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    result: Option<Result<(), Error>>,
    waker: Option<Waker>,
}

impl Ending {
    pub(crate) fn end(mut self, result: Result<(), Error>) {
        if let (Err(error), Some(event)) = (&result, self.event.take()) {
            event.fail(error.to_string());
        }
        self.outcome.set(result);
    }
}

impl Outcome {
    /// One that has failed before it began.
    pub(crate) fn failed(error: Error) -> Arc<Self> {
        let outcome = Outcome::default();
        outcome.set(Err(error));
        Arc::new(outcome)
    }

    fn set(&self, result: Result<(), Error>) {
        let mut state = self.state.lock();
        if state.result.is_none() {
            state.result = Some(result);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The result, if there is one.
    pub(crate) fn result(&self) -> Option<Result<(), Error>> {
        self.state.lock().result.clone()
    }

    /// The result, or the waker to call once there is one.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Result<(), Error>> {
        let mut state = self.state.lock();
        if state.result.is_none() {
            state.waker = Some(waker.clone());
        }
        state.result.clone()
    }
}

/// A sync whose task never ran: one that it depends on failed.
impl Drop for Ending {
    fn drop(&mut self) {
        self.outcome.set(Err(Error::Runtime(talpf_runtime::Error::ShutDown)));
    }
}
