//! What a run is, whatever application it runs.
//!
//! An application implements [`App`]: it names its [`Variant`]s and solves a [`Problem`] in each of
//! them. [`run`] checks that the problem fits the machine and solves it. The rest is what the
//! variants of all applications are made of: threads with a barrier, the ranks of a program with
//! tasks, steps that overlap, ranks that are slower than others.

mod app;
mod machine;
mod observer;
mod pace;
mod progress;
mod protocol;
mod ranks;
mod ring;
mod solution;
mod steps;
pub(crate) mod team;
mod variant;

pub use app::{App, Measure, Outcome, Problem, Work, run};
pub use machine::{Machine, Slowdown};
pub use observer::Observer;
pub use progress::Progress;
pub use solution::Solution;
pub use variant::Variant;

pub(crate) use pace::Pace;
pub(crate) use protocol::{Protocol, Transfer};
pub(crate) use ranks::{Part, on_ranks};
pub(crate) use ring::{Ring, Shape};
pub(crate) use steps::Steps;
