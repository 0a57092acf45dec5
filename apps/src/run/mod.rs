//! Runs of applications.
//!
//! An application implements [`App`]: it names its [`Variant`]s and solves a [`Problem`] in each of
//! them. [`run`] checks that the problem fits the machine and solves it. The other modules are
//! shared by the variants of all applications: threads with a barrier, ranks of a program with
//! tasks, overlapping steps, slow ranks.

mod allreduce;
mod app;
mod communication;
mod context;
mod exchange;
mod gather;
pub mod hosts;
mod interrupt;
mod launched;
mod machine;
mod membership;
mod messages;
#[cfg(feature = "mpi")]
mod mpi_member;
mod observer;
mod overshoot;
pub mod processes;
mod progress;
mod rank_count;
mod rank_speed;
mod ranks;
mod replay;
mod ring;
mod solution;
pub(crate) mod team;
mod transport;
mod variant;
mod virtual_cores;

pub use app::{App, ForkJoin, Measure, Outcome, Problem, Serial, Tasks, Work, bytes, run};
pub use interrupt::Interrupt;
pub use launched::Launched;
pub use machine::{Dilation, Machine, SimulatedLink, Simulation, Slowdown};
pub use membership::{Links, Membership};
pub use observer::{Observer, OtherMetrics};
pub use overshoot::{Overshoot, OvershootSums};
pub use progress::Progress;
pub use rank_count::RankCount;
pub use solution::Solution;
pub use transport::Transport;
pub use variant::Variant;

pub(crate) use allreduce::Allreduce;
pub(crate) use communication::{Communication, Protocol, Transfer, Waiting};
pub(crate) use context::RankContext;
pub(crate) use exchange::{Exchange, Piece};
pub(crate) use messages::Messages;
pub(crate) use observer::ThreadTrace;
pub(crate) use rank_speed::{RankSpeed, spawn_on, spawn_once_on};
pub(crate) use ranks::{Part, RunInput, solve_on_ranks};
pub(crate) use replay::{LOOKAHEAD, Step, Steps, declare_count};
pub(crate) use ring::{Ring, Shape};
