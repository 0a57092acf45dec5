//! Cost of a message from task to task: with tasks suspended at a receive, and with operations
//! bound to tasks.

use std::collections::VecDeque;
use std::time::Duration;

use talpf_runtime::{Array, InOut, Out, fail_current_task};
use tampi_shim::{Buffer, Communicator, Error, Rank, Request, Tag, iwait};

use super::ranks::{exchange, other};
use super::repeat::Repeat;
use super::sizes::Value;

const TAG: Tag = Tag(0);

/// Messages of a rank that may be spawned and not sent. Most of these wait while the other rank has
/// the message.
const AHEAD: usize = 64;

/// Measures two ranks on one worker: every receive suspends its task and hands the worker over to
/// the task of the other rank.
pub(super) async fn hand_over(world: Communicator, budget: Duration) -> Result<Vec<Value>, Error> {
    Ok(vec![("handover_8B_ns".to_owned(), exchange(&world, budget, 8).await? * 1e9)])
}

/// Measures half of the round-trip time of a message that counts its hops: one task is bound to the
/// receive, the next one increments the count and is bound to the send. First the tasks are spawned
/// one by one, then they are declared once and replayed.
pub(super) async fn bound(world: Communicator, budget: Duration) -> Result<Vec<Value>, Error> {
    let message = Message::new(world)?;
    let values = [
        ("tasks_8B_ns".to_owned(), spawned(&message, budget).await? * 1e9),
        ("replayed_8B_ns".to_owned(), replayed(&message, budget).await? * 1e9),
    ];
    Ok(values.into())
}

async fn spawned(message: &Message, budget: Duration) -> Result<f64, Error> {
    let group = message.world.group();
    let send = || {
        let (ends, task) = (message.ends(), group.task("send").inout(&message.hops.all()));
        task.run(move |hops| ends.send(hops))
    };
    let receive = || {
        let (ends, task) = (message.ends(), group.task("receive").output(&message.hops.all()));
        task.spawn(move |hops| ends.receive(hops))
    };
    let mut repeat = Repeat::new(&message.world, budget);
    while let Some(repetitions) = repeat.next().await? {
        let mut sends = VecDeque::new();
        for _ in 0..repetitions {
            if sends.len() == AHEAD
                && let Some(first) = sends.pop_front()
            {
                first.await?;
            }
            if message.starts_here() {
                sends.push_back(send()?);
                receive()?;
            } else {
                receive()?;
                sends.push_back(send()?);
            }
        }
        message.arrived(2 * repetitions).await?;
    }
    Ok(repeat.seconds() / 2.0)
}

async fn replayed(message: &Message, budget: Duration) -> Result<f64, Error> {
    let group = message.world.group();
    let mut repeat = Repeat::new(&message.world, budget);
    while let Some(repetitions) = repeat.next().await? {
        group.iterate(repetitions as usize, |iteration| {
            let send = || {
                let (ends, task) =
                    (message.ends(), iteration.task("send").inout(&message.hops.all()));
                task.spawn(move |hops| ends.send(hops))
            };
            let receive = || {
                let ends = message.ends();
                let task = iteration.task("receive").output(&message.hops.all());
                task.spawn(move |hops| ends.receive(hops))
            };
            if message.starts_here() {
                send()?;
                receive()
            } else {
                receive()?;
                send()
            }
        })?;
        message.arrived(2 * repetitions).await?;
    }
    Ok(repeat.seconds() / 2.0)
}

/// Number that two ranks send to each other.
struct Message {
    world: Communicator,
    hops: Array<u64>,
}

/// State shared by the tasks of a message.
struct Ends {
    world: Communicator,
    other: Rank,
}

impl Message {
    fn new(world: Communicator) -> Result<Self, Error> {
        let hops = Array::new(world.group(), vec![0], 1)?;
        Ok(Message { world, hops })
    }

    fn ends(&self) -> Ends {
        Ends { world: self.world.clone(), other: other(&self.world) }
    }

    fn starts_here(&self) -> bool {
        self.world.rank() == Rank(0)
    }

    /// Waits for the tasks, and checks the number of hops of the message.
    async fn arrived(&self, hops: u64) -> Result<(), Error> {
        let group = self.world.group();
        group.wait().await?;
        let task = group.task("read").inout(&self.hops.all());
        let made = task.run(|mut hops| std::mem::take(&mut hops[0]))?.await?;
        assert_eq!(made, hops, "hops of the message");
        Ok(())
    }
}

impl Ends {
    fn send(&self, mut hops: InOut<u64>) {
        hops[0] += 1;
        bind(self.world.isend(hops, self.other, TAG));
    }

    fn receive(&self, hops: Out<u64>) {
        bind(self.world.irecv(hops, self.other, TAG));
    }
}

fn bind<B: Buffer>(request: Request<B>) {
    if let Err(error) = iwait(request) {
        // Succeeds, since this runs in a task.
        let _ = fail_current_task(error.to_string());
    }
}
