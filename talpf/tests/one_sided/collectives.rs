//! Collectives give what a loop over the ranks gives.

use crate::common;
use proptest::prelude::*;
use talpf::{
    Allgather, Allreduce, Alltoall, Broadcast, Config, Context, Error, Gather, OneSided, Rank,
    Scan, Scatter,
};
use talpf_runtime::Array;
use talpf_runtime::operator::{Operator, Sum};

/// An operator that is neither commutative nor associative.
#[derive(Clone, Copy)]
struct Append;

impl Operator<u64> for Append {
    fn identity() -> u64 {
        0
    }

    fn combine(into: &mut u64, from: u64) {
        *into = into.wrapping_mul(31).wrapping_add(from);
    }
}

fn append(digits: impl IntoIterator<Item = u64>) -> u64 {
    digits.into_iter().fold(0, |mut digest, digit| {
        Append::combine(&mut digest, digit);
        digest
    })
}

#[derive(Clone, Copy, Debug)]
struct Case {
    ranks: usize,
    workers: usize,
    len: usize,
    root: usize,
    steps: usize,
    is_replayed: bool,
}

impl Case {
    fn config(&self) -> Config {
        common::config(self.ranks as u32, self.workers)
    }

    fn root(&self) -> Rank {
        Rank(self.root as u32)
    }
}

/// Returns element `index` of what a rank gives in a step.
fn element(rank: usize, step: u64, index: usize) -> u64 {
    let mixed = (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (step << 20) ^ index as u64;
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// The collectives of a rank, each on a lane of its own, so that all of a step are in flight.
struct Collectives {
    broadcast: Broadcast<u64>,
    gather: Gather<u64>,
    scatter: Scatter<u64>,
    allgather: Allgather<u64>,
    alltoall: Alltoall<u64>,
    allreduce: Allreduce<u64, Append>,
    scan: Scan<u64, Append>,
}

impl Collectives {
    async fn new(ctx: &Context, Case { len, root, .. }: Case) -> Result<Self, Error> {
        let root = Rank(root as u32);
        Ok(Collectives {
            broadcast: Broadcast::new(ctx, ctx.lane(1)?, len, root).await?,
            gather: Gather::new(ctx, ctx.lane(2)?, len, root).await?,
            scatter: Scatter::new(ctx, ctx.lane(3)?, len, root).await?,
            allgather: Allgather::new(ctx, ctx.lane(4)?, len).await?,
            alltoall: Alltoall::new(ctx, ctx.lane(5)?, len).await?,
            allreduce: Allreduce::new(ctx, ctx.lane(6)?, len, Append).await?,
            scan: Scan::new(ctx, ctx.lane(7)?, len, Append).await?,
        })
    }
}

/// Regions that a rank gives and gets.
struct Arrays {
    step: Array<u64>,
    piece: Array<u64>,
    blocks: Array<u64>,
    data: Array<u64>,
    gathered: Array<u64>,
    scattered: Array<u64>,
    all: Array<u64>,
    exchanged: Array<u64>,
    reduced: Array<u64>,
    scanned: Array<u64>,
    digest: Array<u64>,
}

impl Arrays {
    fn new(ctx: &Context, Case { ranks, len, .. }: Case) -> Result<Self, Error> {
        let array = |len| common::array(ctx, vec![0; len]);
        Ok(Arrays {
            step: array(1)?,
            piece: array(len)?,
            blocks: array(ranks * len)?,
            data: array(len)?,
            gathered: array(ranks * len)?,
            scattered: array(len)?,
            all: array(ranks * len)?,
            exchanged: array(ranks * len)?,
            reduced: array(len)?,
            scanned: array(len)?,
            digest: array(1)?,
        })
    }
}

/// Declares a step: new elements, all collectives, and a digest of what they give.
fn declare<'r>(
    scope: &impl OneSided<'r>,
    rank: usize,
    collectives: &'r Collectives,
    arrays: &'r Arrays,
) -> Result<(), Error> {
    let Arrays { piece, blocks, data, gathered, scattered, all, exchanged, .. } = arrays;
    let Arrays { step, reduced, scanned, digest, .. } = arrays;
    let make = scope.task("make").inout(&step.all());
    let make = make.output([piece.all(), blocks.all(), data.all()]);
    make.spawn(move |mut step, given| {
        for mut given in given {
            let new = (0..given.len()).map(|index| element(rank, step[0], index));
            let new: Vec<u64> = new.collect();
            given.copy_from_slice(&new);
        }
        step[0] += 1;
    })?;
    collectives.broadcast.run(scope, &data.all())?;
    collectives.gather.run(scope, &piece.all(), Some(&gathered.all()))?;
    collectives.scatter.run(scope, Some(&blocks.all()), &scattered.all())?;
    collectives.allgather.run(scope, &piece.all(), &all.all())?;
    collectives.alltoall.run(scope, &blocks.all(), &exchanged.all())?;
    collectives.allreduce.run(scope, &piece.all(), &reduced.all())?;
    collectives.scan.run(scope, &piece.all(), &scanned.all())?;
    let results = [data, gathered, scattered, all, exchanged, reduced, scanned];
    let task = scope.task("digest").input(results.map(Array::all)).inout(&digest.all());
    Ok(task.spawn(|results, mut digest| {
        let parts = results.iter().flat_map(|result| result.iter().copied());
        digest[0] = append([digest[0], append(parts)]);
    })?)
}

/// Returns the digest of a rank as a loop over the ranks computes it.
fn expected(rank: usize, Case { ranks, len, root, steps, .. }: Case) -> u64 {
    let digest_of_step = |step: u64| {
        let pieces = |of: usize| (0..len).map(move |index| element(of, step, index));
        let block =
            |of: usize, to: usize| (0..len).map(move |index| element(of, step, to * len + index));
        let fold = |last: usize| {
            (0..len).map(move |index| {
                let first = element(0, step, index);
                (1..=last)
                    .map(|of| element(of, step, index))
                    .fold(first, |left, right| left.wrapping_mul(31).wrapping_add(right))
            })
        };
        let everything: Vec<u64> = (0..ranks).flat_map(pieces).collect();
        let gathered = if rank == root { everything.clone() } else { vec![0; ranks * len] };
        let parts = pieces(root)
            .chain(gathered)
            .chain(block(root, rank))
            .chain(everything)
            .chain((0..ranks).flat_map(|of| block(of, rank)))
            .chain(fold(ranks - 1))
            .chain(fold(rank));
        append(parts)
    };
    append((0..steps as u64).map(digest_of_step))
}

fn check(case: Case) {
    let digests = common::run(case.config(), move |ctx| async move {
        let (rank, steps) = (ctx.rank().0 as usize, case.steps);
        let collectives = Collectives::new(&ctx, case).await?;
        let arrays = Arrays::new(&ctx, case)?;
        if case.is_replayed {
            ctx.iterate(steps, |step| declare(step, rank, &collectives, &arrays))?;
        } else {
            (0..steps).try_for_each(|_| declare(&ctx, rank, &collectives, &arrays))?;
        }
        // The tasks go on without them.
        drop(collectives);
        Ok(common::read(&ctx, &arrays.digest).await?[0])
    });
    let expected: Vec<u64> = (0..case.ranks).map(|rank| expected(rank, case)).collect();
    assert_eq!(digests.unwrap(), expected, "{case:?}");
}

#[test]
fn collectives_give_what_a_loop_over_the_ranks_gives() {
    for ranks in (1..=9).chain([16]) {
        for len in [0, 1, 5] {
            let case =
                Case { ranks, workers: 2, len, root: ranks / 2, steps: 3, is_replayed: false };
            check(case);
            check(Case { is_replayed: true, root: ranks - 1, ..case });
        }
    }
}

#[test]
fn long_collectives_give_the_same() {
    for ranks in [2, 3, 4, 7] {
        // Blocks of equal and of unequal lengths; around the limit of long reductions.
        for len in [8_192 / ranks, 8_192 / ranks + 1, 9_001] {
            let case =
                Case { ranks, workers: 2, len, root: 1, steps: 3, is_replayed: len % 2 == 0 };
            check(case);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn any_collectives_give_what_a_loop_over_the_ranks_gives(
        (ranks, root) in (1usize..=9).prop_flat_map(|ranks| (Just(ranks), 0..ranks)),
        workers in 1usize..=2,
        len in prop_oneof![0usize..40, 500usize..3_000],
        steps in 1usize..8,
        is_replayed: bool,
    ) {
        check(Case { ranks, workers, len, root, steps, is_replayed });
    }
}

#[test]
fn sums_of_floats_have_the_bits_of_the_loop_everywhere() {
    let value = |rank: u32| 0.1 * f64::from(rank + 1) * 10f64.powi(rank as i32 * 3);
    for len in [1, 5_000] {
        let sums = common::run(common::config(5, 2), move |ctx| async move {
            let number = common::array(&ctx, vec![value(ctx.rank().0); len])?;
            let sum = Allreduce::new(&ctx, ctx.lane(9)?, len, Sum).await?;
            sum.run(&ctx, &number.all(), &number.all())?;
            common::read(&ctx, &number).await
        });
        let expected = (1..5).fold(value(0), |sum, rank| sum + value(rank));
        for number in sums.unwrap().into_iter().flatten() {
            assert_eq!(number.to_bits(), expected.to_bits());
        }
    }
}

#[test]
fn collectives_that_are_dropped_give_their_lane_and_slot_back() {
    let ends = common::run(common::config(3, 2), |ctx| async move {
        let number = common::array(&ctx, vec![1u64])?;
        for _ in 0..100 {
            let sum = Allreduce::new(&ctx, ctx.lane(1)?, 1, Sum).await?;
            sum.run(&ctx, &number.all(), &number.all())?;
            drop(sum);
            ctx.group().wait().await?;
        }
        common::read(&ctx, &number).await
    });
    let expected = 3u64.wrapping_pow(100);
    assert_eq!(ends.unwrap(), [[expected]; 3]);
}

#[test]
fn arguments_that_differ_are_refused_at_all_ranks() {
    let case = Case { ranks: 3, workers: 1, len: 4, root: 0, steps: 1, is_replayed: false };
    let errors = common::run(case.config(), move |ctx| async move {
        let odd = usize::from(ctx.rank() == Rank(1));
        let len = Allgather::<u64>::new(&ctx, ctx.lane(1)?, 4 + odd).await.unwrap_err();
        let lane = Allgather::<u64>::new(&ctx, ctx.lane(1 + odd as u8)?, 4).await.unwrap_err();
        let root = Rank(odd as u32);
        let root = Gather::<u64>::new(&ctx, ctx.lane(1)?, 4, root).await.unwrap_err();
        let absent = Scatter::<u64>::new(&ctx, ctx.lane(1)?, 4, Rank(3)).await.unwrap_err();
        let call = match odd {
            0 => Allgather::<u64>::new(&ctx, ctx.lane(1)?, 4).await.unwrap_err(),
            _ => Alltoall::<u64>::new(&ctx, ctx.lane(1)?, 4).await.unwrap_err(),
        };
        // None of these has had an effect.
        Collectives::new(&ctx, case).await?;
        Ok([len, lane, root, absent, call])
    });
    for (rank, [len, lane, root, absent, call]) in errors.unwrap().iter().enumerate() {
        let both = |here, there| if rank == 1 { [there, here] } else { [here, there] };
        let says = |error, what: &str, [here, there]: [&str; 2]| {
            let values = format!("{what} is {here} here and {there} at ");
            common::says(error, &[&values]);
        };
        says(len, "allgather: number of elements", both("4", "5"));
        says(lane, "allgather: number of the lane", both("1", "2"));
        says(root, "gather: root", both("0", "1"));
        assert!(matches!(absent, Error::NoSuchRank { rank: Rank(3), ranks: 3 }), "{absent}");
        assert!(matches!(call, Error::CallsDiffer { .. }), "{call}");
    }
}

#[test]
fn regions_of_other_lengths_are_refused() {
    let case = Case { ranks: 2, workers: 1, len: 4, root: 0, steps: 1, is_replayed: false };
    let ends = common::run(case.config(), move |ctx| async move {
        let collectives = Collectives::new(&ctx, case).await?;
        let array = common::array(&ctx, vec![0u64; 8])?;
        let (three, four) = (array.region(0..3), array.region(0..4));
        let errors = [
            collectives.broadcast.run(&ctx, &three),
            collectives.allgather.run(&ctx, &three, &array.all()),
            collectives.allgather.run(&ctx, &four, &three),
            collectives.alltoall.run(&ctx, &three, &array.all()),
            collectives.alltoall.run(&ctx, &array.all(), &three),
            collectives.scatter.run(&ctx, Some(&array.all()), &three),
            collectives.allreduce.run(&ctx, &three, &four),
            collectives.scan.run(&ctx, &four, &three),
        ];
        for error in errors {
            let error = error.unwrap_err();
            assert!(matches!(error, Error::RegionLength { elements: 3, .. }), "{error}");
        }
        if ctx.rank() == case.root() {
            let error = collectives.gather.run(&ctx, &four, None).unwrap_err();
            assert!(matches!(error, Error::RegionLength { elements: 0, expected: 8, .. }));
        }
        Ok(())
    });
    ends.unwrap();
}
