use tampi_shim::operator::Sum;
use tampi_shim::{Communicator, Error, Rank};

use crate::common::run;

/// Runs a program that fails and returns the text of its error.
fn failure<F>(ranks: usize, program: impl Fn(Communicator) -> F + Send + 'static) -> String
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    run(ranks, program).expect_err("a program that fails").to_string()
}

#[test]
fn lengths_that_differ_are_named() {
    for ranks in 2..=9 {
        let error = failure(ranks, async |world| {
            let last = world.rank().0 == world.size() - 1;
            world.allreduce(vec![1u8; if last { 5 } else { 3 }], Sum).await?;
            world.barrier().await
        });
        assert!(error.contains('3') && error.contains('5'), "{error}");
        assert!(error.contains("rank 0") && error.contains("allreduce"), "{error}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn roots_that_differ_are_named() {
    for ranks in 2..=9 {
        let error = failure(ranks, async |world| {
            let root = if world.rank() == Rank(1) { Rank(1) } else { Rank(0) };
            world.broadcast(vec![0u64; 7], root).await?;
            world.barrier().await
        });
        assert!(error.contains("root 0") && error.contains("root 1"), "{error}");
        assert!(error.contains("rank 1 calls broadcast of 7 elements of 8 bytes"), "{error}");
    }
}

#[cfg(debug_assertions)]
#[test]
fn different_collectives_are_named() {
    let error = failure(3, async |world| {
        if world.rank() == Rank(2) {
            world.barrier().await?;
        } else {
            world.allreduce(vec![0u64], Sum).await?;
        }
        world.barrier().await
    });
    // Rank 0 compares the calls, and notices a message that is too short.
    assert!(["rank 0", "rank 2", "allreduce"].iter().all(|name| error.contains(name)), "{error}");
}

#[test]
fn an_operator_that_panics_ends_the_collective_everywhere() {
    for ranks in 2..=9 {
        let error = failure(ranks, async |world| {
            let never = |_: u32, _: u32| -> u32 { std::panic::panic_any("an operator's panic") };
            world.allreduce(vec![1u32], never).await?;
            Ok(())
        });
        assert!(error.contains("the operator of allreduce panicked"), "{error}");
    }
}

/// Panics as it drops.
struct Again;

impl Drop for Again {
    fn drop(&mut self) {
        panic!("as it drops");
    }
}

#[test]
fn an_operator_may_panic_with_what_panics_as_it_drops() {
    for ranks in 2..=4 {
        let error = failure(ranks, async |world| {
            let never = |_: u32, _: u32| -> u32 { std::panic::panic_any(Again) };
            world.allreduce(vec![1u32], never).await?;
            Ok(())
        });
        assert!(error.contains("the operator of allreduce panicked"), "{error}");
    }
}

#[test]
fn an_operator_that_panics_as_it_drops_fails_its_call_alone() {
    run(3, async |world| {
        for _ in 0..2 {
            let captured = Again;
            let sum = move |left: u32, right: u32| {
                let _ = &captured;
                left + right
            };
            let failed = world.allreduce(vec![1u32], sum).await;
            assert!(matches!(failed, Err(Error::OperatorPanicked { .. })), "{failed:?}");
            assert_eq!(world.allreduce(vec![2u32], Sum).await?, [6]);
        }
        Ok(())
    })
    .expect("the program");
}

#[test]
fn a_rank_that_fails_ends_the_collectives_of_the_others() {
    for ranks in 2..=9 {
        let error = failure(ranks, async |world| {
            if world.rank() == Rank(1) {
                let limit = Error::Limit { what: "patience", value: 1, limit: 0 };
                return Err(limit);
            }
            let started = world.iallreduce(vec![1u32], Sum);
            world.barrier().await?;
            started.await?;
            Ok(())
        });
        assert!(error.contains("patience"), "{error}");
    }
}

#[test]
fn buffers_that_do_not_fit_are_refused_before_anything_is_sent() {
    run(1, async |world| {
        let refused = world.allgather(vec![1u8; 2], vec![0u8; 3]).await;
        let text = refused.expect_err("a buffer too long").to_string();
        assert_eq!(text, "allgather: the buffer of all ranks has 3 elements, 2 are needed");
        let refused = world.gatherv(vec![1u8], vec![0u8], &[1, 1], Rank(0)).await;
        assert!(matches!(refused, Err(Error::BufferLength { what: "the list of counts", .. })));
        let refused = world.gatherv(vec![1u8], vec![0u8], &[2], Rank(0)).await;
        assert!(matches!(refused, Err(Error::BufferLength { .. })));
        let refused = world.scatterv(vec![1u8], vec![0u8], &[usize::MAX], Rank(0)).await;
        assert!(matches!(refused, Err(Error::BufferLength { .. })));
        let refused = world.broadcast(vec![1u8], Rank(1)).await;
        assert!(matches!(refused, Err(Error::NoSuchRank { rank: Rank(1), ranks: 1 })));
        // The communicator is as good as before.
        assert_eq!(world.allreduce(vec![3u8], Sum).await?, [3]);
        Ok(())
    })
    .expect("the program");
}
