//! Notifications that cannot come, and puts that no inbox takes: errors that name rank and id.

use std::sync::{Arc, Mutex};

use talpf::{Context, Error, NotifiedTask, Rank};

use crate::common::{self, says};

/// Returns the error of a run.
fn error_of<R>(ended: Result<Vec<R>, Error>) -> Error {
    match ended {
        Ok(_) => panic!("the run has ended well"),
        Err(error) => error,
    }
}

#[test]
fn an_id_beyond_those_of_the_target_is_an_error_and_the_last_one_is_not() {
    for (ids, last) in [(None, 65_535), (Some(10), 9), (Some(100_000), 99_999)] {
        for id in [last, last + 1] {
            let ended = common::run(common::unwatched(2, 2), |ctx| async move {
                ids.into_iter().try_for_each(|ids| ctx.resize_notifications(ids))?;
                // Not before the other rank has its ids.
                ctx.register_global(&common::array(&ctx, vec![0u8])?).await?;
                match ctx.rank() {
                    Rank(0) => ctx.notifications().notify(1, id, 0).await,
                    _ => ctx.notifications().wait(last).await.map(drop),
                }
            });
            match id == last {
                true => drop(ended.unwrap()),
                false => says(&error_of(ended), &[&format!("rank 1 has no notification {id}")]),
            }
        }
    }
}

#[test]
fn a_wait_for_an_id_that_does_not_exist_is_an_error() {
    let ends = common::run(common::config(1, 1), |ctx| async move {
        let notifications = ctx.notifications();
        let one = notifications.wait(65_536).await.unwrap_err();
        let any = notifications.wait_any(0..65_537).await.unwrap_err();
        let none = notifications.wait_any(3..3).await.unwrap_err();
        let event = notifications.event(65_536).unwrap_err();
        for error in [one, any, event] {
            says(&error, &["rank 0 has no notification 65536"]);
        }
        says(&none, &["number of ids to wait for is 0"]);
        notifications.notify(0, 20, 0).await?;
        says(&ctx.resize_notifications(20).unwrap_err(), &["20", "at least 21"]);
        ctx.resize_notifications(21)
    });
    ends.unwrap();
}

#[test]
fn a_put_outside_the_inbox_of_its_wait_is_an_error_at_both_ranks() {
    for (index, len, with_inbox) in [(1, 1, true), (0, 2, true), (0, 200, true), (0, 1, false)] {
        let ended = common::run(common::unwatched(2, 2), |ctx| async move {
            let inbox = talpf_runtime::Array::new(ctx.group(), vec![0u64; 300], 1)?;
            let slot = ctx.register_global(&inbox).await?;
            let notifications = ctx.notifications();
            if ctx.rank() == Rank(0) {
                let values = common::array(&ctx, vec![1u64; len])?;
                ctx.put_notify(&values.all(), slot.at(1, index), 8, 0)?;
                ctx.group().wait().await?;
                return notifications.wait(0).await.map(drop);
            }
            if !with_inbox {
                return notifications.wait(8).await.map(drop);
            }
            let first = notifications.inbox(&inbox.region(0..1), 8)?;
            Ok(ctx.group().task("read").inbox(&first).run(drop)?.await?)
        });
        let elements = format!("elements {index}..{}", index + len);
        says(&error_of(ended), &["rank 0", "rank 1", "notification 8", &elements]);
    }
}

#[test]
fn an_inbox_is_of_a_registered_array() {
    let ends = common::run(common::config(1, 1), |ctx| async move {
        let array = common::array(&ctx, vec![0u64])?;
        let unregistered = ctx.notifications().inbox(&array.all(), 0).unwrap_err();
        says(&unregistered, &["not registered"]);
        let _slot = ctx.register_global(&array).await?;
        let outside = array.region(0..2);
        assert!(ctx.notifications().inbox(&outside, 0).is_err());
        ctx.notifications().inbox(&array.all(), 0).map(drop)
    });
    ends.unwrap();
}

#[test]
fn waits_end_with_an_error_when_a_rank_fails() {
    for workers in [1, 2] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let ended = common::run(common::unwatched(2, workers), |ctx| {
            let seen = Arc::clone(&seen);
            async move {
                let notifications = ctx.notifications();
                if ctx.rank() == Rank(0) {
                    notifications.wait(0).await?;
                    return Err(Error::NoSuchSlot { slot: 99 });
                }
                let array = common::array(&ctx, vec![0u64])?;
                let event = notifications.event(3)?;
                let task = ctx.group().task("event").notified(&event).inout(&array.all());
                task.spawn(|_| panic!("has run"))?;
                let task = ctx.group().task("successor").input(&array.all());
                let successor = task.run(|_| panic!("has run"))?;
                notifications.notify(0, 0, 0).await?;
                let one = notifications.wait(5).await.unwrap_err();
                let any = notifications.wait_any(6..9).await.unwrap_err();
                let successor = successor.await.unwrap_err();
                seen.lock().unwrap().extend([one, any, Error::Runtime(successor)]);
                Ok(())
            }
        });
        says(&error_of(ended), &["slot 99"]);
        let seen = seen.lock().unwrap();
        for (error, id) in seen.iter().zip(["5", "6", "3"]) {
            says(error, &["rank 1", &format!("notification {id}"), "slot 99"]);
        }
        assert_eq!(seen.len(), 3);
    }
}

/// Waits for what never comes, as does rank 0.
async fn hang(ctx: Context) -> Result<(), Error> {
    let inbox = common::array(&ctx, vec![0u64])?;
    let slot = ctx.register_global(&inbox).await?;
    let notifications = ctx.notifications();
    if ctx.rank() == Rank(0) {
        notifications.put_copy(&[1], slot.at(1, 0), 6, 0).await?;
        return notifications.wait_any(2..4).await.map(drop);
    }
    let received = notifications.inbox(&inbox.all(), 5)?;
    ctx.group().task("receive").inbox(&received).spawn(|_| ())?;
    let event = notifications.event(7)?;
    Ok(ctx.group().task("event").notified(&event).run(|| ())?.await?)
}

#[test]
fn the_report_of_a_hang_says_who_waits_for_which_id() {
    for workers in [1, 2] {
        let error = error_of(common::run(common::watched(2, workers), hang));
        says(
            &error,
            &[
                "rank 0: waits for any of the notifications 2..4",
                "rank 1: waits for a put with notification 5",
                "rank 1: waits for a notification 7",
                "rank 0: waits for rank 1 to receive notification 6 (1 operation parked)",
            ],
        );
    }
}

#[test]
fn a_put_that_nobody_has_received_at_the_end_is_an_error() {
    let ended = common::run(common::config(2, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(0) {
            // This one says nothing but itself.
            ctx.notifications().notify(1, 6, 0).await?;
            ctx.notifications().put_copy(&[1], slot.at(1, 0), 5, 0).await?;
        }
        Ok(())
    });
    says(&error_of(ended), &["rank 0", "rank 1", "notification 5"]);
}

#[test]
fn a_task_that_fails_before_a_put_or_a_wait_fails_the_run() {
    common::quiet_panics();
    for fails_before_put in [true, false] {
        let ended = common::run(common::unwatched(2, 2), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            if (ctx.rank() == Rank(0)) == fails_before_put {
                ctx.group().task("broken").inout(&inbox.all()).spawn(|_| panic!("broken"))?;
            }
            if ctx.rank() == Rank(0) {
                ctx.put_notify(&inbox.all(), slot.at(1, 0), 4, 0)?;
            } else {
                let received = ctx.notifications().inbox(&inbox.all(), 4)?;
                ctx.group().task("receive").inbox(&received).spawn(|_| ())?;
            }
            // Without a wait for the tasks.
            ctx.notifications().wait(0).await.map(drop)
        });
        match error_of(ended) {
            Error::NotIssued { target: Rank(1), id: 4 } if fails_before_put => {}
            Error::InboxGivenUp { rank: Rank(1), id: 4 } if !fails_before_put => {}
            error => says(&error, &["rank 1", "4"]),
        }
    }
}

#[test]
fn a_cancelled_group_ends_the_waits_of_its_tasks() {
    for (workers, with_inbox) in [(1, false), (2, false), (1, true), (2, true)] {
        let ended = common::run(common::unwatched(2, workers), |ctx| async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            let _slot = ctx.register_global(&inbox).await?;
            let notifications = ctx.notifications();
            if ctx.rank() == Rank(0) {
                return notifications.wait(0).await.map(drop);
            }
            if with_inbox {
                let received = notifications.inbox(&inbox.all(), 4)?;
                ctx.group().task("receive").inbox(&received).spawn(|_| panic!("has run"))?;
            } else {
                let event = notifications.event(4)?;
                ctx.group().task("event").notified(&event).spawn(|| panic!("has run"))?;
            }
            ctx.group().wait_for(std::time::Duration::from_millis(1)).await;
            ctx.group().cancel("enough");
            let cancelled = ctx.group().wait().await.unwrap_err();
            says(&Error::Runtime(cancelled), &["enough"]);
            let late = notifications.wait(4).await.unwrap_err();
            says(&late, &["rank 1", "notification 4", "enough"]);
            Err(late)
        });
        says(&error_of(ended), &["rank 1", "enough"]);
    }
}
