//! Transfers longer than the device carries at once are split.

use crate::common;
use talpf::{Config, Error, Rank, SyncMode};
use talpf_runtime::{Matrix, Tiling};

/// Returns settings of a device whose largest transfer is `bytes`.
fn device(bytes: u32) -> Config {
    let mut config = common::unwatched(2, 2);
    config.device.attributes.max_message_size = bytes;
    config
}

/// Puts `len` bytes to the peer and gets as many back.
fn there_and_back(largest: u32, len: usize) {
    let ends = common::run(device(largest), move |ctx| async move {
        let peer = Rank(1 - ctx.rank().0);
        let values: Vec<u8> = (0..len).map(|at| (at * 7 + at / 256) as u8).collect();
        let source = common::array(&ctx, values.clone())?;
        ctx.register_local(&source)?;
        let inbox = common::array(&ctx, vec![0u8; len + 2])?;
        let slot = ctx.register_global(&inbox).await?;
        ctx.put(&source.all(), slot.at(peer, 1))?;
        let sync = ctx.sync(SyncMode::msg(1));
        sync.window(&inbox.region(1..=len)).await?;
        let copy = common::array(&ctx, vec![0u8; len])?;
        ctx.register_local(&copy)?;
        ctx.get(slot.at(peer, 1), &copy.all())?;
        ctx.sync(SyncMode::DEFAULT).expose(&inbox.all()).await?;
        assert_eq!(common::read(&ctx, &copy).await?, values);
        let seen = common::read(&ctx, &inbox).await?;
        assert_eq!((seen[0], seen[len + 1]), (0, 0));
        Ok::<_, Error>(seen[1..=len].to_vec() == values)
    });
    match ends {
        Ok(right) => assert_eq!(right, [true, true], "{len} bytes of {largest}"),
        Err(error) => panic!("{len} bytes of {largest}: {error}"),
    }
}

fn around(largest: u32, multiples: &[usize]) {
    for multiple in multiples {
        for len in [
            multiple * largest as usize - 1,
            multiple * largest as usize,
            multiple * largest as usize + 1,
        ] {
            there_and_back(largest, len);
        }
    }
}

#[test]
fn around_multiples_of_the_largest_transfer() {
    for largest in [512, 1_000, 4_096] {
        around(largest, &[1, 2, 3, 16, 17]);
    }
}

/// Short puts, which are copied, have to be split as well if the device carries less.
#[test]
fn a_device_that_carries_less_than_a_short_put() {
    around(64, &[1, 2, 3, 4, 5]);
}

/// More requests than a send queue holds at once.
#[test]
fn more_pieces_than_the_send_queue_holds() {
    for pieces in [1_000, 1_022, 1_023, 1_024, 1_025, 5_000] {
        there_and_back(512, 512 * pieces);
    }
}

/// Requests without completion of short puts lie before a long one in the queue.
#[test]
fn many_pieces_behind_short_puts() {
    for pieces in [961, 1_000, 1_022] {
        common::run(device(512), move |ctx| async move {
            let peer = Rank(1 - ctx.rank().0);
            let source = common::array(&ctx, vec![1u8; 512 * pieces])?;
            ctx.register_local(&source)?;
            let inbox = common::array(&ctx, vec![0u8; 512 * pieces])?;
            let slot = ctx.register_global(&inbox).await?;
            for short in 0..63 {
                ctx.put(&source.region(..1), slot.at(peer, short))?;
            }
            ctx.put(&source.all(), slot.at(peer, 0))?;
            ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
            assert_eq!(common::read(&ctx, &inbox).await?, vec![1; 512 * pieces]);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

/// Puts a rectangle of `rows` rows; a row is an entry of a gather list.
fn strided(rows: usize) -> Result<(), Error> {
    const COLS: usize = 3;
    let ends = common::run(common::unwatched(2, 2), move |ctx| async move {
        let values = (0..(rows * COLS) as u32).collect();
        let tiling = Tiling::new(rows.max(1), COLS);
        let grid = Matrix::new(ctx.group(), values, COLS, tiling)?;
        ctx.register_local(&grid)?;
        let inbox = common::array(&ctx, vec![0u32; rows * 2])?;
        let slot = ctx.register_global(&inbox).await?;
        ctx.put(&grid.region(.., 1..), slot.at(Rank(1 - ctx.rank().0), 0))?;
        ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
        common::read(&ctx, &inbox).await
    })?;
    let expected: Vec<u32> = (0..rows as u32).flat_map(|row| [3 * row + 1, 3 * row + 2]).collect();
    assert_eq!(ends, [expected.clone(), expected]);
    Ok(())
}

#[test]
fn rectangles_of_more_rows_than_a_gather_list_holds() {
    for rows in [1, 2, 15, 16, 17, 31, 32, 33, 1_000, 16_000] {
        strided(rows).unwrap();
    }
}

/// Either it is carried, or the error says how far one can go; nothing hangs.
#[test]
fn a_rectangle_of_very_many_rows() {
    for rows in [16_368, 16_369, 16_384, 16_400, 100_000] {
        if let Err(error) = strided(rows) {
            assert!(rows > 16_368, "{rows} rows: {error}");
            assert!(
                matches!(error, Error::Limit { limit: 1_024, .. } | Error::PeerFailed { .. }),
                "{error}"
            );
            common::says(&error, &["expected at most 1024"]);
        }
    }
}

#[test]
fn sixty_four_mebibytes() {
    const LEN: usize = 8 << 20;
    let ends = common::run(common::config(2, 2), |ctx| async move {
        let me = u64::from(ctx.rank().0);
        let source = common::array(&ctx, (0..LEN as u64).map(|at| at ^ me << 60).collect())?;
        ctx.register_local(&source)?;
        let inbox = common::array(&ctx, vec![0u64; LEN])?;
        let slot = ctx.register_global(&inbox).await?;
        ctx.put(&source.all(), slot.at(Rank(1 - ctx.rank().0), 0))?;
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
        let check = ctx.group().task("check").input(&inbox.all());
        let other = (1 - me) << 60;
        let check = check.run(move |inbox| {
            inbox.iter().enumerate().all(|(at, &value)| value == at as u64 ^ other)
        });
        Ok::<_, Error>(check?.await?)
    });
    assert_eq!(ends.unwrap(), [true, true]);
}
