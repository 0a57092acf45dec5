//! A sync under way.

use std::fmt::Write;
use std::sync::Arc;

use talpf_runtime::PendingEvent;
use talpf_traces::counted;

use super::SyncMode;
use super::arrivals::RoundArrivals;
use super::dissemination::Plan;
use crate::double_buffered_channel::BufferGuards;
use crate::error::Error;
use crate::numbers::Rank;
use crate::sender::{RoundState, Sender};

/// The stage of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Operations of this rank are not posted yet.
    Posting,
    /// Counts, or operations that a barrier waits for, are not delivered yet.
    Delivering,
    /// In step `.0` of the exchange of counts.
    Counting(u32),
    /// Operations have not arrived yet.
    Arriving,
    /// In step `.0` of the barrier.
    Barrier(u32),
    /// Targets have not ended the previous round.
    Acknowledging,
    /// Something that arrived is still being carried out.
    Closing,
}

/// The result of an attempt to advance a sync.
pub(super) enum Progress {
    /// The sync enters its next stage.
    Next(Stage),
    /// The sync stays in its stage.
    Wait,
    /// The sync has ended.
    End,
}

/// Largest number of ranks whose barrier comes after their arrivals.
const FEW: u32 = 3;

/// A sync that the engine advances.
pub(crate) struct ActiveSync {
    pub(crate) round: Arc<RoundState>,
    pub(crate) mode: SyncMode,
    pub(crate) stage: Stage,
    /// Number of operations expected, once known.
    pub(crate) expected: u32,
    /// Pending event that holds the group, if no window does.
    pub(crate) event: Option<PendingEvent>,
    /// Guards that its end releases, if the sync is of a double-buffered channel.
    pub(crate) buffer_guards: Option<Arc<BufferGuards>>,
}

impl ActiveSync {
    /// Ends the sync with its result and wakes the tasks that wait for it. `sender` is its rank's.
    pub(crate) fn end(self, result: Result<(), Error>, sender: &Sender) {
        let ActiveSync { round, event, buffer_guards, .. } = self;
        match (buffer_guards, &result) {
            (Some(buffer_guards), Ok(())) => buffer_guards.end(round.number),
            // If the rank has not failed yet, the run is about to fail and releases the guards.
            (Some(buffer_guards), Err(error)) if sender.has_failed() => {
                buffer_guards.fail(&error.to_string().into());
            }
            _ => {}
        }
        if let (Err(error), Some(event)) = (&result, event) {
            event.fail(error.to_string());
        }
        sender.own.wait_flag.clear();
        if let Err(panic) = round.outcome.set(result) {
            sender.fail_foreign("a waker", &panic);
        }
        sender.open_rounds.recycle(round);
    }

    /// Describes what the sync waits for. `expects` returns the number of operations expected from
    /// a rank, if known; `absent` are the ranks that have not ended the round with a sync.
    pub(crate) fn describe(
        &self,
        arrivals: &RoundArrivals,
        expects: impl Fn(usize) -> Option<u32>,
        (absent, plan): (&[Rank], &Plan),
        text: &mut String,
    ) {
        let _ = match self.stage {
            Stage::Posting => {
                let operations = counted(self.round.unposted(), "operation");
                write!(text, "waits for {operations} to be posted")
            }
            Stage::Delivering | Stage::Counting(_) if !absent.is_empty() => {
                let ranks: Vec<String> = absent.iter().map(|rank| rank.0.to_string()).collect();
                let (counts, have) = match ranks.len() {
                    1 => ("count of rank", "has"),
                    _ => ("counts of ranks", "have"),
                };
                write!(
                    text,
                    "waits for the {counts} {}, which {have} not ended the round with a sync",
                    ranks.join(", ")
                )
            }
            Stage::Delivering => match self.round.parked.count() {
                0 => text.write_str("waits for its operations to land"),
                parked => {
                    let operations = counted(parked, "operation");
                    write!(text, "waits for {operations} to be let into windows")
                }
            },
            Stage::Counting(step) => {
                write!(text, "is in step {step} of the exchange of counts and waits for ")
                    .and_then(|()| write!(text, "{}", plan.source(step)))
            }
            Stage::Arriving => {
                let (total, expected) = (arrivals.total, counted(self.expected, "operation"));
                let have = if total == 1 { "has" } else { "have" };
                let _ = write!(text, "expects {expected}, {total} {have} arrived");
                for (rank, &arrived) in arrivals.data.iter().enumerate() {
                    match expects(rank) {
                        Some(expected) if arrived < expected => {
                            let _ =
                                write!(text, "; {} missing from rank {rank}", expected - arrived);
                        }
                        None if arrived > 0 => {
                            let _ = write!(text, ", {arrived} from rank {rank}");
                        }
                        _ => {}
                    }
                }
                Ok(())
            }
            Stage::Barrier(step) => {
                write!(text, "is in step {step} of its barrier and waits for {}", plan.source(step))
            }
            Stage::Acknowledging => text.write_str("waits for its targets to end the round before"),
            Stage::Closing => text.write_str("waits for operations to land"),
        };
    }
}

/// Returns `true` if the exchange of counts of a sync, if it has one, is its barrier as well.
pub(super) fn exchange_is_barrier(sync: &ActiveSync) -> bool {
    let sender = &sync.round.sender;
    sync.mode.barrier && sender.peers.len() > FEW && !sender.checks_conflicts
}
