//! Random programs with queues give the items of each sender in order, whatever the speeds of the
//! ends, and whichever are dropped.

use bytemuck::Pod;
use futures::future::{BoxFuture, join_all};
use futures::{SinkExt, StreamExt};
use proptest::prelude::*;
use talpf::{Config, Context, Error, QueueError, QueueReceiver, QueueSender, Rank};

use crate::common;

/// An item that is made of a number.
trait Item: Pod + Send + Sync + PartialEq {
    fn of(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Item for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

/// Longer than what a put copies.
impl Item for [u64; 64] {
    fn of(number: u64) -> Self {
        [number; 64]
    }

    fn number(&self) -> u64 {
        self[17]
    }
}

#[derive(Clone, Debug)]
struct Queue {
    receiver: u32,
    capacity: usize,
    is_long: bool,
    senders: Vec<Sender>,
    /// Number of items after which the receiver is dropped.
    drops_after: Option<usize>,
    /// The receiver yields after so many items.
    pause: usize,
}

#[derive(Clone, Debug)]
struct Sender {
    rank: u32,
    items: usize,
    /// The sender flushes after so many items.
    flush: usize,
    /// The sender yields after so many items.
    pause: usize,
    /// `true` if it is closed, and not only dropped.
    closes: bool,
}

#[derive(Clone, Debug)]
struct Program {
    ranks: u32,
    workers: usize,
    credits: usize,
    queues: Vec<Queue>,
}

fn program() -> impl Strategy<Value = Program> {
    let sender = (any::<prop::sample::Index>(), 0..150usize, 1..40usize, 1..60usize, any::<bool>());
    let drops = prop::option::weighted(0.2, 0..100usize);
    let queue = (
        any::<prop::sample::Index>(),
        prop::sample::select(vec![1, 2, 5, 32, 33, 200]),
        any::<bool>(),
        prop::collection::vec(sender, 0..5),
        drops,
        1..60usize,
    );
    (1..5u32, 1..3usize, 1..4usize, prop::collection::vec(queue, 1..4)).prop_map(
        |(ranks, workers, credits, queues)| {
            let rank = |index: prop::sample::Index| index.index(ranks as usize) as u32;
            let queue = |(receiver, capacity, is_long, senders, drops_after, pause)| {
                let sender = |(of, items, flush, pause, closes)| Sender {
                    rank: rank(of),
                    items,
                    flush,
                    pause,
                    closes,
                };
                let senders: Vec<_> = senders;
                let mut senders: Vec<Sender> = senders.into_iter().map(sender).collect();
                senders.sort_by_key(|sender| sender.rank);
                senders.dedup_by_key(|sender| sender.rank);
                Queue { receiver: rank(receiver), capacity, is_long, senders, drops_after, pause }
            };
            let queues = queues.into_iter().map(queue).collect();
            Program { ranks, workers, credits, queues }
        },
    )
}

/// Lets other tasks run.
async fn pause(ctx: &Context) {
    ctx.group().wait_for(std::time::Duration::from_nanos(1)).await;
}

async fn send<T: Item>(
    ctx: &Context,
    of: Option<&Sender>,
    sender: Option<QueueSender<T>>,
) -> Result<(), Error> {
    let Some((of, mut sender)) = of.zip(sender) else {
        return Ok(());
    };
    for item in 1..=of.items {
        sender.feed(T::of(item as u64)).await?;
        if item % of.flush == 0 {
            sender.flush().await?;
        }
        if item % of.pause == 0 {
            pause(ctx).await;
        }
    }
    if of.closes { sender.close().await } else { Ok(()) }
}

async fn receive<T: Item>(
    ctx: &Context,
    of: &Queue,
    receiver: Option<QueueReceiver<T>>,
) -> Result<Vec<(Rank, u64)>, Error> {
    let mut taken = Vec::new();
    let Some(mut receiver) = receiver else {
        return Ok(taken);
    };
    while of.drops_after.is_none_or(|items| taken.len() < items)
        && let Some(item) = receiver.next().await
    {
        let item = item?;
        assert!(item == T::of(item.number()), "the item {} is torn", item.number());
        taken.push((receiver.source().unwrap(), item.number()));
        if taken.len() % of.pause == 0 {
            pause(ctx).await;
        }
    }
    Ok(taken)
}

/// The outcome of a queue at one rank: what was taken, and the error of its sender.
type Outcome = (Vec<(Rank, u64)>, Option<Error>);

/// Makes a queue. Returns what this rank does with its ends.
async fn make<'a, T: Item>(
    ctx: &'a Context,
    of: &'a Queue,
) -> Result<BoxFuture<'a, Result<Outcome, Error>>, Error> {
    let ranks = of.senders.iter().map(|sender| sender.rank);
    let queue = ctx.remote_queue::<T>(of.receiver, ranks, of.capacity).await?;
    let own = of.senders.iter().find(|sender| Rank(sender.rank) == ctx.rank());
    Ok(Box::pin(async move {
        let (sent, taken) =
            futures::join!(send(ctx, own, queue.sender), receive(ctx, of, queue.receiver));
        Ok((taken?, sent.err()))
    }))
}

async fn run(ctx: Context, program: Program) -> Result<Vec<Outcome>, Error> {
    let mut ends = Vec::new();
    for of in &program.queues {
        ends.push(match of.is_long {
            true => make::<[u64; 64]>(&ctx, of).await?,
            false => make::<u64>(&ctx, of).await?,
        });
    }
    join_all(ends).await.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn a_program_takes_the_items_of_its_senders_in_order(program in program()) {
        let Program { ranks, workers, credits, .. } = program;
        let config = Config { credits, ..common::config(ranks, workers) };
        let ends = common::run(config, |ctx| run(ctx, program.clone())).unwrap();
        for (number, queue) in program.queues.iter().enumerate() {
            let (taken, _) = &ends[queue.receiver as usize][number];
            let all = queue.senders.iter().map(|sender| sender.items).sum::<usize>();
            let count = queue.drops_after.unwrap_or(all).min(all);
            prop_assert_eq!(taken.len(), count, "queue {}", number);
            for sender in &queue.senders {
                let of_sender = taken.iter().filter(|(rank, _)| *rank == Rank(sender.rank));
                let items: Vec<u64> = of_sender.map(|(_, item)| *item).collect();
                prop_assert_eq!(&items, &Vec::from_iter(1..=items.len() as u64));
                let error = &ends[sender.rank as usize][number].1;
                let is_dropped = |error: &Error| match error {
                    Error::Queue(QueueError::ReceiverDropped { rank, receiver }) => {
                        (rank.0, receiver.0) == (sender.rank, queue.receiver)
                    }
                    _ => false,
                };
                let may_fail = queue.drops_after.is_some();
                let is_fine = error.as_ref().is_none_or(|error| may_fail && is_dropped(error));
                prop_assert!(is_fine, "{:?}", error);
            }
        }
    }
}
