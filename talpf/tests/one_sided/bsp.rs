//! Plain BSP: operations are queued, and a sync opens every slot.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use talpf::{Error, Rank};
use talpf_runtime::{Matrix, Tiling};

use crate::common;

#[test]
fn gets_read_what_was_there_before_the_puts() {
    // Short ones travel in their request, long ones are registered.
    for len in [1, 10_000] {
        let ends = common::run(common::config(3, 2), move |ctx| async move {
            let me = ctx.rank().0;
            let next = Rank((me + 1) % 3);
            let numbers = common::array(&ctx, vec![u64::from(me); len])?;
            let got = common::array(&ctx, vec![77; len])?;
            let slot = ctx.register_global(&numbers).await?;
            let mut bsp = ctx.bsp();
            let mut seen = Vec::new();
            for _ in 0..3 {
                // A circle of puts out of arrays that are windows of each other.
                bsp.put(&numbers.all(), slot.at(next, 0))?;
                bsp.get(slot.at(next, 0), &got.all())?;
                assert_eq!(bsp.queued(), 2);
                bsp.sync().await?;
                assert_eq!(bsp.queued(), 0);
                let (numbers, got) =
                    (common::read(&ctx, &numbers).await?, common::read(&ctx, &got).await?);
                assert!(numbers.iter().all(|number| *number == numbers[0]));
                seen.push((numbers[len - 1], got[len - 1]));
            }
            Ok::<_, Error>(seen)
        });
        let expected =
            [[(2, 1), (1, 0), (0, 2)], [(0, 2), (2, 1), (1, 0)], [(1, 0), (0, 2), (2, 1)]];
        assert_eq!(ends.unwrap(), expected, "{len} elements");
    }
}

#[test]
fn rectangles_are_put_and_got() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let (me, peer) = (ctx.rank().0, 1 - ctx.rank().0);
        let values = (0..12).map(|index| 100 * me + index).collect();
        let matrix = Matrix::new(ctx.group(), values, 4, Tiling::new(2, 2))?;
        let slot = ctx.register_global(&matrix).await?;
        let mut bsp = ctx.bsp();
        // A column into a row of as many elements, and a rectangle into one of another shape.
        bsp.put(&matrix.region(.., ..1), slot.row(peer, 0, 1..))?;
        bsp.get(slot.region(peer, 1.., 2..), &matrix.row(2, ..))?;
        bsp.sync().await?;
        let read = ctx.group().task("read").input(&matrix.all());
        Ok::<_, Error>(read.run(|all| all.view().iter().copied().collect::<Vec<_>>())?.await?)
    });
    let expected = |me: u32, peer: u32| {
        let (own, got) = (move |index| 100 * me + index, move |index| 100 * peer + index);
        let rows =
            [[own(0), got(0), got(4), got(8)], [4, 5, 6, 7].map(own), [6, 7, 10, 11].map(got)];
        rows.concat()
    };
    assert_eq!(ends.unwrap(), [expected(0, 1), expected(1, 0)]);
}

#[test]
fn elements_that_are_put_one_by_one_come_to_their_places() {
    const SHAPE: [usize; 2] = [40, 30];
    const COUNT: usize = SHAPE[0] * SHAPE[1];
    // By rows, by columns, backwards, and alternately to either half.
    let orders: [fn(usize) -> usize; 4] = [
        |index| index,
        |index| index % SHAPE[0] * SHAPE[1] + index / SHAPE[0],
        |index| COUNT - 1 - index,
        |index| index % 2 * (COUNT / 2) + index / 2,
    ];
    for workers in [1, 2] {
        let ends = common::run(common::config(2, workers), move |ctx| async move {
            let me = ctx.rank().0;
            let values = (0..COUNT as u32).map(|index| 10_000 * me + index).collect();
            let matrix = Matrix::new(ctx.group(), values, SHAPE[1], Tiling::new(10, 10))?;
            let inbox = common::array(&ctx, vec![0; COUNT])?;
            let slots = (ctx.register_global(&matrix).await?, ctx.register_global(&inbox).await?);
            let mut bsp = ctx.bsp();
            let mut seen = Vec::new();
            for order in orders {
                for index in (0..COUNT).map(order) {
                    let (row, col) = (index / SHAPE[1], index % SHAPE[1]);
                    let from = matrix.region(row..=row, col..=col);
                    bsp.put(&from, slots.1.at(1 - me, COUNT - 1 - index))?;
                }
                bsp.sync().await?;
                seen.push(common::read(&ctx, &inbox).await?);
                // What the next superstep puts.
                bsp.put(&inbox.all(), slots.0.at(1 - me, 0))?;
                bsp.sync().await?;
            }
            Ok::<_, Error>(seen)
        });
        for (rank, seen) in (0..).zip(ends.unwrap()) {
            // Each superstep of elements reverses them, and the next one brings them back.
            let from = 1 - rank;
            for (step, inbox) in seen.iter().enumerate() {
                let elements = 10_000 * from..10_000 * from + COUNT as u32;
                let expected: Vec<u32> =
                    if step % 2 == 0 { elements.rev().collect() } else { elements.collect() };
                assert_eq!(inbox, &expected, "step {step} at rank {rank}, {workers} workers");
            }
        }
    }
}

#[test]
fn a_superstep_begins_after_the_tasks_before_it_and_ends_before_those_after_it() {
    for workers in [1, 2] {
        let ends = common::run(common::config(3, workers), move |ctx| async move {
            let me = ctx.rank().0;
            let numbers = common::array(&ctx, vec![1000 * u64::from(me); 2])?;
            let got = common::array(&ctx, vec![0])?;
            let slot = ctx.register_global(&numbers).await?;
            let mut bsp = ctx.bsp();
            for _ in 0..5 {
                // More at some ranks than at others.
                for _ in 0..100 * me + 10 {
                    let task = ctx.group().task("count").inout(&numbers.all());
                    task.spawn(|mut numbers| numbers.iter_mut().for_each(|number| *number += 1))?;
                }
                bsp.put(&numbers.region(..1), slot.at((me + 1) % 3, 0))?;
                bsp.get(slot.at((me + 1) % 3, 1), &got.all())?;
                bsp.sync().await?;
            }
            let (numbers, got) =
                (common::read(&ctx, &numbers).await?, common::read(&ctx, &got).await?);
            Ok::<_, Error>((numbers, got[0]))
        });
        let steps = |rank: u64| 100 * rank + 10;
        let mut passed_on = [0, 1000, 2000];
        for _ in 0..5 {
            (0..3).zip(&mut passed_on).for_each(|(rank, number)| *number += steps(rank));
            passed_on.rotate_right(1);
        }
        let own = |rank: u64| 1000 * rank + 5 * steps(rank);
        let expected =
            [0, 1, 2].map(|rank| (vec![passed_on[rank as usize], own(rank)], own((rank + 1) % 3)));
        assert_eq!(ends.unwrap(), expected, "{workers} workers");
    }
}

#[test]
fn a_full_queue_refuses_and_can_be_resized() {
    common::run(common::config(2, 2), |ctx| async move {
        let numbers = common::array(&ctx, vec![ctx.rank().0; 4])?;
        let inbox = common::array(&ctx, vec![9; 4])?;
        let slot = ctx.register_global(&inbox).await?;
        let mut bsp = ctx.bsp();
        let peer = Rank(1 - ctx.rank().0);
        ctx.resize_message_queue(2)?;
        for index in 0..2 {
            bsp.put(&numbers.region(index..index + 1), slot.at(peer, index))?;
        }
        let refused = bsp.put(&numbers.region(2..3), slot.at(peer, 2));
        assert!(matches!(refused, Err(Error::Limit { value: 3, limit: 2, .. })), "{refused:?}");
        let refused = bsp.get(slot.at(peer, 0), &numbers.region(2..3));
        assert!(matches!(refused, Err(Error::Limit { value: 3, limit: 2, .. })), "{refused:?}");
        ctx.resize_message_queue(3)?;
        bsp.put(&numbers.region(2..3), slot.at(peer, 2))?;
        bsp.sync().await?;
        assert_eq!(common::read(&ctx, &inbox).await?, [peer.0, peer.0, peer.0, 9]);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_sync_without_operations_ends_a_superstep() {
    common::run(common::config(4, 2), |ctx| async move {
        let mut bsp = ctx.bsp();
        for _ in 0..10 {
            bsp.sync().await?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn an_operation_on_elements_that_do_not_exist_fails() {
    let ended = common::run(common::config(2, 2), |ctx| async move {
        let inbox = common::array(&ctx, vec![0u8; 4])?;
        let slot = ctx.register_global(&inbox).await?;
        let mut bsp = ctx.bsp();
        bsp.put(&inbox.region(..3), slot.at(Rank(0), 2))?;
        bsp.sync().await
    });
    // At a rank in another process it is the failure of its peer.
    let error = ended.expect_err("elements that do not exist").to_string();
    assert!(error.contains("elements 2..5 of slot"), "{error}");
}

/// Tests that the superstep of a sync that was dropped has ended before the next one of that rank does.
#[test]
fn supersteps_go_on_after_a_sync_that_was_dropped() {
    for workers in [1, 2] {
        let ends = common::run(common::config(3, workers), |ctx| async move {
            let me = ctx.rank().0;
            let own = common::array(&ctx, vec![me; 1])?;
            let inbox = common::array(&ctx, vec![9; 3])?;
            let slot = ctx.register_global(&inbox).await?;
            let mut bsp = ctx.bsp();
            if me == 1 {
                bsp.put(&own.all(), slot.at(0, 0))?;
                let mut sync = pin!(bsp.sync());
                poll_fn(|cx| {
                    let _ = sync.as_mut().poll(cx);
                    Poll::Ready(())
                })
                .await;
            } else {
                bsp.put(&own.all(), slot.at(1, 1))?;
                bsp.sync().await?;
            }
            for target in 0..3 {
                bsp.put(&own.all(), slot.at(target, me as usize))?;
            }
            bsp.sync().await?;
            common::read(&ctx, &inbox).await
        });
        assert_eq!(ends.unwrap(), vec![[0, 1, 2]; 3], "{workers} workers");
    }
}

/// Tests that syncs of one rank that two tasks await at the same time end supersteps one after the other.
#[test]
fn supersteps_of_two_queues_follow_each_other() {
    for workers in [1, 2] {
        let ends = common::run(common::config(2, workers), |ctx| async move {
            let (me, peer) = (ctx.rank().0, 1 - ctx.rank().0);
            let numbers = common::array(&ctx, vec![1 + me, 0])?;
            let inbox = common::array(&ctx, vec![0; 200])?;
            let slot = ctx.register_global(&inbox).await?;
            let count = |first: usize| {
                let (ctx, numbers, slot) = (&ctx, &numbers, &slot);
                async move {
                    let mut bsp = ctx.bsp();
                    for step in 0..100 {
                        bsp.put(&numbers.region(..1), slot.at(peer, first + step))?;
                        bsp.sync().await?;
                    }
                    Ok::<_, Error>(())
                }
            };
            futures::try_join!(count(0), count(100))?;
            common::read(&ctx, &inbox).await
        });
        assert_eq!(ends.unwrap(), [vec![2; 200], vec![1; 200]], "{workers} workers");
    }
}

/// Tests that operations of the context are of the superstep, though those of the queue alone need no round.
#[test]
fn operations_of_the_context_end_with_the_superstep() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let (me, peer) = (ctx.rank().0, 1 - ctx.rank().0);
        let numbers = common::array(&ctx, vec![10 + me, 0])?;
        let got = common::array(&ctx, vec![0])?;
        let slot = ctx.register_global(&numbers).await?;
        let mut bsp = ctx.bsp();
        for _ in 0..3 {
            if me == 0 {
                ctx.get(slot.at(peer, 0), &got.all())?;
            }
            bsp.put(&numbers.region(..1), slot.at(peer, 1))?;
            bsp.sync().await?;
            bsp.put(&numbers.region(..1), slot.at(peer, 1))?;
            bsp.sync().await?;
        }
        let (numbers, got) = (common::read(&ctx, &numbers).await?, common::read(&ctx, &got).await?);
        Ok::<_, Error>((numbers, got[0]))
    });
    assert_eq!(ends.unwrap(), [(vec![10, 11], 11), (vec![11, 10], 0)]);
}

#[test]
fn short_and_long_puts_to_several_slots_share_a_superstep() {
    for workers in [1, 2] {
        let ends = common::run(common::config(3, workers), |ctx| async move {
            let me = ctx.rank().0;
            let own = common::array(&ctx, vec![me; 1000])?;
            let inboxes = [0; 3].map(|_| common::array(&ctx, vec![9; 3000]));
            let [first, second, third] = inboxes;
            let (first, second, third) = (first?, second?, third?);
            let slots = (ctx.register_global(&first).await?, ctx.register_global(&second).await?);
            let third_slot = ctx.register_global(&third).await?;
            let mut bsp = ctx.bsp();
            for target in 0..3 {
                let at = 1000 * me as usize;
                bsp.put(&own.region(..3), slots.0.at(target, at))?;
                bsp.put(&own.all(), slots.1.at(target, at))?;
                bsp.put(&own.region(5..6), third_slot.at(target, at))?;
                bsp.put(&own.region(7..8), slots.0.at(target, at + 999))?;
            }
            bsp.sync().await?;
            let sums = [&first, &second, &third].map(|inbox| common::read(&ctx, inbox));
            let [first, second, third] = sums;
            Ok::<_, Error>((first.await?, second.await?, third.await?))
        });
        for (first, second, third) in ends.unwrap() {
            for rank in 0..3 {
                let of = |inbox: &[u32]| inbox[1000 * rank..][..1000].to_vec();
                let (first, second, third) = (of(&first), of(&second), of(&third));
                let rank = rank as u32;
                assert_eq!([&first[..4], &first[998..]].concat(), [rank, rank, rank, 9, 9, rank]);
                assert_eq!(second, [rank; 1000]);
                assert_eq!(third[..2], [rank, 9]);
            }
        }
    }
}
