//! The ways to run an application.

use talpf::SyncMode;

use super::{Communication, Machine, Transport, Waiting};

/// How the work of a step is spread and how the steps are kept in order. No application has all
/// of them: [`App::VARIANTS`](super::App::VARIANTS) says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// One thread.
    Serial,
    /// Threads with a barrier.
    ForkJoin,
    /// Tasks and puts; default syncs.
    TalpfDefault,
    /// Tasks and puts; cached syncs.
    TalpfCached,
    /// Tasks and puts; cached syncs with a barrier.
    TalpfCachedBarrier,
    /// Tasks and puts; cached syncs with acknowledgements.
    TalpfCachedAck,
    /// Tasks and puts that nothing checks at their target; cached syncs.
    TalpfRawCached,
    /// Tasks and puts; syncs that are told the number of arrivals.
    TalpfMsg,
    /// Tasks and gets; default syncs.
    TalpfGet,
    /// Tasks and puts on several lanes; syncs that are told the number of arrivals.
    TalpfLanes,
    /// Tasks and messages, to which the tasks are bound.
    Tampi,
    /// Tasks and messages, for which the tasks are suspended.
    TampiBlocking,
}

impl Variant {
    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::ForkJoin => "fork-join",
            Self::TalpfDefault => "talpf-default",
            Self::TalpfCached => "talpf-cached",
            Self::TalpfCachedBarrier => "talpf-cached-barrier",
            Self::TalpfCachedAck => "talpf-cached-ack",
            Self::TalpfRawCached => "talpf-raw-cached",
            Self::TalpfMsg => "talpf-msg",
            Self::TalpfGet => "talpf-get",
            Self::TalpfLanes => "talpf-lanes",
            Self::Tampi => "tampi",
            Self::TampiBlocking => "tampi-blocking",
        }
    }

    /// What it does, in a line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Serial => "One thread and no synchronisation: the reference for all others",
            Self::ForkJoin => "A thread for each part of the work, and barriers",
            Self::TalpfDefault => {
                "Tasks; puts; counts exchanged and a barrier at the end of every round"
            }
            Self::TalpfCached => "Tasks; puts; counts exchanged once",
            Self::TalpfCachedBarrier => "As talpf-cached, and a barrier in every round",
            Self::TalpfCachedAck => "As talpf-cached, and targets acknowledge the round before",
            Self::TalpfRawCached => "Tasks; puts that no window checks; counts exchanged once",
            Self::TalpfMsg => "Tasks; puts; every rank knows how many arrive",
            Self::TalpfGet => "Tasks; gets; counts exchanged and a barrier in every round",
            Self::TalpfLanes => {
                "Tasks; puts; a lane for each part that moves, and every rank knows how many arrive"
            }
            Self::Tampi => "Tasks; messages, with which the tasks complete",
            Self::TampiBlocking => "Tasks; messages, for which the tasks are suspended",
        }
    }

    /// The same variant by its name among `variants`.
    pub fn by_name(name: &str, variants: &[Self]) -> Option<Self> {
        variants.iter().copied().find(|variant| variant.name() == name)
    }

    /// Whether it runs on several ranks.
    pub fn has_ranks(self) -> bool {
        self.communication().is_some()
    }

    /// Bytes of what connects its ranks on one machine, about.
    pub(crate) fn connections_bytes(self, machine: Machine) -> u64 {
        match (self.communication(), machine.transport()) {
            (Some(communication), Transport::Verbs) => {
                communication.connections_bytes(machine.ranks() as u32)
            }
            _ => 0,
        }
    }

    /// How its ranks communicate; `None` for a variant without ranks.
    pub(crate) fn communication(self) -> Option<Communication> {
        match self {
            Self::Serial | Self::ForkJoin => None,
            Self::TalpfDefault => Some(Communication::put(SyncMode::DEFAULT)),
            Self::TalpfCached | Self::TalpfRawCached => Some(Communication::put(SyncMode::CACHED)),
            Self::TalpfCachedBarrier => Some(Communication::put(SyncMode::CACHED.with_barrier())),
            Self::TalpfCachedAck => Some(Communication::put(SyncMode::CACHED.with_ack())),
            Self::TalpfMsg | Self::TalpfLanes => Some(Communication::put(SyncMode::msg(0))),
            Self::TalpfGet => Some(Communication::get(SyncMode::DEFAULT)),
            Self::Tampi => Some(Communication::TwoSided(Waiting::Bound)),
            Self::TampiBlocking => Some(Communication::TwoSided(Waiting::Suspended)),
        }
    }
}
