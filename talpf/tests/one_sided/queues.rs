//! Remote queues: items come in order, in time, and until the last sender has ended.

use futures::future::{join_all, poll_immediate};
use futures::{SinkExt, StreamExt, stream};
use talpf::{Context, Error, QueueReceiver, QueueSender, Rank};

use crate::common;

/// Takes all items of a queue, with their sources.
async fn take_all<T: bytemuck::Pod + Send + Sync>(
    mut receiver: QueueReceiver<T>,
) -> Result<Vec<(Rank, T)>, Error> {
    let mut items = Vec::new();
    while let Some(item) = receiver.next().await {
        items.push((receiver.source().unwrap(), item?));
    }
    assert!(receiver.next().await.is_none(), "a stream that has ended stays so");
    Ok(items)
}

async fn send_all<T: bytemuck::Pod + Send + Sync>(
    mut sender: QueueSender<T>,
    items: impl Iterator<Item = T>,
) -> Result<(), Error> {
    sender.send_all(&mut stream::iter(items).map(Ok)).await?;
    sender.close().await
}

/// Returns the items of one source.
fn of<T: Copy>(source: u32, items: &[(Rank, T)]) -> Vec<T> {
    let of_source = items.iter().filter(|(rank, _)| *rank == Rank(source));
    of_source.map(|(_, item)| *item).collect()
}

#[test]
fn items_of_every_sender_come_in_their_order() {
    for (ranks, workers, capacity, items) in
        [(2, 1, 1, 20), (2, 2, 7, 500), (3, 1, 64, 2_000), (5, 2, 33, 300)]
    {
        let ends = common::run(common::config(ranks, workers), |ctx| async move {
            // The receiver sends, too.
            let queue = ctx.remote_queue::<u64>(0, 0..ranks, capacity).await?;
            let sent = send_all(queue.sender.unwrap(), 0..items);
            match queue.receiver {
                None => sent.await.map(|()| Vec::new()),
                Some(receiver) => {
                    let (sent, taken) = futures::join!(sent, take_all(receiver));
                    sent.and(taken)
                }
            }
        });
        let taken = &ends.unwrap()[0];
        for source in 0..ranks {
            assert_eq!(of(source, taken), Vec::from_iter(0..items), "{source} of {ranks}");
        }
    }
}

#[test]
fn items_of_any_size_are_whole() {
    fn check<T: bytemuck::Pod + Send + Sync + PartialEq + std::fmt::Debug>(
        item: impl Fn(u8) -> T + Copy + Send + Sync + 'static,
    ) {
        for capacity in [1, 3, 50] {
            let ends = common::run(common::config(2, 1), |ctx| async move {
                let queue = ctx.remote_queue::<T>(1, [0], capacity).await?;
                if let Some(sender) = queue.sender {
                    send_all(sender, (0..120).map(item)).await?;
                }
                match queue.receiver {
                    Some(receiver) => take_all(receiver).await,
                    None => Ok(Vec::new()),
                }
            });
            let expected = (0..120).map(|number| (Rank(0), item(number)));
            assert_eq!(ends.unwrap()[1], Vec::from_iter(expected), "{capacity}");
        }
    }
    check(|number| number);
    check(|number| [number; 3]);
    check(|number| [u64::from(number); 32]);
    // Longer than what a put copies, and than what travels with its claim.
    check(|number| [u64::from(number); 64]);
    check(|number| [u64::from(number); 1024]);
}

#[test]
fn a_sender_waits_while_its_ring_has_no_room() {
    for capacity in [1, 4, 100] {
        let ends = common::run(common::config(2, 1), |ctx| async move {
            let mut queue = ctx.remote_queue::<u32>(0, [1], capacity).await?;
            let notifications = ctx.notifications().clone();
            if ctx.rank() == Rank(0) {
                let receiver = queue.take_receiver()?;
                notifications.wait(0).await?;
                return Ok(take_all(receiver).await?.len());
            }
            let mut sender = queue.take_sender()?;
            for item in 0..capacity {
                let sent = poll_immediate(sender.send(item as u32)).await;
                sent.expect("there is room")?;
            }
            assert!(poll_immediate(sender.send(7)).await.is_none(), "there is no room");
            notifications.notify(0, 0, 0).await?;
            sender.flush().await?;
            Ok(0)
        });
        assert_eq!(ends.unwrap(), [capacity + 1, 0]);
    }
}

#[test]
fn a_sender_that_is_dropped_sends_what_it_has() {
    for (workers, items) in [(1, 0), (1, 3), (2, 40), (1, 41), (2, 200)] {
        let ends = common::run(common::config(3, workers), |ctx| async move {
            let queue = ctx.remote_queue::<u64>(2, 0..2, 40).await?;
            if let Some(mut sender) = queue.sender {
                for item in 0..items {
                    sender.feed(item).await?;
                }
                drop(sender);
            }
            match queue.receiver {
                Some(receiver) => take_all(receiver).await,
                None => Ok(Vec::new()),
            }
        });
        let taken = &ends.unwrap()[2];
        for source in 0..2 {
            assert_eq!(of(source, taken), Vec::from_iter(0..items));
        }
    }
}

#[test]
fn a_queue_without_senders_has_ended() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let mut queue = ctx.remote_queue::<u64>(1, std::iter::empty::<u32>(), 4).await?;
        assert!(queue.sender.is_none());
        if ctx.rank() == Rank(1) {
            assert_eq!(take_all(queue.take_receiver()?).await?, []);
        }
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn ends_are_used_by_tasks() {
    for workers in [1, 2] {
        let ends = common::run(common::config(3, workers), |ctx: Context| async move {
            // From each rank to the next, and so round.
            let mut queues = Vec::new();
            for receiver in 0..ctx.size() {
                let sender = (receiver + 2) % ctx.size();
                queues.push(ctx.remote_queue::<u64>(receiver, [sender], 8).await?);
            }
            let (rank, next) = (ctx.rank().0, (ctx.rank().0 + 1) % ctx.size());
            let sender = queues[next as usize].take_sender()?;
            let receiver = queues[rank as usize].take_receiver()?;
            let send = ctx.group().task("send");
            let items = (0..300).map(move |number| number * 3 + u64::from(rank));
            let sent = send.run_async(move || send_all(sender, items))?;
            let take = ctx.group().task("take").run_async(move || take_all(receiver))?;
            sent.await??;
            Ok(take.await??.into_iter().map(|(_, item)| item).collect::<Vec<_>>())
        });
        for (rank, taken) in ends.unwrap().into_iter().enumerate() {
            let source = (rank as u64 + 2) % 3;
            assert_eq!(taken, Vec::from_iter((0..300).map(|n| n * 3 + source)));
        }
    }
}

/// More queues than a rank has slots, each gone before the next.
#[test]
fn a_queue_that_has_ended_leaves_its_slot_to_others() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        for round in 0..100u64 {
            let queue = ctx.remote_queue::<u64>(0, [1], 2).await?;
            if let Some(sender) = queue.sender {
                send_all(sender, round..round + 3).await?;
            }
            if let Some(receiver) = queue.receiver {
                assert_eq!(of(1, &take_all(receiver).await?), [round, round + 1, round + 2]);
            }
        }
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn no_sender_starves_beside_others_that_send_more() {
    const ITEMS: [u64; 4] = [0, 5_000, 5_000, 10];
    let ends = common::run(common::config(4, 2), |ctx| async move {
        let queue = ctx.remote_queue::<u64>(0, 1..4, 64).await?;
        if let Some(sender) = queue.sender {
            send_all(sender, 0..ITEMS[ctx.rank().0 as usize]).await?;
        }
        match queue.receiver {
            Some(receiver) => take_all(receiver).await,
            None => Ok(Vec::new()),
        }
    });
    let taken = &ends.unwrap()[0];
    assert_eq!(taken.len() as u64, ITEMS.iter().sum());
    for source in 1..4 {
        assert_eq!(of(source, taken).len() as u64, ITEMS[source as usize]);
    }
}

/// Several queues at one rank, whose ends one body awaits together.
#[test]
fn queues_do_not_hold_each_other_up() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let mut queues = Vec::new();
        for _ in 0..5 {
            queues.push(ctx.remote_queue::<u64>(0, [1], 4).await?);
        }
        if ctx.rank() == Rank(1) {
            let senders = queues.into_iter().map(|queue| queue.sender.unwrap());
            let sent = senders.zip(1..).map(|(sender, number)| send_all(sender, 0..10 * number));
            join_all(sent).await.into_iter().collect::<Result<Vec<()>, _>>()?;
            return Ok(Vec::new());
        }
        let receivers = queues.into_iter().map(|queue| take_all(queue.receiver.unwrap()));
        let taken = join_all(receivers).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(taken.iter().map(Vec::len).collect())
    });
    assert_eq!(ends.unwrap()[0], [10, 20, 30, 40, 50]);
}
