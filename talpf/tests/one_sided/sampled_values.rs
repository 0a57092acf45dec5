//! Sampled values: whole, never older than the one before, the latest in the end, and never waited for.

use std::sync::{Arc, Mutex};

use bytemuck::Pod;
use futures::StreamExt;
use futures::future::poll_immediate;
use talpf::{Context, EndError, Error, Rank, SampleReader};

use crate::common::{self, says};

/// A value of so many words, all alike.
fn words<const WORDS: usize>(number: u64) -> [u64; WORDS] {
    [number; WORDS]
}

#[track_caller]
fn number_of<const WORDS: usize>(value: [u64; WORDS]) -> u64 {
    assert!(value.iter().all(|word| *word == value[0]), "torn: {value:?}");
    value[0]
}

/// Takes values until the writer ends. Returns their numbers.
async fn take_all<const WORDS: usize>(
    mut reader: SampleReader<[u64; WORDS]>,
) -> Result<Vec<u64>, Error>
where
    [u64; WORDS]: Pod,
{
    let mut numbers = Vec::new();
    loop {
        // Between values of the stream, and after its end.
        let latest = number_of(reader.latest());
        assert!(numbers.last().is_none_or(|last| *last <= latest));
        match reader.next().await {
            Some(value) => numbers.push(number_of(value?)),
            None => break,
        }
    }
    assert!(reader.next().await.is_none(), "a stream that has ended stays so");
    numbers.push(number_of(reader.latest()));
    Ok(numbers)
}

async fn write_and_read<const WORDS: usize>(ctx: Context, values: u64) -> Result<Vec<u64>, Error>
where
    [u64; WORDS]: Pod,
{
    // The writer reads, too.
    let value = ctx.sampled_value(0, 0..ctx.size(), words::<WORDS>(7)).await?;
    let mut reader = value.reader.unwrap();
    assert!(number_of(reader.latest()) >= 7);
    let write = async {
        if let Some(mut writer) = value.writer {
            for number in 0..values {
                writer.write(words(10 + number))?;
                if number % 16 == 0 {
                    ctx.group().wait_for(std::time::Duration::from_nanos(1)).await;
                }
            }
        }
        Ok(())
    };
    let (written, taken): (Result<(), Error>, _) = futures::join!(write, take_all(reader));
    written.and(taken)
}

#[test]
fn every_sample_is_whole_and_the_last_one_comes() {
    fn check<const WORDS: usize>(values: u64)
    where
        [u64; WORDS]: Pod,
    {
        for (ranks, workers) in [(1, 1), (2, 1), (2, 2), (3, 2)] {
            let run = |ctx| write_and_read::<WORDS>(ctx, values);
            for (rank, numbers) in
                common::run(common::config(ranks, workers), run).unwrap().into_iter().enumerate()
            {
                assert!(numbers.is_sorted(), "rank {rank}: {numbers:?}");
                let last = if values == 0 { 7 } else { 9 + values };
                assert_eq!(numbers.last(), Some(&last), "rank {rank} of {ranks}");
            }
        }
    }
    check::<1>(0);
    check::<1>(1_000);
    check::<3>(300);
    // Longer than what a put copies, and than what travels with its claim.
    check::<64>(100);
    check::<1024>(100);
}

#[test]
fn a_writer_does_not_wait_for_a_reader_that_takes_nothing() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let mut value = ctx.sampled_value(0, [1], 0u32).await?;
        if ctx.rank() == Rank(0) {
            let mut writer = value.take_writer()?;
            (1..=1_000).try_for_each(|number| writer.write(number))?;
            ctx.notifications().notify(1, 0, 0).await?;
            // The end follows the last value, which the reader has not asked for.
            ctx.notifications().wait(0).await?;
            return Ok(0);
        }
        let mut reader = value.take_reader()?;
        ctx.notifications().wait(0).await?;
        let mut last = 0;
        while last < 1_000 {
            last = reader.next().await.unwrap()?;
        }
        assert!(poll_immediate(reader.next()).await.is_none(), "no value is there twice");
        assert_eq!(reader.latest(), last);
        ctx.notifications().notify(0, 0, 0).await?;
        Ok(last)
    });
    assert_eq!(ends.unwrap(), [0, 1_000]);
}

#[test]
fn readers_that_are_dropped_hold_up_nobody() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        let value = ctx.sampled_value(1, [0, 2], [0u64; 64]).await?;
        match (value.writer, value.reader) {
            (Some(mut writer), _) => {
                for number in 0..500 {
                    writer.write([number; 64])?;
                    ctx.group().wait_for(std::time::Duration::from_nanos(1)).await;
                }
                Ok(0)
            }
            (None, Some(mut reader)) if ctx.rank() == Rank(0) => {
                Ok(number_of(reader.next().await.unwrap()?).min(1))
            }
            (None, reader) => Ok(take_all(reader.unwrap()).await?.last().copied().unwrap()),
        }
    });
    assert_eq!(ends.unwrap()[2], 499);
}

/// More of them than a rank has slots, each gone before the next.
#[test]
fn a_value_that_has_ended_leaves_its_slot_to_others() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        for round in 0..100u64 {
            let value = ctx.sampled_value(0, [1], round).await?;
            if let Some(mut writer) = value.writer {
                writer.write(round + 1)?;
            }
            if let Some(reader) = value.reader {
                let last = reader.collect::<Vec<_>>().await.pop().unwrap()?;
                assert_eq!(last, round + 1);
            }
        }
        Ok(())
    });
    ends.unwrap();
}

#[test]
fn arguments_that_differ_or_cannot_be_are_an_error_at_all_ranks() {
    for what in ["writer", "size of an item", "type of an item", "readers"] {
        let ends = common::run(common::config(3, 1), move |ctx| async move {
            let differs = ctx.rank() == Rank(2);
            let error = match what {
                "writer" if differs => ctx.sampled_value(1, [1], 0u64).await.err(),
                "size of an item" if differs => ctx.sampled_value(0, [1], 0u32).await.err(),
                "type of an item" if differs => ctx.sampled_value(0, [1], [0u8; 8]).await.err(),
                "readers" if differs => ctx.sampled_value(0, [2], 0u64).await.err(),
                _ => ctx.sampled_value(0, [1], 0u64).await.err(),
            };
            let other = if differs { "rank 0" } else { "rank 2" };
            says(&error.unwrap(), &["sampled_value", what, other]);
            let nobody = ctx.sampled_value(0, [3], 0u64).await.err().unwrap();
            says(&nobody, &["rank 3", "3 ranks"]);
            // The run goes on.
            let mut value = ctx.sampled_value(0, [1], 0u64).await?;
            let (writer, reader) = (value.take_writer(), value.take_reader());
            match ctx.rank() {
                Rank(0) => says(&reader.unwrap_err(), &["rank 0 has no reader"]),
                Rank(1) => says(&writer.unwrap_err(), &["rank 1 has no writer"]),
                _ => {}
            }
            Ok(())
        });
        ends.unwrap();
    }
}

#[test]
fn a_writer_lost_in_a_panic_is_an_error() {
    common::quiet_panics();
    let ended = common::run(common::unwatched(2, 2), |ctx| async move {
        let value = ctx.sampled_value(0, [1], 0u64).await?;
        if let Some(mut writer) = value.writer {
            let task = ctx.group().task("write").run_async(move || async move {
                writer.write(3).unwrap();
                panic!("broken");
            })?;
            let _ = task.await;
        }
        if let Some(mut reader) = value.reader {
            let error = loop {
                match reader.next().await {
                    Some(Ok(value)) => assert_eq!(value, 3),
                    Some(Err(error)) => break error,
                    None => panic!("the writer is lost"),
                }
            };
            if !matches!(error, Error::PeerFailed { .. }) {
                assert!(matches!(error, Error::End(EndError::Failed { .. })), "{error:?}");
                says(&error, &["rank 1"]);
            }
            assert!(reader.next().await.is_none());
        }
        Ok(())
    });
    // The run may report the panic of the task.
    if let Err(error) = ended {
        says(&error, &["broken"]);
    }
}

#[test]
fn ends_fail_with_the_rank_that_failed() {
    for failing in [0, 1] {
        let ended = common::run(common::unwatched(2, 2), move |ctx| async move {
            let mut value = ctx.sampled_value(0, [1], 0u64).await?;
            if ctx.rank() == Rank(failing) {
                ctx.notifications().wait(0).await?;
                let _kept = value;
                return Err::<(), _>(Error::NoSuchSlot { slot: 99 });
            }
            ctx.notifications().notify(failing, 0, 0).await?;
            let error = match (&mut value.writer, &mut value.reader) {
                (Some(writer), _) => loop {
                    if let Err(error) = writer.write(1) {
                        break error;
                    }
                    ctx.group().wait_for(std::time::Duration::from_nanos(1)).await;
                },
                (None, reader) => match reader.as_mut().unwrap().next().await {
                    Some(value) => value.unwrap_err(),
                    // The failing rank has dropped its writer first.
                    None => return Ok(()),
                },
            };
            assert!(matches!(error, Error::End(EndError::Failed { .. })), "{error:?}");
            says(&error, &[&format!("rank {failing}"), "slot 99"]);
            Err(error)
        });
        assert!(ended.is_err());
    }
}

#[test]
fn the_report_of_a_hang_names_the_writer() {
    let ended = common::run(common::watched(2, 1), |ctx| async move {
        let value = ctx.sampled_value(0, [1], 0u64).await?;
        let _writer = value.writer;
        if let Some(mut reader) = value.reader {
            return Err::<(), _>(reader.next().await.unwrap().unwrap_err());
        }
        ctx.notifications().wait(0).await.map(drop)
    });
    let text = ended.unwrap_err().to_string();
    if text.contains("`main` of rank 1 is suspended") {
        assert!(text.contains("rank 1: waits for a value that rank 0 writes"), "{text}");
    }
}

/// Ends that a program keeps in a `static`.
#[test]
fn ends_of_a_run_that_has_ended_are_of_no_more_use() {
    let kept = Arc::new(Mutex::new(None));
    let ends = common::run(common::config(1, 1), |ctx| {
        let kept = Arc::clone(&kept);
        async move {
            *kept.lock().unwrap() = Some(ctx.sampled_value(0, [0], 4u64).await?);
            Ok(())
        }
    });
    ends.unwrap();
    let mut value = kept.lock().unwrap().take().unwrap();
    let written = value.writer.as_mut().unwrap().write(5);
    assert!(matches!(written, Err(Error::RunEnded)), "{written:?}");
    let mut reader = value.take_reader().unwrap();
    let next = futures::executor::block_on(reader.next());
    assert!(matches!(next, Some(Err(Error::RunEnded))), "{next:?}");
    assert_eq!(reader.latest(), 4);
}
