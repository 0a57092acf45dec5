//! Messages of all modes, sizes and shapes.

use talpf_runtime::{Array, Matrix, Tiling};
use tampi_shim::{
    ANY_SOURCE, Communicator, Error, Rank, Status, Tag, iwait, iwaitall, iwaitall_statuses,
};

use crate::harness::{Case, cases};

pub(crate) const CASES: &[Case] = cases![
    a_ring_passes_numbers,
    every_mode_and_size_arrives,
    tasks_complete_when_their_messages_do,
    statuses_come_with_their_tasks,
    columns_of_a_matrix_travel,
    many_messages_are_under_way_at_once,
    a_send_that_is_let_go_arrives,
];

fn neighbours(world: &Communicator) -> (Rank, Rank) {
    let (rank, size) = (world.rank().0, world.size());
    (Rank((rank + size - 1) % size), Rank((rank + 1) % size))
}

async fn a_ring_passes_numbers(world: Communicator) -> Result<(), Error> {
    let (rank, (left, right)) = (world.rank().0, neighbours(&world));
    for round in 0..10 {
        let receive = world.irecv(vec![0u32; 3], left, Tag(round));
        let sent = world.send(vec![rank, round], right, Tag(round)).await?;
        assert_eq!(sent, [rank, round]);
        let (received, status) = receive.await?;
        assert_eq!(received, [left.0, round, 0]);
        assert_eq!((status.source, status.tag), (left, Tag(round)));
        assert_eq!((status.bytes, status.elements::<u32>()), (8, Some(2)));
    }
    Ok(())
}

async fn every_mode_and_size_arrives(world: Communicator) -> Result<(), Error> {
    let (left, right) = neighbours(&world);
    for words in [0, 1, 7, 100, 3_000, 100_000, 400_000] {
        for (mode, tag) in [Tag(0), Tag(1), Tag::MAX].into_iter().enumerate() {
            let receive = world.irecv(vec![u64::MAX; words], left, tag);
            let bytes: Vec<u64> = (0..words as u64).map(|n| n * 3 + u64::from(tag.0)).collect();
            match mode {
                0 => drop(world.send(bytes.clone(), right, tag).await?),
                1 => drop(world.ssend(bytes.clone(), right, tag).await?),
                _ => drop(world.bsend(bytes.clone(), right, tag).await?),
            }
            let (received, status) = receive.await?;
            assert_eq!(status.bytes, 8 * words as u64);
            assert!(received == bytes, "{words} words with {tag}");
        }
    }
    Ok(())
}

async fn tasks_complete_when_their_messages_do(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let (left, right) = neighbours(&world);
    let value = Array::new(world.group(), vec![0u64; 4], 4)?;
    for round in 0..5 {
        if rank > 0 || round > 0 {
            let from = world.clone();
            let task = world.group().task("receive").output(&value.all());
            task.spawn(move |value| iwait(from.irecv(value, left, Tag(3))).expect("in a task"))?;
        }
        let task = world.group().task("add").inout(&value.all());
        task.spawn(|mut value| value.iter_mut().for_each(|value| *value += 1))?;
        let to = world.clone();
        let task = world.group().task("send").input(&value.all());
        task.spawn(move |value| iwaitall([to.isend(value, right, Tag(3))]).expect("in a task"))?;
    }
    let last = world.group().task("read").input(&value.all()).run(|value| value.to_vec())?.await?;
    assert_eq!(last, [u64::from(4 * size + rank + 1); 4]);
    if rank == 0 {
        let (_, status) = world.recv(vec![0u64; 4], left, Tag(3)).await?;
        assert_eq!(status.elements::<u64>(), Some(4));
    }
    Ok(())
}

async fn statuses_come_with_their_tasks(world: Communicator) -> Result<(), Error> {
    let (left, right) = neighbours(&world);
    let statuses = Array::new(world.group(), vec![Status::default(); 2], 2)?;
    let from = world.clone();
    let task = world.group().task("receive").output(&statuses.all());
    task.spawn(move |statuses| {
        let receive = |tag| from.irecv(vec![0u16; 100], ANY_SOURCE, tag);
        iwaitall_statuses([Tag(1), Tag(2)].map(receive), statuses).expect("in a task");
    })?;
    let read = world.group().task("read").input(&statuses.all()).run(|all| all.to_vec())?;
    for tag in [2, 1] {
        world.send(vec![0u16; 10 * tag as usize], right, Tag(tag)).await?;
    }
    let known = read.await?;
    for (status, tag) in known.iter().zip([1, 2]) {
        let expected = (left, Tag(tag), Some(10 * u64::from(tag)));
        assert_eq!((status.source, status.tag, status.elements::<u16>()), expected);
    }
    Ok(())
}

async fn many_messages_are_under_way_at_once(world: Communicator) -> Result<(), Error> {
    let (left, right) = neighbours(&world);
    let receives: Vec<_> = (0..300).map(|n| world.irecv(vec![0u32], left, Tag(n))).collect();
    let sends: Vec<_> = (0..300).rev().map(|n| world.isend(vec![n * 7], right, Tag(n))).collect();
    for (receive, n) in receives.into_iter().zip(0..) {
        assert_eq!(receive.await?.0, [n * 7]);
    }
    for send in sends {
        send.await?;
    }
    Ok(())
}

async fn a_send_that_is_let_go_arrives(world: Communicator) -> Result<(), Error> {
    let (left, right) = neighbours(&world);
    drop(world.isend(vec![5u8; 3_000_000], right, Tag(0)));
    let (received, _) = world.recv(vec![0u8; 3_000_000], left, Tag(0)).await?;
    assert!(received == vec![5u8; 3_000_000]);
    Ok(())
}

async fn columns_of_a_matrix_travel(world: Communicator) -> Result<(), Error> {
    let (left, right) = neighbours(&world);
    let tiling = Tiling::new(5, 1);
    let here: Vec<u32> = (0..35).collect();
    let from = Matrix::new(world.group(), here, 7, tiling)?;
    let to = Matrix::new(world.group(), vec![0u32; 35], 7, tiling)?;
    let comm = world.clone();
    let task = world.group().task("receive").output(&to.region(1..4, 2..5));
    task.spawn(move |columns| iwait(comm.irecv(columns, left, Tag(0))).expect("in a task"))?;
    let comm = world.clone();
    let task = world.group().task("send").input(&from.region(2..5, 4..7));
    task.spawn(move |columns| iwait(comm.isend(columns, right, Tag(0))).expect("in a task"))?;
    let all = world.group().task("read").input(&to.all());
    let received: Vec<u32> = all.run(|all| all.view().iter().copied().collect())?.await?;
    let at = |row: usize, col: usize| match (row, col) {
        (1..4, 2..5) => ((row + 1) * 7 + col + 2) as u32,
        _ => 0,
    };
    let expected: Vec<u32> = (0..35).map(|n| at(n / 7, n % 7)).collect();
    assert_eq!(received, expected);
    Ok(())
}
