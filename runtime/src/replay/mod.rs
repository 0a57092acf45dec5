//! Graphs that repeat: one iteration is recorded, and replayed without discovery.
//!
//! [`Group::iterate`](crate::Group::iterate) has the tasks of one iteration declared. Their edges, within an iteration and
//! from one to the next, are found once ([`plan`]); a task then waits for a count of edges that is
//! set again in each iteration ([`replayed_task`]), so that consecutive iterations overlap as if
//! their tasks had been spawned. The group remembers the last graph: if the next one has the same
//! accesses its edges are used again.
//!
//! This room has its own edges in place of those of dependencies, and queues tasks in the scheduler
//! of their group as they do.
//!
//! Tasks outside the graph are ordered before or after it tile by tile ([`run`]).

mod bodies;
mod closed_accesses;
mod iteration;
mod passed_on;
mod plan;
mod replayed_task;
mod run;
mod waits;

pub use self::bodies::Each;
pub use self::iteration::Iteration;
pub(crate) use self::passed_on::pass_on;
pub(crate) use self::plan::Plan as RecordedPlan;
pub use self::replayed_task::current_step;
pub(crate) use self::replayed_task::{
    ReplayedTask, begin, close, close_all, close_here, complete, pause,
};
