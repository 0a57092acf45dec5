//! Variants of the applications' execution.

use talpf::SyncMode;

use super::{Communication, Machine, Transport, Waiting};
use crate::Error;

/// Distribution of the work of a step, and synchronisation of the steps. No application has all
/// variants:
/// [`App::VARIANTS`](super::App::VARIANTS) lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// A single thread.
    Serial,
    /// Threads with a barrier.
    ForkJoin,
    /// Tasks that end in a barrier, then puts and a sync of all slots: plain BSP.
    Lpf,
    /// Tasks and puts; default syncs.
    TalpfDefault,
    /// Tasks and puts; cached syncs.
    TalpfCached,
    /// Tasks and puts; cached syncs with a barrier.
    TalpfCachedBarrier,
    /// Tasks and puts; cached syncs with acknowledgements.
    TalpfCachedAck,
    /// Tasks and puts that are not checked at their target; cached syncs.
    TalpfRawCached,
    /// Tasks and puts; syncs for which the program gives the number of arrivals.
    TalpfMsg,
    /// Tasks and gets; default syncs.
    TalpfGet,
    /// Tasks and puts on several lanes; syncs for which the program gives the number of arrivals.
    TalpfLanes,
    /// Tasks and puts that notify their targets, without rounds.
    TalpfNotify,
    /// Tasks that a master gives out over remote queues.
    TalpfQueue,
    /// Tasks bound to messages.
    Tampi,
    /// Tasks that are suspended until their messages complete.
    TampiBlocking,
}

impl Variant {
    /// Returns the name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::ForkJoin => "fork-join",
            Self::Lpf => "lpf",
            Self::TalpfDefault => "talpf-default",
            Self::TalpfCached => "talpf-cached",
            Self::TalpfCachedBarrier => "talpf-cached-barrier",
            Self::TalpfCachedAck => "talpf-cached-ack",
            Self::TalpfRawCached => "talpf-raw-cached",
            Self::TalpfMsg => "talpf-msg",
            Self::TalpfGet => "talpf-get",
            Self::TalpfLanes => "talpf-lanes",
            Self::TalpfNotify => "talpf-notify",
            Self::TalpfQueue => "talpf-queue",
            Self::Tampi => "tampi",
            Self::TampiBlocking => "tampi-blocking",
        }
    }

    /// Returns a description of one line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Serial => "One thread and no synchronisation: the reference for all others",
            Self::ForkJoin => "Threads, one for each part of the work, and barriers",
            Self::Lpf => "Tasks that end in a barrier; then queued puts and a sync, as in LPF",
            Self::TalpfDefault => {
                "Tasks; puts; counts exchanged and a barrier at the end of every round"
            }
            Self::TalpfCached => "Tasks; puts; counts exchanged once",
            Self::TalpfCachedBarrier => "As talpf-cached, with a barrier in every round",
            Self::TalpfCachedAck => {
                "As talpf-cached, with targets that acknowledge the previous round"
            }
            Self::TalpfRawCached => {
                "Tasks; puts that are not checked at their target; counts exchanged once"
            }
            Self::TalpfMsg => "Tasks; puts; every rank knows its number of arrivals",
            Self::TalpfGet => "Tasks; gets; counts exchanged and a barrier in every round",
            Self::TalpfLanes => {
                "Tasks; puts; a lane for each moving part; every rank knows its number of arrivals"
            }
            Self::TalpfNotify => {
                "Tasks; puts without rounds; each notifies the tasks that wait for its data"
            }
            Self::TalpfQueue => "Tasks that a master gives out over remote queues, without rounds",
            Self::Tampi => "Tasks; messages; a task completes together with its message",
            Self::TampiBlocking => {
                "Tasks; messages; a task is suspended until its message completes"
            }
        }
    }

    /// Returns the variant with this name among `variants`.
    pub fn by_name(name: &str, variants: &[Self]) -> Option<Self> {
        variants.iter().copied().find(|variant| variant.name() == name)
    }

    /// Returns `true` if the variant runs on several ranks.
    pub fn has_ranks(self) -> bool {
        self.communication().is_some()
    }

    /// Returns `true` if the variant can run in virtual time: it has ranks.
    pub fn is_simulated(self) -> bool {
        self.has_ranks()
    }

    /// Returns `true` if the ranks of the variant send messages.
    pub fn is_two_sided(self) -> bool {
        matches!(self.communication(), Some(Communication::TwoSided(_)))
    }

    /// Estimates the bytes of the connections between its ranks on one machine.
    pub(crate) fn connections_bytes(self, machine: Machine) -> u64 {
        match (self.communication(), machine.transport()) {
            (Some(communication), Transport::Verbs) => {
                communication.connections_bytes(machine.ranks() as u32)
            }
            _ => 0,
        }
    }

    /// Estimates the bytes of the tasks that the ranks of a process have spawned ahead: as many as the throttle
    /// lets them, up to 65,536. Without a throttle the programs are still a few steps ahead only, and the default is
    /// counted.
    ///
    /// **Errors**: an invalid setting in the environment.
    pub(crate) fn live_task_bytes(self, machine: Machine) -> Result<u64, Error> {
        /// Bytes of a task, as `talpf-bench memory` measures them.
        const TASK: u64 = 512;
        /// Most tasks of a rank that count.
        const MOST: usize = 1 << 16;
        if !self.has_ranks() {
            return Ok(0);
        }
        let throttle = match machine.settings().runtime()?.throttle {
            usize::MAX => talpf_runtime::Config::default().throttle,
            throttle => throttle.min(MOST),
        };
        Ok(machine.ranks_here().len() as u64 * throttle as u64 * TASK)
    }

    /// Returns the communication of the ranks; `None` for a variant without ranks.
    pub(crate) fn communication(self) -> Option<Communication> {
        match self {
            Self::Serial | Self::ForkJoin => None,
            Self::Lpf => Some(Communication::queued_put()),
            Self::TalpfDefault => Some(Communication::put(SyncMode::DEFAULT)),
            Self::TalpfCached | Self::TalpfRawCached => Some(Communication::put(SyncMode::CACHED)),
            Self::TalpfCachedBarrier => Some(Communication::put(SyncMode::CACHED.with_barrier())),
            Self::TalpfCachedAck => Some(Communication::put(SyncMode::CACHED.with_ack())),
            Self::TalpfMsg | Self::TalpfLanes => Some(Communication::put(SyncMode::msg(0))),
            Self::TalpfNotify | Self::TalpfQueue => Some(Communication::notified_put()),
            Self::TalpfGet => Some(Communication::get(SyncMode::DEFAULT)),
            Self::Tampi => Some(Communication::TwoSided(Waiting::Bound)),
            Self::TampiBlocking => Some(Communication::TwoSided(Waiting::Suspended)),
        }
    }
}
