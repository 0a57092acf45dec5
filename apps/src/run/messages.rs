//! Messages of a rank's program, each the doing of a task.

use talpf_runtime::{Group, Region, fail_current_task};
use tampi_shim::{Communicator, Rank, Tag, iwait};

use super::Waiting;
use crate::Error;

/// The world of a rank, and how its tasks wait for messages.
#[derive(Clone)]
pub(crate) struct Messages {
    world: Communicator,
    waiting: Waiting,
}

impl Messages {
    pub(super) fn new(world: Communicator, waiting: Waiting) -> Self {
        Self { world, waiting }
    }

    pub(super) fn group(&self) -> &Group {
        self.world.group()
    }

    pub(super) fn rank(&self) -> usize {
        self.world.rank().0 as usize
    }

    pub(super) fn ranks(&self) -> usize {
        self.world.size() as usize
    }

    pub(super) async fn barrier(&self) -> Result<(), Error> {
        Ok(self.world.barrier().await?)
    }

    /// Spawns the task that sends `region`. Messages to one rank with one tag arrive in the order
    /// in which their tasks run.
    pub(crate) fn spawn_send<D: 'static>(
        &self,
        region: &Region<'_, f64, D>,
        to: usize,
        tag: usize,
    ) -> Result<(), Error> {
        let Self { world, waiting } = self.clone();
        let (to, tag) = (Rank(to as u32), Tag(tag as u32));
        let task = self.group().task("send").input(region);
        Ok(task.spawn_async(async move |data| {
            settle(match waiting {
                Waiting::Bound => iwait(world.isend(data, to, tag)),
                Waiting::Suspended => world.send(data, to, tag).await.map(drop),
            });
        })?)
    }

    /// Spawns the task that receives into `region`.
    pub(crate) fn spawn_receive<D: 'static>(
        &self,
        region: &Region<'_, f64, D>,
        from: usize,
        tag: usize,
    ) -> Result<(), Error> {
        let Self { world, waiting } = self.clone();
        let (from, tag) = (Rank(from as u32), Tag(tag as u32));
        let task = self.group().task("receive").output(region);
        Ok(task.spawn_async(async move |data| {
            settle(match waiting {
                Waiting::Bound => iwait(world.irecv(data, from, tag)),
                Waiting::Suspended => world.recv(data, from, tag).await.map(drop),
            });
        })?)
    }
}

/// Fails the running task with what its message met.
fn settle(result: Result<(), tampi_shim::Error>) {
    if let Err(error) = result {
        fail_current_task(error.to_string()).expect("called in a task");
    }
}
