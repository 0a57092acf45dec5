//! Ends of runs: with messages left, with failures, with invalid settings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use talpf_runtime::Array;
use tampi_shim::{ANY_SOURCE, Communicator, Error, Rank, Tag, iwait};

use crate::harness::{ALL, Case, run, try_run};

pub(crate) const CASES: &[Case] = &[
    Case::new("messages_left_over_do_not_keep_a_run", ALL, left_over),
    Case::new("messages_left_over_in_a_communicator_do_not_either", ALL, left_over_in_a_duplicate),
    Case::new("a_rank_that_fails_ends_the_waits_of_all", &[2, 4], failure),
    Case::new(
        "a_rank_that_fails_receives_what_its_communicators_have",
        &[2, 4],
        failure_in_a_duplicate,
    ),
    Case::new("a_rank_that_panics_ends_the_waits_of_all", &[2], panic),
    Case::new("a_rank_that_fails_is_heard_of_where_nothing_is_under_way", &[2], idle_failure),
    Case::new("a_cancelled_rank_lets_go_of_sends_that_nobody_takes", &[1, 2, 4], cancelled),
    Case::new("what_depends_on_a_receive_that_failed_does_not_run", &[1], undefined),
    Case::new("a_message_beyond_two_gigabytes_arrives", &[2], beyond_two_gigabytes).huge(),
    Case::new("mpi_runs_once_in_a_process", &[1, 2], once),
];

/// More bytes than an `int` counts.
fn beyond_two_gigabytes() {
    const LENGTH: usize = (1 << 31) + 5;
    let program = async |world: Communicator| {
        let value = |n: usize| ((n * 7) >> 11) as u8;
        let places = (0..LENGTH).step_by(4093).chain([LENGTH - 1]);
        if world.rank() == Rank(0) {
            let mut bytes = vec![0u8; LENGTH];
            places.for_each(|n| bytes[n] = value(n));
            world.send(bytes, Rank(1), Tag(0)).await?;
        } else {
            let (bytes, status) = world.recv(vec![0u8; LENGTH + 1], Rank(0), Tag(0)).await?;
            assert_eq!(status.bytes, LENGTH as u64);
            places.into_iter().for_each(|n| assert_eq!(bytes[n], value(n), "byte {n}"));
        }
        Ok(())
    };
    run(program);
}

/// A receive that nothing comes for, and a long message that nobody takes.
fn left_over() {
    run(async |world: Communicator| {
        let next = Rank((world.rank().0 + 1) % world.size());
        drop(world.irecv(vec![0u8; 8], ANY_SOURCE, Tag(1)));
        drop(world.isend(vec![0u8; 1_000_000], next, Tag(2)));
        drop(world.isend(vec![0u8; 8], next, Tag(3)));
        let taken = world.mprobe(ANY_SOURCE, Tag(2)).await?;
        std::mem::forget(taken);
        Ok(())
    });
}

/// Long messages that nobody takes, in communicators that are gone before they come.
fn left_over_in_a_duplicate() {
    run(async |world: Communicator| {
        let next = Rank((world.rank().0 + 1) % world.size());
        let (dropped, freed) = (world.duplicate().await?, world.duplicate().await?);
        drop(dropped.irecv(vec![0u8; 8], ANY_SOURCE, Tag(1)));
        drop(dropped.isend(vec![0u8; 1_000_000], next, Tag(2)));
        drop(freed.issend(vec![0u8; 8], next, Tag(2)));
        drop(dropped);
        freed.free().await
    });
}

/// The last rank fails while the others wait for it, and sends what nobody receives.
async fn last_fails(world: Communicator) -> Result<(), Error> {
    let last = Rank(world.size() - 1);
    if world.rank() == last {
        drop(world.isend(vec![0u8; 1_000_000], Rank(0), Tag(8)));
        return Err(Error::Setting { name: "X", value: "y".to_owned(), expected: "z" });
    }
    match world.recv(vec![0u8], last, Tag(0)).await {
        Err(error) => Err(error),
        Ok(_) => panic!("a message that was not sent"),
    }
}

/// The last rank fails while the others probe for a message that it never sends, with nothing under
/// way.
async fn last_fails_unasked(world: Communicator) -> Result<(), Error> {
    let last = Rank(world.size() - 1);
    if world.rank() == last {
        return Err(Error::Setting { name: "X", value: "y".to_owned(), expected: "z" });
    }
    while world.iprobe(last, Tag(0))?.is_none() {
        world.group().wait_for(Duration::from_micros(50)).await;
    }
    panic!("a message that was not sent")
}

/// The last rank fails with a communicator in which the others send to it.
async fn last_fails_in_a_duplicate(world: Communicator) -> Result<(), Error> {
    let (copy, last) = (world.duplicate().await?, Rank(world.size() - 1));
    if world.rank() == last {
        return Err(Error::Setting { name: "X", value: "y".to_owned(), expected: "z" });
    }
    copy.ssend(vec![0u8; 1_000_000], last, Tag(0)).await?;
    // Whoever hears of the failure takes what nobody has asked for.
    world.recv(vec![0u8], last, Tag(0)).await.map(drop)
}

fn assert_failed(result: Result<(), Error>) {
    match result {
        Err(Error::Setting { .. }) => {}
        Err(Error::PeerFailed { rank, reason }) => {
            assert_ne!(rank, Rank(0));
            assert_eq!(reason, "X=y: z");
        }
        other => panic!("{other:?}"),
    }
}

fn failure() {
    assert_failed(try_run(last_fails));
}

fn failure_in_a_duplicate() {
    assert_failed(try_run(last_fails_in_a_duplicate));
}

fn idle_failure() {
    assert_failed(try_run(last_fails_unasked));
}

fn panic() {
    let program = async |world: Communicator| {
        assert_ne!(world.rank(), Rank(1), "on purpose");
        world.recv(vec![0u8], Rank(1), Tag(0)).await.map(drop)
    };
    let text = try_run(program).expect_err("a rank panicked").to_string();
    // The reason of the rank itself, or that of the other rank.
    assert!(text.contains("on purpose") || text.contains("its main panicked"), "{text}");
}

/// Rank 0 cancels its tasks while long messages of theirs wait for receives that never come.
async fn first_cancels(world: Communicator) -> Result<(), Error> {
    if world.rank() != Rank(0) {
        return world.recv(vec![0u8], Rank(0), Tag(1)).await.map(drop);
    }
    const LONG: usize = 1_000_000;
    let (group, last) = (world.group().clone(), Rank(world.size() - 1));
    let values = Array::new(&group, vec![1u8; 3 * LONG], LONG)?;
    let sending = Arc::new(AtomicUsize::new(0));
    for (tile, tag) in (0..3).zip([Tag(5), Tag(6), Tag(7)]) {
        let (world, sending) = (world.clone(), Arc::clone(&sending));
        group.task("send").input(&values.tile(tile)).spawn_async(move |values| async move {
            let send = world.issend(values, last, tag);
            sending.fetch_add(1, Ordering::SeqCst);
            match tile {
                0 => iwait(send).expect("in a task"),
                1 => drop(send),
                _ => drop(send.await),
            }
        })?;
    }
    while sending.load(Ordering::SeqCst) < 3 {
        group.wait_for(Duration::from_micros(50)).await;
    }
    group.cancel("on purpose");
    // It does not return before MPI has let go of the regions.
    Ok(group.wait().await?)
}

fn cancelled() {
    let text = try_run(first_cancels).expect_err("a rank was cancelled").to_string();
    assert!(text.contains("on purpose"), "{text}");
}

fn undefined() {
    let ran = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ran);
    let program = async move |world: Communicator| {
        let group = world.group().clone();
        let values = Array::new(&group, vec![0u32; 2], 2)?;
        world.send(vec![1u32; 3], Rank(0), Tag(0)).await?;
        group.task("receive").output(&values.all()).spawn_async(move |values| async move {
            let error = world.irecv(values, Rank(0), Tag(0)).await.map(drop).expect_err("too long");
            assert!(matches!(error, Error::Truncated { .. }), "{error}");
        })?;
        let after = group.task("after").input(&values.all());
        after.spawn(move |_| flag.store(true, Ordering::SeqCst))?;
        Ok(group.wait().await?)
    };
    let text = try_run(program).expect_err("a task failed").to_string();
    assert!(text.contains("receive") && text.contains("after"), "{text}");
    assert!(!ran.load(Ordering::SeqCst));
}

fn once() {
    let nothing = async |_: Communicator| Ok(());
    run(nothing);
    match try_run(nothing) {
        Err(Error::Mpi(refused)) => assert!(refused.reason.contains("once"), "{refused}"),
        other => panic!("{other:?}"),
    }
}
