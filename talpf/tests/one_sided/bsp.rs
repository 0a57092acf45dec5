//! Plain BSP: operations are queued, and a sync opens every slot.

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
