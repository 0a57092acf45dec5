//! Ends of remote queues that are lost, misused or left over: errors that name the ranks.

use std::sync::{Arc, Mutex};

use futures::future::poll_immediate;
use futures::{SinkExt, StreamExt};
use talpf::{Error, QueueError, Rank};

use crate::common::{self, says};

/// Asserts that the error of a rank is that of its queue with these parts, or that of the run.
fn queue_failed(error: &Error, parts: &[&str]) {
    if !matches!(error, Error::PeerFailed { .. }) {
        assert!(matches!(error, Error::Queue(QueueError::Failed { .. })), "{error:?}");
        says(error, parts);
    }
}

#[test]
fn arguments_that_cannot_be_are_refused_and_the_run_goes_on() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let empty = ctx.remote_queue::<u64>(0, [1], 0).await;
        says(&empty.unwrap_err(), &["ring", "0", "at least 1"]);
        let large = ctx.remote_queue::<u64>(0, [1], (1 << 28) + 1).await;
        says(&large.unwrap_err(), &["ring", "268435457", "at most 268435456"]);
        let nobody = ctx.remote_queue::<u64>(2, [1], 4).await;
        says(&nobody.unwrap_err(), &["rank 2", "2 ranks"]);
        let nobody = ctx.remote_queue::<u64>(0, [1, 7], 4).await;
        says(&nobody.unwrap_err(), &["rank 7", "2 ranks"]);
        ctx.remote_queue::<u64>(0, [1], 4).await.map(drop)
    });
    ends.unwrap();
}

#[test]
fn arguments_that_differ_are_an_error_at_all_ranks() {
    for what in ["receiver", "capacity", "size of an item", "senders"] {
        let ends = common::run(common::config(3, 1), move |ctx| async move {
            let differs = ctx.rank() == Rank(2);
            let error = match what {
                "receiver" if differs => ctx.remote_queue::<u64>(1, [1], 4).await.err(),
                "capacity" if differs => ctx.remote_queue::<u64>(0, [1], 5).await.err(),
                "size of an item" if differs => ctx.remote_queue::<u32>(0, [1], 4).await.err(),
                "senders" if differs => ctx.remote_queue::<u64>(0, [2], 4).await.err(),
                _ => ctx.remote_queue::<u64>(0, [1], 4).await.err(),
            };
            let other = if differs { "rank 0" } else { "rank 2" };
            says(&error.unwrap(), &["remote_queue", what, other]);
            Ok(())
        });
        ends.unwrap();
    }
}

#[test]
fn an_end_that_a_rank_does_not_have_is_an_error() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let mut queue = ctx.remote_queue::<u64>(0, [1], 4).await?;
        match ctx.rank() {
            Rank(0) => {
                says(
                    &queue.take_sender().unwrap_err(),
                    &["rank 0 has no sender", "queue of rank 0"],
                );
                drop(queue.take_receiver()?);
                says(&queue.take_receiver().unwrap_err(), &["rank 0 has no receiver"]);
            }
            _ => {
                says(&queue.take_receiver().unwrap_err(), &["rank 1 has no receiver"]);
                queue.take_sender()?.close().await?;
            }
        }
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn an_item_after_the_end_is_an_error() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let mut queue = ctx.remote_queue::<u64>(0, [1], 4).await?;
        if let Some(sender) = &mut queue.sender {
            sender.send(1).await?;
            sender.close().await?;
            says(&sender.send(2).await.unwrap_err(), &["rank 1", "queue of rank 0", "closed"]);
            sender.close().await?;
        }
        if let Some(receiver) = &mut queue.receiver {
            assert_eq!(receiver.next().await.unwrap()?, 1);
            assert!(receiver.next().await.is_none());
        }
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn a_receiver_that_is_dropped_ends_its_senders() {
    for workers in [1, 2] {
        let ends = common::run(common::config(3, workers), |ctx| async move {
            let queue = ctx.remote_queue::<u64>(1, [0, 2], 3).await?;
            if let Some(mut receiver) = queue.receiver {
                assert!(receiver.next().await.unwrap().is_ok());
                return Ok(());
            }
            let mut sender = queue.sender.unwrap();
            let error = loop {
                if let Err(error) = sender.send(5).await {
                    break error;
                }
            };
            let own = format!("{}", ctx.rank());
            for error in
                [error, sender.send(6).await.unwrap_err(), sender.close().await.unwrap_err()]
            {
                assert!(matches!(
                    error,
                    Error::Queue(QueueError::ReceiverDropped { receiver: Rank(1), .. })
                ));
                says(&error, &[&own, "queue of rank 1", "dropped"]);
            }
            Ok(())
        });
        ends.unwrap();
    }
}

#[test]
fn a_sender_lost_in_a_panic_is_an_error_and_others_go_on() {
    common::quiet_panics();
    let ends = common::run(common::unwatched(3, 2), |ctx| async move {
        let queue = ctx.remote_queue::<u64>(0, [1, 2], 8).await?;
        if let Some(mut receiver) = queue.receiver {
            let (mut items, mut errors) = (Vec::new(), Vec::new());
            while let Some(item) = receiver.next().await {
                match item {
                    Ok(item) => items.push(item),
                    Err(error) => errors.push(error),
                }
            }
            items.sort_unstable();
            let [error] = &errors[..] else { panic!("{errors:?}") };
            says(error, &["rank 0", "rank 1", "panicked"]);
            return Ok(items);
        }
        let (mut sender, rank) = (queue.sender.unwrap(), ctx.rank());
        let task = ctx.group().task("send").run_async(move || async move {
            sender.send(10 * u64::from(rank.0)).await.unwrap();
            assert!(rank != Rank(1), "broken");
            sender.send(21).await.unwrap();
        })?;
        let _ = task.await;
        Ok(Vec::new())
    });
    // The run may report the panic of the task.
    match ends {
        Ok(ends) => assert_eq!(ends[0], [10, 20, 21]),
        Err(error) => says(&error, &["broken"]),
    }
}

#[test]
fn ends_fail_with_the_rank_that_failed() {
    for failing in [0, 1] {
        let failures = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&failures);
        let ended = common::run(common::unwatched(3, 2), move |ctx| {
            let seen = Arc::clone(&seen);
            async move {
                let mut queue = ctx.remote_queue::<u64>(0, 1..3, 2).await?;
                if ctx.rank() == Rank(failing) {
                    // The others have items under way, or wait.
                    let _both = queue;
                    ctx.notifications().wait(0).await?;
                    return Err::<(), _>(Error::NoSuchSlot { slot: 99 });
                }
                ctx.notifications().notify(failing, 0, 0).await?;
                let error = match (&mut queue.sender, &mut queue.receiver) {
                    (Some(sender), _) => loop {
                        if let Err(error) = sender.send(1).await {
                            break error;
                        }
                    },
                    (None, Some(receiver)) => loop {
                        match receiver.next().await {
                            Some(Ok(_)) => {}
                            Some(Err(error)) => break error,
                            None => return Ok(()),
                        }
                    },
                    _ => unreachable!("every rank has an end"),
                };
                seen.lock().unwrap().push(error.clone());
                Err(error)
            }
        });
        assert!(ended.is_err());
        for error in failures.lock().unwrap().iter() {
            // A receiver that its failing rank drops is known first, and a sender may fail because of that
            // before the other one knows more.
            let is_dropped =
                error.to_string().contains("of rank 0, which has dropped its receiver");
            assert!(failing == 0 || !is_dropped, "{error}");
            if !is_dropped {
                queue_failed(error, &[&format!("rank {failing}"), "slot 99"]);
            }
        }
    }
}

#[test]
fn programs_cannot_name_the_ids_of_queues() {
    const FIRST: u32 = 1 << 31;
    for way in 0..4 {
        let ended = common::run(common::unwatched(1, 1), move |ctx| async move {
            let queue = ctx.remote_queue::<u64>(0, [0], 4).await?;
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            let notifications = ctx.notifications();
            says(&ctx.resize_notifications(FIRST + 1).unwrap_err(), &["2147483649"]);
            ctx.resize_notifications(FIRST)?;
            let refused = match way {
                0 => notifications.notify(0, FIRST, 3).await.err(),
                1 => notifications.put_copy(&[1], slot.at(0, 0), FIRST, 3).await.err(),
                2 => notifications.wait(FIRST).await.err(),
                _ => notifications.wait_any(FIRST - 1..FIRST + 1).await.err(),
            };
            says(&refused.unwrap(), &["rank 0 has no notification 214748364"]);
            drop(queue);
            Ok(())
        });
        // What cannot be sent fails the rank.
        assert_eq!(ended.is_err(), way < 2, "way {way}: {ended:?}");
    }
}

#[test]
fn the_report_of_a_hang_says_who_waits_for_items_and_who_for_room() {
    let ended = common::run(common::watched(2, 1), |ctx| async move {
        let mut room = ctx.remote_queue::<u64>(0, [1], 2).await?;
        let mut items = ctx.remote_queue::<u64>(0, [1], 2).await?;
        if ctx.rank() == Rank(0) {
            let item = items.take_receiver()?.next().await;
            return Err::<(), _>(item.unwrap().unwrap_err());
        }
        let mut sender = room.take_sender()?;
        loop {
            sender.send(3).await?;
        }
    });
    let text = ended.unwrap_err().to_string();
    let lines =
        ["rank 0: waits for an item of its queue", "rank 1: waits for room in the queue of rank 0"];
    // The report is of one process.
    let is_here = |rank: &usize| text.contains(&format!("`main` of rank {rank} is suspended"));
    let here: Vec<_> = (0..2).filter(is_here).collect();
    assert!(!here.is_empty(), "{text}");
    for line in here.into_iter().map(|rank| lines[rank]) {
        assert!(text.contains(line), "`{line}` is missing in: {text}");
    }
}

/// Ends that a program keeps in a `static`.
#[test]
fn ends_of_a_run_that_has_ended_are_of_no_more_use() {
    let kept = Arc::new(Mutex::new(None));
    let ends = common::run(common::config(1, 1), |ctx| {
        let kept = Arc::clone(&kept);
        async move {
            let queue = ctx.remote_queue::<u64>(0, [0], 4).await?;
            *kept.lock().unwrap() = Some(queue);
            Ok(())
        }
    });
    ends.unwrap();
    let mut queue = kept.lock().unwrap().take().unwrap();
    let mut now = |way: usize| {
        let (sender, receiver) = (queue.sender.as_mut().unwrap(), queue.receiver.as_mut().unwrap());
        futures::executor::block_on(async {
            match way {
                0 => poll_immediate(receiver.next()).await.map(|item| item.unwrap().map(drop)),
                _ => poll_immediate(sender.send(3)).await,
            }
        })
    };
    for way in [0, 1] {
        let ended = now(way).expect("a future of a run that has ended waits");
        assert!(matches!(ended, Err(Error::RunEnded)), "way {way}: {ended:?}");
    }
    drop(queue);
}
