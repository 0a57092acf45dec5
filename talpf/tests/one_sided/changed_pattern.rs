//! Under `CACHED` a round that differs from the remembered one is an error.

use crate::common;
use talpf::{Error, Rank, SyncMode};

/// Runs two rounds in which rank 0 puts once to every rank, then one with `changed` puts to rank 1.
fn change(mode: SyncMode, lane: u8, changed: usize) -> (Error, Vec<Option<Error>>) {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(vec![None, None, None]));
    let result = common::run(common::unwatched(3, 2), |ctx| {
        let seen = std::sync::Arc::clone(&seen);
        async move {
            let one = common::array(&ctx, vec![1u64])?;
            let inbox = common::array(&ctx, vec![0u64; 3])?;
            let slot = ctx.register_global(&inbox).await?;
            let me = ctx.rank().0;
            for round in 0..3 {
                for peer in 0..3 {
                    let odd = (round, me, peer) == (2, 0, 1);
                    for _ in 0..if odd { changed } else { 1 } {
                        ctx.lane(lane)?.put(&one.all(), slot.at(Rank(peer), me as usize))?;
                    }
                }
                let ended = ctx.lane(lane)?.sync(mode).window(&inbox.all()).await;
                if let Err(error) = ended {
                    seen.lock().unwrap()[me as usize] = Some(error.clone());
                    return Err(error);
                }
            }
            Ok(())
        }
    });
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (result.unwrap_err(), seen)
}

fn modes() -> [SyncMode; 3] {
    let cached = SyncMode::CACHED;
    [cached, cached.with_barrier(), cached.with_ack()]
}

#[test]
fn fewer_operations_are_an_error_of_the_sender_and_a_failed_peer_for_the_others() {
    for mode in modes() {
        for lane in [0, 4] {
            let (error, seen) = change(mode, lane, 0);
            common::says(&error, &["0 operations to rank 1", "pattern has 1"]);
            let sender = seen[0].as_ref().unwrap();
            assert!(
                matches!(
                    sender,
                    Error::PatternChanged { target: Rank(1), sent: 0, expected: 1, .. }
                ),
                "{mode}: {sender}"
            );
            let target = seen[1].as_ref().unwrap();
            assert!(matches!(target, Error::PeerFailed { rank: Rank(0), .. }), "{mode}: {target}");
            common::says(target, &["rank 0 failed", &lane.to_string(), "round 2"]);
        }
    }
}

#[test]
fn more_operations_are_an_error_that_names_both() {
    for mode in modes() {
        let (_, seen) = change(mode, 0, 3);
        match seen[0].as_ref().unwrap() {
            Error::PatternChanged { target, sent, expected, .. } => {
                assert_eq!((*target, *sent, *expected), (Rank(1), 3, 1));
            }
            // The target was quicker.
            Error::PeerFailed { rank: Rank(1), .. }
            | Error::UnexpectedArrivals { .. }
            | Error::OutsideWindow { .. } => {}
            other => panic!("{mode}: {other}"),
        }
    }
}

#[test]
fn a_default_sync_in_between_forgets_the_pattern() {
    common::run(common::config(2, 2), |ctx| async move {
        let one = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        for puts in 0..5 {
            for mode in [SyncMode::CACHED, SyncMode::CACHED, SyncMode::DEFAULT] {
                for _ in 0..puts {
                    ctx.put(&one.all(), slot.at(peer, 0))?;
                }
                ctx.sync(mode).window(&inbox.all()).await?;
            }
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn lanes_remember_patterns_of_their_own() {
    common::run(common::config(2, 2), |ctx| async move {
        let one = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        for _ in 0..4 {
            for lane in 0..4 {
                let (puts, lane) = (lane, ctx.lane(lane)?);
                for _ in 0..puts {
                    lane.put(&one.all(), slot.at(peer, 0))?;
                }
                lane.sync(SyncMode::CACHED).window(&inbox.all()).await?;
            }
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}
