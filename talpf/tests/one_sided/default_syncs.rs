//! A default sync ends when what was put to random targets is there, however many ranks there are.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context as TaskContext, Poll};

use proptest::prelude::*;
use proptest::test_runner::TestRng;

use crate::common::{self, Gate};
use talpf::{Config, Context, Error, Rank, SyncMode};

/// Elements that a rank has for each source.
const PLACES: usize = 3;

/// For every round, how many puts each rank has for each: by source and target, as a rule none.
type Plan = Vec<Vec<Vec<usize>>>;

fn plan(ranks: usize, rounds: usize, rng: &mut TestRng) -> Plan {
    let round = |rng: &mut TestRng| {
        // From none at all to some for most ranks.
        let (few, many) = ([0, 1, 4, 64][rng.random_range(0..4)], 64);
        let mut puts = || {
            let some = rng.random_range(0..many) < few;
            if some { rng.random_range(1..=PLACES) } else { 0 }
        };
        (0..ranks).map(|_| (0..ranks).map(|_| puts()).collect()).collect()
    };
    (0..rounds).map(|_| round(rng)).collect()
}

/// Returns the value of a put, which differs in every round and from every rank.
fn value(round: usize, source: usize, place: usize) -> u64 {
    ((round + 1) * 10_000 + source * 10 + place) as u64
}

async fn rounds(ctx: Context, plan: Plan, mode: SyncMode) -> Result<(), Error> {
    let (rank, ranks) = (ctx.rank().0 as usize, ctx.size() as usize);
    let inbox = common::array(&ctx, vec![0u64; ranks * PLACES])?;
    let slot = ctx.register_global(&inbox).await?;
    let mut expected = vec![0u64; ranks * PLACES];
    for (number, round) in plan.iter().enumerate() {
        // Some windows open before the puts of others come, and some after.
        let early = (number + rank).is_multiple_of(2);
        let open_round = ctx.round();
        let declare = || ctx.sync(mode).window(&inbox.all()).spawn();
        let declared = if early { Some(declare()?) } else { None };
        for (target, puts) in round[rank].iter().enumerate() {
            for place in 0..*puts {
                let to = slot.at(Rank(target as u32), rank * PLACES + place);
                open_round.put_copy(&[value(number, rank, place)], to).await?;
            }
        }
        drop(open_round);
        let sync = match declared {
            Some(sync) => sync,
            None => declare()?,
        };
        sync.await?;
        for (source, puts) in round.iter().map(|of_source| of_source[rank]).enumerate() {
            for place in 0..puts {
                expected[source * PLACES + place] = value(number, source, place);
            }
        }
        assert_eq!(common::read(&ctx, &inbox).await?, expected, "rank {rank}, round {number}");
    }
    Ok(())
}

fn check(ranks: u32, config: &Config, seed: &mut TestRng) {
    let without_barrier = SyncMode { barrier: false, ..SyncMode::DEFAULT };
    for mode in [SyncMode::DEFAULT, without_barrier, SyncMode::DEFAULT.with_ack()] {
        let plan = plan(ranks as usize, 5, seed);
        let what = format!("{ranks} ranks, {mode:?}, {plan:?}");
        let ends = common::run_case(&what, config.clone(), |ctx| rounds(ctx, plan.clone(), mode));
        ends.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]
    #[test]
    fn what_was_put_to_random_targets_is_there(
        rng in any::<u64>().prop_perturb(|_, rng| rng), workers in 1..4usize,
    ) {
        let mut rng = rng;
        for ranks in [1, 2, 3, 5, 8, 9, 17, 33] {
            for check_conflicts in [false, true] {
                let config = Config { check_conflicts, ..common::config(ranks, workers) };
                check(ranks, &config, &mut rng);
            }
        }
    }
}

/// The last rank gets something that it does not let in until all others have begun to wait.
#[test]
fn none_has_ended_before_all_have_their_arrivals() {
    for (ranks, check_conflicts) in
        [2, 3, 5, 8, 33].into_iter().flat_map(|n| [(n, false), (n, true)])
    {
        let (open, late) = (Gate::default(), Arc::new(AtomicBool::new(false)));
        let left = Arc::new(AtomicU32::new(ranks - 1));
        let config = Config { check_conflicts, ..common::config(ranks, 2) };
        let ends = common::run(config, move |ctx| {
            let (open, late, left) = (open.clone(), Arc::clone(&late), Arc::clone(&left));
            async move {
                let inbox = common::array(&ctx, vec![0u64])?;
                let slot = ctx.register_global(&inbox).await?;
                let last = Rank(ctx.size() - 1);
                if ctx.rank() == last {
                    common::hold(&ctx, &inbox, open, late)?;
                    ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).spawn()?;
                    return ctx.group().wait().await.map_err(Error::from);
                }
                if ctx.rank() == Rank(0) {
                    ctx.round().put_copy(&[7], slot.at(last, 0)).await?;
                }
                let mut sync = ctx.sync(SyncMode::DEFAULT).spawn()?;
                for _ in 0..10 {
                    ctx.arrivals();
                    let poll = |cx: &mut TaskContext<'_>| Poll::Ready(Pin::new(&mut sync).poll(cx));
                    let is_over = poll_fn(poll).await.is_ready();
                    assert!(!is_over || late.load(Ordering::SeqCst), "{} of {ranks}", ctx.rank());
                }
                if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                    open.open();
                }
                sync.await
            }
        });
        ends.unwrap();
    }
}
