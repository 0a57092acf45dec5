//! Messages of a rank's program, each sent or received by a task.

use talpf_runtime::operator::Operator;
use talpf_runtime::{Group, Region, Scope, fail_current_task};
use tampi_shim::{Communicator, Rank, Request, Tag, iwait};

use super::Waiting;
use crate::Error;

/// Communicator of a rank, and the method by which its tasks wait for messages.
#[derive(Clone)]
pub(crate) struct Messages {
    world: Communicator,
    waiting: Waiting,
}

/// Spawns a task that begins with the request that `$start` makes of its guard. A macro, since a
/// function would have to name the type of a task with an access.
macro_rules! spawn {
    ($waiting:expr, $task:expr, $start:expr) => {{
        let (task, start) = ($task.communicates(), $start);
        Ok(match $waiting {
            Waiting::Bound => task.spawn(move |data| bind(start(data))),
            Waiting::Suspended => task.spawn_async(move |data| await_end(start(data))),
        }?)
    }};
}

impl Messages {
    pub(super) fn new(world: Communicator, waiting: Waiting) -> Self {
        Self { world, waiting }
    }

    pub(crate) fn group(&self) -> &Group {
        self.world.group()
    }

    pub(super) fn rank(&self) -> usize {
        self.world.rank().0 as usize
    }

    pub(super) fn size(&self) -> usize {
        self.world.size() as usize
    }

    pub(super) async fn barrier(&self) -> Result<(), Error> {
        Ok(self.world.barrier().await?)
    }

    /// Declares the task that sends `region`. Messages to the same rank with the same tag arrive in
    /// the order in which their tasks run.
    pub(crate) fn declare_send<'a, D: 'static>(
        &self,
        scope: &impl Scope<'a>,
        region: &Region<'a, f64, D>,
        to: usize,
        tag: usize,
    ) -> Result<(), Error> {
        let (to, tag) = (Rank(to as u32), Tag(tag as u32));
        let (world, task) = (self.world.clone(), scope.task("send").input(region));
        spawn!(self.waiting, task, move |data| world.isend(data, to, tag))
    }

    /// Declares the task that receives into `region`.
    pub(crate) fn declare_receive<'a, D: 'static>(
        &self,
        scope: &impl Scope<'a>,
        region: &Region<'a, f64, D>,
        from: usize,
        tag: usize,
    ) -> Result<(), Error> {
        let (from, tag) = (Rank(from as u32), Tag(tag as u32));
        let (world, task) = (self.world.clone(), scope.task("receive").output(region));
        spawn!(self.waiting, task, move |data| world.irecv(data, from, tag))
    }

    /// Declares the task that replaces `region` by what its numbers at all ranks reduce to.
    pub(crate) fn declare_allreduce<'a, O: Operator<f64>>(
        &self,
        scope: &impl Scope<'a>,
        region: &Region<'a, f64>,
    ) -> Result<(), Error> {
        let combine = |mut left: f64, right: f64| {
            O::combine(&mut left, right);
            left
        };
        let (world, task) = (self.world.clone(), scope.task("allreduce").inout(region));
        spawn!(self.waiting, task, move |data| world.iallreduce(data, combine))
    }
}

/// Binds the end of the running task to `request`.
fn bind<B: Send + 'static>(request: Request<B>) {
    settle(iwait(request));
}

/// Suspends the running task until the end of `request`.
async fn await_end<B: Send + 'static>(request: Request<B>) {
    settle(request.await.map(drop));
}

/// Fails the running task with the error of its message, if any.
fn settle(result: Result<(), tampi_shim::Error>) {
    if let Err(error) = result {
        fail_current_task(error.to_string()).expect("called in a task");
    }
}
