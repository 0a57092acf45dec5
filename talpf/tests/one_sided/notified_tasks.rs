//! Tasks that run once a notification has come, with the data of its put.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use talpf::{Context, Error, NotifiedTask, Rank};

use crate::common;

#[test]
fn a_task_runs_when_its_notification_has_come_and_occupies_no_worker_before() {
    const TASKS: u32 = 100;
    for workers in [1, 2] {
        let ends = common::run(common::config(2, workers), |ctx| async move {
            let notifications = ctx.notifications();
            if ctx.rank() == Rank(0) {
                notifications.wait(0).await?;
                // Each runs before the next is notified.
                for id in (0..TASKS).rev() {
                    notifications.notify(1, id, TASKS - 1 - id).await?;
                    notifications.wait(1).await?;
                }
                return Ok(());
            }
            let order = Arc::new(AtomicU32::new(0));
            for id in 0..TASKS {
                let event = notifications.event(id)?;
                let (answer, order) = (notifications.clone(), Arc::clone(&order));
                let task = ctx.group().task("notified").notified(&event);
                task.spawn(move || {
                    let notification = event.notification().unwrap();
                    assert_eq!((notification.id, notification.source), (id, Rank(0)));
                    assert_eq!(notification.value, order.fetch_add(1, Ordering::SeqCst));
                    drop(answer.notify(0, 1, 0));
                })?;
            }
            notifications.notify(0, 0, 0).await?;
            Ok(ctx.group().wait().await?)
        });
        ends.unwrap();
    }
}

/// Passes numbers along the ranks, through `buffers` inboxes each.
async fn pipeline(ctx: Context, buffers: usize, len: usize, items: u64) -> Result<Vec<u64>, Error> {
    let numbers = vec![0u64; buffers * len];
    let numbers = talpf_runtime::Array::new(ctx.group(), numbers, len)?;
    let slot = ctx.register_global(&numbers).await?;
    let sums = common::array(&ctx, vec![0u64; items as usize])?;
    let (first, last) = (ctx.rank() == Rank(0), ctx.rank().0 == ctx.size() - 1);
    for item in 0..items {
        let buffer = item as usize % buffers;
        let region = numbers.region(buffer * len..(buffer + 1) * len);
        let sum = sums.region(item as usize..=item as usize);
        if first {
            let make = ctx.group().task("make").output(&region);
            make.spawn(move |mut numbers| numbers.fill(item))?;
        } else {
            let inbox = ctx.notifications().inbox(&region, buffer as u32)?;
            let known = inbox.last();
            let work = ctx.group().task("work").inbox(&inbox).output(&sum);
            work.spawn(move |mut numbers, mut sum| {
                assert_eq!(known().unwrap().value, item as u32);
                numbers.iter_mut().for_each(|number| *number += 1000);
                sum[0] = numbers.iter().sum();
            })?;
        }
        if !last {
            let next = Rank(ctx.rank().0 + 1);
            let to = slot.at(next, buffer * len);
            ctx.put_notify(&region, to, buffer as u32, item as u32)?;
        }
    }
    common::read(&ctx, &sums).await
}

#[test]
fn a_pipeline_needs_no_flow_control_but_its_inboxes() {
    for (ranks, workers) in [(2, 1), (2, 2), (5, 2)] {
        for (buffers, len) in [(1, 1), (3, 1), (2, 40), (4, 3000)] {
            let items = 30;
            let what = format!("{ranks} ranks, {workers} workers, {buffers} buffers of {len}");
            let ends = common::run(common::config(ranks, workers), |ctx| {
                pipeline(ctx, buffers, len, items)
            });
            for (rank, sums) in ends.unwrap().into_iter().enumerate().skip(1) {
                let sum = |item| (item + 1000 * rank as u64) * len as u64;
                assert_eq!(sums, Vec::from_iter((0..items).map(sum)), "{what}, rank {rank}");
            }
        }
    }
}

#[test]
fn a_task_may_wait_for_several_notifications() {
    for workers in [1, 2] {
        let ends = common::run(common::config(3, workers), |ctx| async move {
            let inbox = talpf_runtime::Array::new(ctx.group(), vec![0u64; 2], 1)?;
            let slot = ctx.register_global(&inbox).await?;
            let notifications = ctx.notifications();
            if ctx.rank() != Rank(0) {
                let place = ctx.rank().0 as usize - 1;
                let values = [u64::from(ctx.rank().0)];
                notifications.put_copy(&values, slot.at(0, place), ctx.rank().0, 0).await?;
                notifications.notify(0, 0, 0).await?;
                return Ok(0);
            }
            let (one, other) = (inbox.region(0..1), inbox.region(1..2));
            let (one, other) = (notifications.inbox(&one, 1)?, notifications.inbox(&other, 2)?);
            let event = notifications.event(0)?;
            let task = ctx.group().task("sum").inbox(&one).inbox(&other);
            let task = task.notified(&event).notified(&event);
            Ok(task.run(|one, other| 10 * one[0] + other[0])?.await?)
        });
        assert_eq!(ends.unwrap()[0], 12);
    }
}

#[test]
fn a_notification_without_a_put_lets_a_task_run_whose_inbox_it_leaves() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let inbox = common::array(&ctx, vec![5u64])?;
        let _slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(0) {
            ctx.notifications().notify(1, 0, 0).await?;
            return Ok(0);
        }
        let received = ctx.notifications().inbox(&inbox.all(), 0)?;
        Ok(ctx.group().task("read").inbox(&received).run(|inbox| inbox[0])?.await?)
    });
    assert_eq!(ends.unwrap()[1], 5);
}
