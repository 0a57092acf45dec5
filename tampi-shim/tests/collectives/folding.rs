use proptest::prelude::*;
use talpf_runtime::Array;
use talpf_runtime::operator::Operator as Combine;
use tampi_shim::operator::*;
use tampi_shim::{Communicator, Error, Located, Rank};

use crate::common::{on_1_to_9_ranks, run};
use crate::oracle::{bits, data, prefixes, reduced};

/// Input of a case.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    size: usize,
    root: usize,
    len: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    // Long ones cross what the algorithms call long.
    let len = prop_oneof![4 => 0..12usize, 1 => 4000..9000usize];
    (any::<u64>(), 1..=9usize, any::<prop::sample::Index>(), len)
        .prop_map(|(seed, size, root, len)| Case { seed, size, root: root.index(size), len })
}

/// Every reduction with one operator against the oracle, to the bit.
async fn reductions<T>(
    world: &Communicator,
    case: Case,
    of_datum: impl Fn(f64) -> T,
    operator: impl Operator<T> + Copy,
) -> Result<(), Error>
where
    T: bytemuck::Pod + Send + Sync + PartialEq + std::fmt::Debug,
{
    let Case { seed, size, root, len } = case;
    let rank = world.rank().0 as usize;
    let of = |rank| data(seed, rank, len).into_iter().map(&of_datum).collect::<Vec<T>>();
    let operands: Vec<Vec<T>> = (0..size).map(of).collect();
    let mine = operands[rank].clone();
    let total = reduced(operands.clone(), |left, right| operator.apply(left, right));
    let bytes = |values: &[T]| bytemuck::cast_slice::<T, u8>(values).to_vec();
    let check = |values: &[T], expected: &[T], what: &str| {
        assert_eq!(bytes(values), bytes(expected), "{what}: {values:?}, not {expected:?}");
    };

    let result = world.reduce(mine.clone(), operator, Rank(root as u32)).await?;
    check(&result, if rank == root { &total } else { &mine }, "reduce");
    let result = world.allreduce(mine.clone(), operator).await?;
    check(&result, &total, "allreduce");

    let counts: Vec<usize> =
        (0..size).map(|rank| (rank + 1) * len / size - rank * len / size).collect();
    let start = rank * len / size;
    let block = vec![T::zeroed(); counts[rank]];
    let (_, block) = world.reduce_scatter(mine.clone(), block, &counts, operator).await?;
    check(&block, &total[start..start + counts[rank]], "reduce_scatter");

    let scanned = prefixes(operands, |left, right| operator.apply(left, right));
    let result = world.scan(mine.clone(), operator).await?;
    check(&result, &scanned[rank], "scan");
    let result = world.exscan(mine.clone(), operator).await?;
    check(&result, if rank > 0 { &scanned[rank - 1] } else { &mine }, "exscan");
    Ok(())
}

/// `x -> slope * x + offset`, in numbers that wrap around: joining two of them is associative and
/// not commutative.
type Affine = [u64; 2];

fn then(first: Affine, second: Affine) -> Affine {
    let offset = second[0].wrapping_mul(first[1]).wrapping_add(second[1]);
    [second[0].wrapping_mul(first[0]), offset]
}

fn affine(datum: f64) -> Affine {
    [datum.to_bits() | 1, datum.to_bits() >> 7]
}

fn located(datum: f64) -> Located<i64> {
    Located { value: datum as i64 % 4, index: datum.to_bits() % 8 }
}

async fn with_all_operators(world: Communicator, case: Case) -> Result<(), Error> {
    reductions(&world, case, |datum| datum, Sum).await?;
    reductions(&world, case, |datum| datum as f32, Product).await?;
    reductions(&world, case, |datum| datum as i16, Sum).await?;
    reductions(&world, case, |datum| datum as i32, Product).await?;
    reductions(&world, case, |datum| datum, Min).await?;
    reductions(&world, case, |datum| datum as i8, Max).await?;
    reductions(&world, case, |datum| datum as i32 % 2, LogicalAnd).await?;
    reductions(&world, case, |datum| datum as u8 % 2, LogicalOr).await?;
    reductions(&world, case, |datum| datum as u16 % 3, LogicalXor).await?;
    reductions(&world, case, f64::to_bits, And).await?;
    reductions(&world, case, f64::to_bits, Or).await?;
    reductions(&world, case, |datum| u128::from(datum.to_bits()), Xor).await?;
    reductions(&world, case, located, MinLocation).await?;
    reductions(&world, case, located, MaxLocation).await?;
    reductions(&world, case, affine, then).await
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn reductions_give_the_bits_of_the_serial_order(case in cases()) {
        run(case.size, move |world| with_all_operators(world, case)).expect("the program");
    }
}

#[test]
fn a_sum_is_the_same_in_every_run() {
    let program = async |world: Communicator| {
        let mine = data(7, world.rank().0 as usize, 33);
        let sum = world.allreduce(mine, Sum).await?;
        Ok::<_, Error>(bits(&sum))
    };
    let first = run(9, program).expect("the program");
    assert!(first.iter().all(|sum| *sum == first[0]));
    for _ in 0..5 {
        assert_eq!(run(9, program).expect("the program"), first);
    }
}

#[test]
fn an_operator_can_hold_what_it_needs() {
    on_1_to_9_ranks(async |world| {
        let modulus = [97u64];
        let mine = vec![u64::from(world.rank().0) + 50];
        let sum = world.allreduce(mine, move |a, b| (a + b) % modulus[0]).await?;
        let expected: u64 = (0..u64::from(world.size())).map(|rank| rank + 50).sum();
        assert_eq!(sum[0] % 97, expected % 97);
        Ok(())
    });
}

#[test]
fn tasks_and_ranks_agree_on_nan_and_on_signed_zeros() {
    const OPERANDS: [[f64; 3]; 6] = [
        [f64::NAN, 1.0, 2.0],
        [1.0, f64::NAN, f64::NEG_INFINITY],
        [1.0, f64::INFINITY, f64::NAN],
        [0.0, -0.0, 0.0],
        [-0.0, 0.0, -0.0],
        [f64::NAN, -0.0, 0.0],
    ];

    async fn agree<O>(world: &Communicator, operator: O) -> Result<Vec<f64>, Error>
    where
        O: Operator<f64> + Combine<f64> + Copy,
    {
        let mine = OPERANDS.map(|operands| operands[world.rank().0 as usize]).to_vec();
        let of_ranks = world.allreduce(mine, operator).await?;
        let of_tasks = Array::new(world.group(), vec![O::identity(); OPERANDS.len()], 1)?;
        for rank in 0..3 {
            let task = world.group().task("reduce").reduction(&of_tasks.all(), operator);
            task.spawn(move |mut into| {
                let pairs = into.iter_mut().zip(OPERANDS);
                pairs.for_each(|(into, operands)| O::combine(into, operands[rank]));
            })?;
        }
        let read = world.group().task("read").input(&of_tasks.all());
        let of_tasks = read.run(|values| values.to_vec())?.await?;
        let differ = |(tasks, ranks): (&f64, &f64)| {
            tasks.to_bits() != ranks.to_bits() && !(tasks.is_nan() && ranks.is_nan())
        };
        assert!(!of_tasks.iter().zip(&of_ranks).any(differ), "{of_tasks:?}, not {of_ranks:?}");
        Ok(of_ranks)
    }

    let program = async |world: Communicator| {
        Ok::<_, Error>((agree(&world, Min).await?, agree(&world, Max).await?))
    };
    for (least, most) in run(3, program).expect("the program") {
        for place in [0, 1, 2, 5] {
            assert!(least[place].is_nan() && most[place].is_nan(), "{least:?}, {most:?}");
        }
        for place in [3, 4] {
            assert!(least[place] == 0.0 && least[place].is_sign_negative(), "{least:?}");
            assert!(most[place] == 0.0 && most[place].is_sign_positive(), "{most:?}");
        }
    }
}
