//! Arrays that no slot is are sources and destinations all the same.

use crate::common;
use talpf::{Config, Error, Rank, SyncMode};
use talpf_runtime::{Matrix, Tiling};

/// Elements of a put that is too long to be copied.
const LONG: usize = 100;

#[test]
fn a_long_put_a_get_and_an_atomic() {
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let (rank, peer) = (ctx.rank().0, Rank(1 - ctx.rank().0));
        let inbox = common::array(&ctx, vec![0u64; LONG + 1])?;
        let slot = ctx.register_global(&inbox).await?;
        let mine = common::array(&ctx, vec![u64::from(rank) + 5; LONG])?;
        ctx.put(&mine.all(), slot.at(peer, 0))?;
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;

        let got = common::array(&ctx, vec![0u64; LONG])?;
        ctx.get(slot.at(peer, 0), &got.all())?;
        ctx.sync(SyncMode::DEFAULT).expose(&inbox.all()).await?;

        let before = common::array(&ctx, vec![7u64; 3])?;
        ctx.fetch_and_add(slot.at(peer, LONG), 4, &before.region(1..2))?;
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        ctx.compare_and_swap(slot.at(peer, LONG), 4, 9, &before.region(2..))?;
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        let read = ctx.group().task("read").input(&inbox.all()).input(&got.all());
        let read = read.input(&before.all());
        let copy = |inbox: &[u64], got: &[u64], before: &[u64]| {
            (inbox.to_vec(), got.to_vec(), before.to_vec())
        };
        Ok(read.run(move |inbox, got, before| copy(&inbox, &got, &before))?.await?)
    });
    for (rank, (inbox, got, before)) in ends.unwrap().into_iter().enumerate() {
        let (own, others) = (rank as u64 + 5, 6 - rank as u64);
        assert_eq!(inbox, [vec![others; LONG], vec![9]].concat());
        assert_eq!(got, [own; LONG], "what this rank has put there");
        assert_eq!(before, [7, 0, 4]);
    }
}

/// Of a rectangle the device touches the rows only.
#[test]
fn a_rectangle_of_a_matrix() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let peer = Rank(1 - ctx.rank().0);
        let values = common::array(&ctx, (0..64u64).collect())?;
        let slot = ctx.register_global(&values).await?;
        let matrix = Matrix::new(ctx.group(), vec![1000u64; 128], 8, Tiling::new(16, 8))?;
        ctx.get(slot.at(peer, 0), &matrix.region(0..16, 2..6))?;
        ctx.sync(SyncMode::DEFAULT).expose(&values.all()).await?;
        let read = ctx.group().task("read").input(&matrix.all());
        Ok(read.run(|all| (0..16).map(|row| all.row(row).to_vec()).collect::<Vec<_>>())?.await?)
    });
    for end in ends.unwrap() {
        for (row, values) in end.into_iter().enumerate() {
            let first = 4 * row as u64;
            let got: Vec<u64> = (first..first + 4).collect();
            assert_eq!(values, [&[1000; 2], &got[..], &[1000; 2]].concat(), "row {row}");
        }
    }
}

/// Registrations of operations end with them: the device has room again.
#[test]
fn a_small_device_is_enough_for_many_operations() {
    let mut config = Config { ..common::config(2, 2) };
    config.device.attributes.max_mr = 16;
    let ends = common::run(config, |ctx| async move {
        let peer = Rank(1 - ctx.rank().0);
        let inbox = common::array(&ctx, vec![0u64; LONG])?;
        let slot = ctx.register_global(&inbox).await?;
        for _ in 0..100 {
            let mine = common::array(&ctx, vec![1u64; LONG])?;
            ctx.put(&mine.all(), slot.at(peer, 0))?;
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        }
        Ok(())
    });
    ends.unwrap();
}

/// An operation beyond the room of the device is an error, and fails the run.
#[test]
fn a_device_without_room_is_an_error_that_names_its_limit() {
    let mut config = common::unwatched(1, 1);
    config.device.attributes.max_mr = 8;
    let ends = common::run(config, |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; LONG])?;
        let slot = ctx.register_global(&inbox).await?;
        for _ in 0..8 {
            // Parked, as no window opens.
            let mine = common::array(&ctx, vec![1u64; LONG])?;
            ctx.lane(1)?.put(&mine.all(), slot.at(Rank(0), 0))?;
        }
        ctx.lane(1)?.sync(SyncMode::DEFAULT).window(&inbox.all()).await
    });
    let error: Error = ends.unwrap_err();
    common::says(&error, &["8"]);
    assert!(matches!(error, Error::Device(_)), "{error:?}");
}
