//! Iterations with operations and syncs: a replayed program is the program.

use crate::common;
use talpf::{Config, Context, Error, Lane, MemorySlot, OneSided, Rank, SyncMode};
use talpf_runtime::Array;

/// Elements of a line of numbers.
const LEN: usize = 24;

/// Two lines of numbers of each rank, each with slots of its own, and counters.
struct Lines {
    lines: [Array<u64>; 2],
    slots: [MemorySlot<u64>; 2],
    counters: Array<u64>,
    counter_slot: MemorySlot<u64>,
    before: Array<u64>,
}

impl Lines {
    async fn new(ctx: &Context) -> Result<Self, Error> {
        let line = |salt: u64| {
            let number = |at| 1 + salt + 100 * u64::from(ctx.rank().0) + at as u64;
            Array::new(ctx.group(), (0..LEN).map(number).collect(), 2)
        };
        let lines = [line(0)?, line(7)?];
        let slots = [ctx.register_global(&lines[0]).await?, ctx.register_global(&lines[1]).await?];
        let counters = common::array(ctx, vec![0u64; 2])?;
        let counter_slot = ctx.register_global(&counters).await?;
        let before = common::array(ctx, vec![0u64; 1])?;
        Ok(Lines { lines, slots, counters, counter_slot, before })
    }

    /// Declares a step, after which each rank has half of a line of its neighbour in its own, in
    /// `pieces` pieces, by puts if `by_puts` and by gets otherwise.
    fn declare<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        ctx: &Context,
        (step, pieces, by_puts): (usize, usize, bool),
        mode: SyncMode,
    ) -> Result<(), Error> {
        let (rank, ranks) = (ctx.rank().0, ctx.size());
        let (next, previous) = (Rank((rank + 1) % ranks), Rank((rank + ranks - 1) % ranks));
        let ([old, new], slot) = ([step % 2, 1 - step % 2].map(|n| &self.lines[n]), &self.slots);
        let half = LEN / 2;
        let piece = |array: &'r Array<u64>, half_at: usize, number: usize| {
            let len = half / pieces;
            array.region(half_at + number * len..half_at + (number + 1) * len)
        };
        let mut sync = scope.sync(mode);
        for number in 0..pieces {
            let at = number * (half / pieces);
            if by_puts {
                scope.put(&piece(old, 0, number), slot[1 - step % 2].at(next, half + at))?;
                sync = sync.window(&piece(new, half, number));
            } else {
                scope.get(slot[step % 2].at(previous, at), &piece(new, half, number))?;
                sync = sync.expose(&piece(old, 0, number));
            }
        }
        if by_puts {
            scope.fetch_and_add(self.counter_slot.at(next, 0), 1, &self.before.all())?;
            sync = sync.window(&self.counters.all());
        }
        sync.spawn()?;
        let task = scope.task("mix").input(&old.all()).inout(&new.all()).input(&self.before.all());
        Ok(task.spawn(move |old, mut new, before| {
            for at in 0..half {
                new[at] = old[at].wrapping_mul(31) ^ new[half + at].rotate_left(9) ^ before[0];
            }
        })?)
    }

    async fn read(&self, ctx: &Context) -> Result<Vec<u64>, Error> {
        let [one, other] = &self.lines;
        let mut numbers = common::read(ctx, one).await?;
        numbers.extend(common::read(ctx, other).await?);
        numbers.extend(common::read(ctx, &self.counters).await?);
        Ok(numbers)
    }
}

/// Returns the memory of all ranks after `steps` steps, spawned or replayed.
fn ends(
    config: Config,
    replayed: bool,
    (steps, pieces, by_puts): (usize, usize, bool),
    (lane, mode): (u8, SyncMode),
) -> Vec<Vec<u64>> {
    let arrivals = (pieces + usize::from(by_puts)) as u32;
    let mode = match mode.arrivals {
        talpf::Arrivals::Msg(_) => SyncMode { arrivals: talpf::Arrivals::Msg(arrivals), ..mode },
        _ => mode,
    };
    let ended = common::run(config, move |ctx| async move {
        let lines = Lines::new(&ctx).await?;
        let lane = ctx.lane(lane)?;
        if replayed {
            ctx.iterate_unrolled(steps, 2, |iteration, step| {
                let iteration = iteration.on(&lane)?;
                lines.declare(&iteration, &ctx, (step, pieces, by_puts), mode)
            })?;
        } else {
            for step in 0..steps {
                lines.declare(&lane, &ctx, (step, pieces, by_puts), mode)?;
            }
        }
        ctx.group().wait().await?;
        lines.read(&ctx).await
    });
    ended.unwrap()
}

#[test]
fn a_replayed_program_is_the_program() {
    for ranks in [1, 2, 3] {
        for mode in common::modes(ranks) {
            for (workers, lane, steps) in [(1, 0, 7), (2, 5, 20), (2, 0, 1)] {
                // One window, a few, and more than a few.
                for (pieces, by_puts) in [(1, true), (4, false), (12, true)] {
                    let (config, how) = (common::config(ranks, workers), (steps, pieces, by_puts));
                    let spawned = ends(config.clone(), false, how, (lane, mode));
                    let replayed = ends(config, true, how, (lane, mode));
                    assert_eq!(spawned, replayed, "{ranks} ranks, {mode}, {how:?}");
                }
            }
        }
    }
}

/// Adds a number of the neighbour to one's own.
fn add<'r>(
    scope: &impl OneSided<'r>,
    slot: &MemorySlot<u64>,
    peer: Rank,
    [mine, inbox]: [&'r Array<u64>; 2],
) -> Result<(), Error> {
    scope.put(&mine.all(), slot.at(peer, 0))?;
    scope.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
    let task = scope.task("add").input(&inbox.all()).inout(&mine.all());
    Ok(task.spawn(|inbox, mut mine| mine[0] += inbox[0])?)
}

/// Runs `program` on two ranks, with a number of each rank, an inbox and its slot.
fn pair<F>(
    program: impl Fn(Context, [Array<u64>; 2], MemorySlot<u64>, Rank) -> F + Copy + Send + 'static,
) -> Result<Vec<u64>, Error>
where
    F: Future<Output = Result<Context, Error>> + Send + 'static,
{
    common::run(common::config(2, 2), move |ctx| async move {
        let mine = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        let ctx = program(ctx, [mine.clone(), inbox], slot, peer).await?;
        Ok(common::read(&ctx, &mine).await?[0])
    })
}

#[test]
fn iterations_follow_each_other_and_what_was_spawned() {
    let ended = pair(|ctx, arrays, slot, peer| async move {
        let both = [&arrays[0], &arrays[1]];
        add(&ctx, &slot, peer, both)?;
        ctx.iterate(3, |step| add(step, &slot, peer, both))?;
        ctx.iterate(2, |step| add(step, &slot, peer, both))?;
        ctx.group().wait().await?;
        let sync = ctx.sync(SyncMode::DEFAULT).spawn()?;
        assert_eq!(sync.round().0, 6);
        sync.await?;
        add(&ctx, &slot, peer, both)?;
        Ok(ctx)
    });
    assert_eq!(ended.unwrap(), [1 << 7; 2]);
}

#[test]
fn an_operation_spawned_before_is_of_the_first_round() {
    let ended = pair(|ctx, arrays, slot, peer| async move {
        let [mine, inbox] = [&arrays[0], &arrays[1]];
        ctx.put(&mine.all(), slot.at(peer, 0))?;
        ctx.iterate(1, |step| step.sync(SyncMode::msg(1)).window(&inbox.all()).spawn())?;
        let add = ctx.group().task("add").input(&inbox.all()).inout(&mine.all());
        add.spawn(|inbox, mut mine| mine[0] += inbox[0])?;
        ctx.group().wait().await?;
        Ok(ctx)
    });
    assert_eq!(ended.unwrap(), [2; 2]);
}

/// Returns the error of rank 0, whose `misuse` is given its lane 0 and another one.
fn refused(
    misuse: impl Fn(&Context, &Lane, &MemorySlot<u64>, [&Array<u64>; 2]) -> Result<(), Error>
    + Copy
    + Send
    + 'static,
) -> Error {
    let ended = pair(move |ctx, arrays, slot, peer| async move {
        let lane = ctx.lane(9)?;
        if ctx.rank() < peer {
            misuse(&ctx, &lane, &slot, [&arrays[0], &arrays[1]])?;
        }
        ctx.sync(SyncMode::DEFAULT).await?;
        drop(lane);
        Ok(ctx)
    });
    ended.unwrap_err()
}

/// A use of a lane, of a slot and of an array.
type Use = fn(&Lane, &MemorySlot<u64>, &Array<u64>) -> Result<(), Error>;

#[test]
fn the_program_does_not_use_the_lane_of_an_iteration() {
    let of_iteration = ["lane 9", "is used by an iteration that has not ended: wait for the group"];
    let uses: [Use; 3] = [
        |lane, slot, array| lane.put(&array.all(), slot.at(Rank(0), 0)),
        |lane, _, _| lane.sync(SyncMode::msg(0)).spawn().map(drop),
        |lane, slot, _| {
            drop(lane.round().put_copy(&[1], slot.at(Rank(0), 0)));
            Ok(())
        },
    ];
    for program in uses {
        let error = refused(move |ctx, lane, slot, [mine, _]| {
            ctx.iterate(50_000, |step| step.on(lane)?.sync(SyncMode::msg(0)).spawn())?;
            program(lane, slot, mine)
        });
        common::says(&error, &of_iteration);
    }
}

#[test]
fn a_lane_of_an_iteration_has_no_other_owner() {
    let error = refused(|ctx, lane, _, _| {
        let other = ctx.lane(10)?;
        ctx.iterate(50_000, |step| {
            step.on(lane)?.sync(SyncMode::msg(0)).spawn()?;
            step.on(&other)?.sync(SyncMode::msg(0)).spawn()
        })?;
        drop(other);
        ctx.lane(10).map(drop)
    });
    common::says(&error, &["lane 10", "is used by an iteration that has not ended"]);
}

#[test]
fn a_lane_has_one_owner() {
    let error = refused(|ctx, _, _, _| ctx.lane(9).map(drop));
    common::says(&error, &["lane 9", "has an owner"]);
    let ended = pair(|ctx, arrays, slot, peer| async move {
        for _ in 0..3 {
            // Its rounds go on with the next owner.
            add(&ctx.lane(9)?, &slot, peer, [&arrays[0], &arrays[1]])?;
        }
        Ok(ctx)
    });
    assert_eq!(ended.unwrap(), [1 << 3; 2]);
}

#[test]
fn a_lane_of_another_rank_is_refused() {
    for channel in [false, true] {
        let (give, given) = std::sync::mpsc::channel();
        let given = std::sync::Arc::new(std::sync::Mutex::new(given));
        let ended = common::run(common::config(2, 2), move |ctx| {
            let (give, given) = (give.clone(), std::sync::Arc::clone(&given));
            async move {
                if ctx.rank() == Rank(1) {
                    give.send(ctx.lane(4)?).unwrap();
                }
                ctx.sync(SyncMode::DEFAULT).await?;
                if ctx.rank() == Rank(0) {
                    let lane: Lane = given.lock().unwrap().try_recv().unwrap();
                    if channel {
                        drop(ctx.double_buffered_channel::<u64>(lane, &[]).await?);
                    } else {
                        ctx.iterate(2, |step| step.on(&lane).map(drop))?;
                    }
                }
                ctx.sync(SyncMode::DEFAULT).await
            }
        });
        common::says(&ended.unwrap_err(), &["lane 4", "is one of another rank or run"]);
    }
}

#[test]
fn a_sync_follows_every_operation_of_a_step() {
    let error = refused(|ctx, lane, slot, [mine, _]| {
        ctx.iterate(3, |step| {
            step.sync(SyncMode::msg(0)).spawn()?;
            step.on(lane)?.put(&mine.all(), slot.at(Rank(0), 0))
        })
    });
    assert!(matches!(error, Error::StepNotClosed { .. }), "{error}");
    common::says(&error, &["lane 9", "no sync"]);
}

#[test]
fn an_iteration_that_is_not_declared_gives_its_rounds_back() {
    let ended = pair(|ctx, arrays, slot, peer| async move {
        let both = [&arrays[0], &arrays[1]];
        let declared = ctx.iterate_unrolled(4, 2, |step, number| {
            add(step, &slot, peer, both)?;
            if number == 1 { Err(Error::NoSuchLink { link: 1, links: 1 }) } else { Ok(()) }
        });
        assert!(matches!(declared, Err(Error::NoSuchLink { .. })), "{declared:?}");
        let overlapping = ctx.iterate(2, |step| {
            let sync = step.sync(SyncMode::msg(0)).window(&arrays[1].all());
            sync.window(&arrays[1].region(..1)).spawn()
        });
        common::says(&overlapping.unwrap_err(), &["lane 0 round 0", "overlaps"]);
        add(&ctx, &slot, peer, both)?;
        ctx.iterate(0, |step| add(step, &slot, peer, both))?;
        add(&ctx, &slot, peer, both)?;
        Ok(ctx)
    });
    assert_eq!(ended.unwrap(), [1 << 2; 2]);
}

#[test]
fn a_task_that_fails_in_a_step_fails_the_run() {
    for workers in [1, 2] {
        let ended = common::run(common::config(2, workers), |ctx| async move {
            let mine = common::array(&ctx, vec![1u64])?;
            let inbox = common::array(&ctx, vec![0u64])?;
            let slot = ctx.register_global(&inbox).await?;
            let peer = Rank(1 - ctx.rank().0);
            ctx.iterate(50, |step| {
                let task = step.task("fails").inout(&mine.all());
                task.spawn(move |_mine| {
                    let step = talpf_runtime::current_step();
                    assert!(peer == Rank(0) || step != Some(20), "planned to fail");
                })?;
                add(step, &slot, peer, [&mine, &inbox])
            })?;
            Ok::<_, Error>(ctx.group().wait().await?)
        });
        common::says(&ended.unwrap_err(), &["planned to fail"]);
    }
}

#[test]
fn a_group_that_is_cancelled_in_a_step_fails_the_run() {
    let ended = common::run(common::config(2, 2), |ctx| async move {
        let mine = common::array(&ctx, vec![1u64])?;
        let inbox = common::array(&ctx, vec![0u64])?;
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        let group = ctx.group().clone();
        ctx.iterate(50, |step| {
            let group = group.clone();
            step.task("cancels").inout(&mine.all()).spawn(move |_mine| {
                if peer == Rank(0) && talpf_runtime::current_step() == Some(20) {
                    group.cancel("on purpose");
                }
            })?;
            add(step, &slot, peer, [&mine, &inbox])
        })?;
        Ok::<_, Error>(ctx.group().wait().await?)
    });
    common::says(&ended.unwrap_err(), &["on purpose"]);
}

#[test]
fn a_put_outside_every_window_of_a_step_fails_both_ranks() {
    let ended = common::run(common::config(2, 2), |ctx| async move {
        let (mine, inbox) = (common::array(&ctx, vec![1u64])?, common::array(&ctx, vec![0u64; 4])?);
        let slot = ctx.register_global(&inbox).await?;
        let peer = Rank(1 - ctx.rank().0);
        ctx.iterate(5, |step| {
            step.put(&mine.all(), slot.at(peer, 3))?;
            step.sync(SyncMode::CACHED).window(&inbox.region(..3)).spawn()
        })?;
        Ok::<_, Error>(ctx.group().wait().await?)
    });
    common::says(&ended.unwrap_err(), &["elements 3..4", "lane 0 round", "outside every window"]);
}
