//! Plain BSP: operations are queued, and a sync opens every slot.

use proptest::prelude::*;
use talpf::{Error, Rank};

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

/// Elements of an array.
const LEN: usize = 24;
const RANKS: u32 = 3;

/// Operation of a rank: puts from the first third, which nobody writes, to the second one; gets of the first two
/// into the last.
#[derive(Clone, Copy, Debug)]
struct Queued {
    is_put: bool,
    peer: u32,
    near: usize,
    far: usize,
    len: usize,
}

fn queued() -> impl Strategy<Value = Queued> {
    (any::<bool>(), 0..RANKS, 0..LEN / 3, 0..LEN / 3, 0..LEN / 3).prop_map(
        |(is_put, peer, near, far, len)| {
            let len = len.min(LEN / 3 - near).min(LEN / 3 - far);
            Queued { is_put, peer, near, far, len }
        },
    )
}

fn begin(rank: u32) -> Vec<u32> {
    (0..LEN as u32).map(|index| rank * 1000 + index).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn programs_leave_what_their_operations_leave(
        program in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(queued(), 0..4), RANKS as usize),
            1..4,
        ),
    ) {
        let shared = std::sync::Arc::new(program.clone());
        let ends = common::run(common::config(RANKS, 2), |ctx| {
            let program = std::sync::Arc::clone(&shared);
            async move {
                let memory = common::array(&ctx, begin(ctx.rank().0))?;
                let slot = ctx.register_global(&memory).await?;
                let mut bsp = ctx.bsp();
                let mut memories = Vec::new();
                for superstep in program.iter() {
                    for Queued { is_put, peer, near, far, len } in &superstep[ctx.rank().0 as usize] {
                        let third = LEN / 3;
                        if *is_put {
                            let from = memory.region(*near..near + len);
                            bsp.put(&from, slot.at(*peer, third + far))?;
                        } else {
                            let to = memory.region(2 * third + near..2 * third + near + len);
                            bsp.get(slot.at(*peer, *far * 2), &to)?;
                        }
                    }
                    bsp.sync().await?;
                    memories.push(common::read(&ctx, &memory).await?);
                }
                Ok::<_, Error>(memories)
            }
        }).unwrap();
        let mut before: Vec<_> = (0..RANKS).map(begin).collect();
        for (number, superstep) in program.iter().enumerate() {
            // The values that each element may have: one of those that operations write to it.
            let mut may_be: Vec<Vec<Vec<u32>>> = vec![vec![Vec::new(); LEN]; RANKS as usize];
            for (rank, operations) in superstep.iter().enumerate() {
                for Queued { is_put, peer, near, far, len } in operations {
                    for index in 0..*len {
                        let (peer, third) = (*peer as usize, LEN / 3);
                        if *is_put {
                            may_be[peer][third + far + index].push(before[rank][near + index]);
                        } else {
                            let value = before[peer][2 * far + index];
                            may_be[rank][2 * third + near + index].push(value);
                        }
                    }
                }
            }
            for rank in 0..RANKS as usize {
                for (index, values) in may_be[rank].iter().enumerate() {
                    let value = ends[rank][number][index];
                    match values.is_empty() {
                        true => prop_assert_eq!(value, before[rank][index]),
                        false => prop_assert!(values.contains(&value), "{value}: {values:?}"),
                    }
                }
            }
            before = ends.iter().map(|memories| memories[number].clone()).collect();
        }
    }
}
