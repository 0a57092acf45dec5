use proptest::prelude::*;
use tampi_shim::{Communicator, Error, Rank};

use crate::common::{on_1_to_9_ranks, run};
use crate::oracle::{all_data, bits, data, datum};

/// Input of a case.
#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    root: usize,
    /// Elements of each rank; some are 0.
    counts: Vec<usize>,
}

impl Case {
    fn root(&self) -> Rank {
        Rank(self.root as u32)
    }

    fn at_root<T>(&self, world: &Communicator, values: Vec<T>) -> Vec<T> {
        if world.rank() == self.root() { values } else { Vec::new() }
    }
}

fn cases() -> impl Strategy<Value = Case> {
    // Long ones cross what the algorithms call long.
    let count = prop_oneof![4 => 0..6usize, 1 => 1000..9000usize];
    let counts = prop::collection::vec(count, 1..=9);
    (any::<u64>(), counts, any::<prop::sample::Index>()).prop_map(|(seed, counts, root)| Case {
        seed,
        root: root.index(counts.len()),
        counts,
    })
}

async fn moves(world: Communicator, case: Case) -> Result<(), Error> {
    let Case { seed, counts, .. } = &case;
    let (seed, rank, size) = (*seed, world.rank().0 as usize, counts.len());
    let (len, root) = (counts[rank], case.root());
    let (mine, all) = (data(seed, rank, len), all_data(seed, counts));

    let buffer = if rank == case.root { all.clone() } else { vec![0.0; all.len()] };
    let buffer = world.broadcast(buffer, root).await?;
    assert_eq!(bits(&buffer), bits(&all), "broadcast");

    let room = case.at_root(&world, vec![0.0; all.len()]);
    let (mine, gathered) = world.gatherv(mine, room, counts, root).await?;
    assert_eq!(bits(&gathered), bits(&case.at_root(&world, all.clone())), "gatherv");

    let (_, piece) = world.scatterv(gathered, vec![0.0; len], counts, root).await?;
    assert_eq!(bits(&piece), bits(&mine), "scatterv");

    let (mine, everything) = world.allgatherv(mine, vec![0.0; all.len()], counts).await?;
    assert_eq!(bits(&everything), bits(&all), "allgatherv");

    // Equal blocks, as long as that of the root.
    let (len, same) = (counts[case.root], vec![counts[case.root]; size]);
    let (mine, everything) = if rank == case.root {
        (mine, all_data(seed, &same))
    } else {
        (data(seed, rank, len), all_data(seed, &same))
    };
    let (mine, all) = world.allgather(mine, vec![0.0; len * size]).await?;
    assert_eq!(bits(&all), bits(&everything), "allgather");
    let room = case.at_root(&world, vec![0.0; len * size]);
    let (_, gathered) = world.gather(mine, room, root).await?;
    assert_eq!(bits(&gathered), bits(&case.at_root(&world, everything)), "gather");
    let (_, piece) = world.scatter(gathered, vec![0.0; len], root).await?;
    assert_eq!(bits(&piece), bits(&data(seed, rank, len)), "scatter");
    Ok(())
}

/// Block `to` of rank `from`.
fn block(case: &Case, from: usize, to: usize) -> Vec<f64> {
    let len = (case.counts[from] + 3 * to) % 50;
    (0..len).map(|index| datum(case.seed, from * 16 + to, index)).collect()
}

async fn transposes(world: Communicator, case: Case) -> Result<(), Error> {
    let (rank, size) = (world.rank().0 as usize, case.counts.len());
    let sent: Vec<Vec<f64>> = (0..size).map(|to| block(&case, rank, to)).collect();
    let expected: Vec<Vec<f64>> = (0..size).map(|from| block(&case, from, rank)).collect();
    let send_counts: Vec<usize> = sent.iter().map(Vec::len).collect();
    let receive_counts: Vec<usize> = expected.iter().map(Vec::len).collect();
    let room = vec![0.0; receive_counts.iter().sum()];
    let (_, received) =
        world.alltoallv((sent.concat(), &send_counts), (room, &receive_counts)).await?;
    assert_eq!(bits(&received), bits(&expected.concat()), "alltoallv");

    let len = case.counts[case.root] % 700;
    let from = |from: usize, to: usize| data(case.seed, from * 16 + to, len);
    let sent: Vec<Vec<f64>> = (0..size).map(|to| from(rank, to)).collect();
    let expected: Vec<Vec<f64>> = (0..size).map(|there| from(there, rank)).collect();
    let (_, received) = world.alltoall(sent.concat(), vec![0.0; len * size]).await?;
    assert_eq!(bits(&received), bits(&expected.concat()), "alltoall");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_element_comes_to_its_place(case in cases()) {
        let ranks = case.counts.len();
        run(ranks, move |world| moves(world, case.clone())).expect("the program");
    }

    #[test]
    fn an_alltoall_transposes(case in cases()) {
        let ranks = case.counts.len();
        run(ranks, move |world| transposes(world, case.clone())).expect("the program");
    }
}

#[test]
fn nothing_can_be_moved() {
    on_1_to_9_ranks(async |world| {
        let nothing = Vec::<f64>::new;
        world.broadcast(nothing(), Rank(0)).await?;
        world.allgather(nothing(), nothing()).await?;
        world.alltoall(nothing(), nothing()).await?;
        let counts = vec![0; world.size() as usize];
        world.gatherv(nothing(), nothing(), &counts, Rank(world.size() - 1)).await?;
        Ok(())
    });
}

#[test]
fn elements_without_bytes_can_be_moved() {
    on_1_to_9_ranks(async |world| {
        world.broadcast(vec![(); 3], Rank(0)).await?;
        let ranks = world.size() as usize;
        world.allgather(vec![(); 2], vec![(); 2 * ranks]).await?;
        Ok(())
    });
}
