//! What does a message cost from task to task: when waiting hands the worker over, and when
//! operations are bound to tasks?

use std::time::Duration;

use talpf_runtime::{Array, fail_current_task};
use tampi_shim::{Buffer, Communicator, Error, Rank, Request, Tag, iwait};

use super::ranks::{exchange, other};
use super::repeat::Repeat;
use super::sizes::Value;

const TAG: Tag = Tag(0);

/// Hops of a rank that are spawned before it waits for them: how many pages the tasks of a run fill
/// is not the question.
const AHEAD: u64 = 64;

/// For two ranks on one worker: a receive always finds nothing, suspends its task and hands the
/// worker over to the task of the other rank.
pub(super) async fn hand_over(world: Communicator, budget: Duration) -> Result<Vec<Value>, Error> {
    Ok(vec![("handover_8B_ns".to_owned(), exchange(&world, budget, 8).await? * 1e9)])
}

/// Half of the time of a message to and fro. A task is bound to the receive, the next one counts
/// the hop, and one that is bound to the send follows.
pub(super) async fn bound(world: Communicator, budget: Duration) -> Result<Vec<Value>, Error> {
    let (group, is_first, other) = (world.group(), world.rank() == Rank(0), other(&world));
    let value = Array::new(group, vec![0u64], 1)?;
    let send = || {
        let (world, task) = (world.clone(), group.task("send").input(&value.all()));
        task.spawn(move |value| bind(world.isend(value, other, TAG)))
    };
    let mut hops = 0;
    let mut repeat = Repeat::new(&world, budget);
    while let Some(repetitions) = repeat.next().await? {
        for repetition in 0..repetitions {
            if repetition % AHEAD == AHEAD - 1 {
                group.wait().await?;
            }
            if is_first {
                send()?;
            }
            let (world, task) = (world.clone(), group.task("receive").output(&value.all()));
            task.spawn(move |value| bind(world.irecv(value, other, TAG)))?;
            group.task("count").inout(&value.all()).spawn(|mut value| value[0] += 1)?;
            if !is_first {
                send()?;
            }
        }
        group.wait().await?;
        hops += 2 * repetitions;
    }
    let last = group.task("read").input(&value.all()).run(|value| value[0])?.await?;
    assert_eq!(last, if is_first { hops } else { hops - 1 }, "hops of the message");
    Ok(vec![("tasks_8B_ns".to_owned(), repeat.seconds() / 2.0 * 1e9)])
}

fn bind<B: Buffer>(request: Request<B>) {
    if let Err(error) = iwait(request) {
        // In a task, so it cannot be refused.
        let _ = fail_current_task(error.to_string());
    }
}
