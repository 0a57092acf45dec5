//! A mixed program gives the right result with every idle policy and number of workers.

use crate::common;
use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};
use talpf_runtime::{Array, Group, JoinHandle, Runtime};

use crate::common::POLICIES;

const TILES: usize = 32;
const STEPS: usize = 40;

/// Runs a stencil of wrapping sums over two arrays, read and written alternately.
fn stencil(group: &Group) -> JoinHandle<Vec<u64>> {
    let cells: Vec<u64> = (0..TILES as u64).collect();
    let mut now = Array::new(group, cells, 1).unwrap();
    let mut next = Array::new(group, vec![0; TILES], 1).unwrap();
    for step in 0..STEPS {
        for tile in 0..TILES {
            let (left, right) = ((tile + TILES - 1) % TILES, (tile + 1) % TILES);
            let task = group.task("stencil").priority((tile % 3) as i32 - 1);
            let task = task.input(&now.tile(left)).input(&now.tile(tile)).input(&now.tile(right));
            task.output(&next.tile(tile))
                .spawn(move |left, own, right, mut new| {
                    new[0] = left[0].wrapping_mul(3) ^ own[0] ^ right[0].wrapping_add(step as u64);
                })
                .unwrap();
        }
        std::mem::swap(&mut now, &mut next);
    }
    group.task("read").input(&now.all()).run(|all| all.to_vec()).unwrap()
}

fn serial_stencil() -> Vec<u64> {
    let mut now: Vec<u64> = (0..TILES as u64).collect();
    for step in 0..STEPS {
        let cell = |tile: usize| {
            let (left, right) = (now[(tile + TILES - 1) % TILES], now[(tile + 1) % TILES]);
            left.wrapping_mul(3) ^ now[tile] ^ right.wrapping_add(step as u64)
        };
        now = (0..TILES).map(cell).collect();
    }
    now
}

/// Chains of tasks, each over one tile, every other one async.
fn chains(group: &Group) -> JoinHandle<Vec<u64>> {
    let array = Array::new(group, vec![0u64; TILES], 1).unwrap();
    for step in 0..STEPS as u64 {
        for tile in 0..TILES {
            let task = group.task("link").inout(&array.tile(tile));
            if (step as usize + tile).is_multiple_of(2) {
                task.spawn(move |mut tile| tile[0] = tile[0] * 31 % 1_000_003 + step).unwrap();
            } else {
                task.spawn_async(move |mut tile| async move {
                    tokio::task::yield_now().await;
                    tile[0] = tile[0] * 31 % 1_000_003 + step;
                })
                .unwrap();
            }
        }
    }
    group.task("read").input(&array.all()).run(|all| all.to_vec()).unwrap()
}

/// Runs two tasks that send each other a ball.
fn ping_pong(group: &Group) -> JoinHandle<u64> {
    let (mut to_pong, mut from_ping) = mpsc::channel::<u64>(0);
    let (mut to_ping, mut from_pong) = mpsc::channel::<u64>(0);
    let pong = group.task("pong");
    pong.spawn_async(move || async move {
        while let Some(ball) = from_ping.next().await {
            to_ping.send(ball + 1).await.unwrap();
        }
    })
    .unwrap();
    let ping = group.task("ping");
    ping.run_async(move || async move {
        let mut ball = 0;
        for _ in 0..200 {
            to_pong.send(ball).await.unwrap();
            ball = from_pong.next().await.unwrap();
        }
        ball
    })
    .unwrap()
}

fn all_at_once(runtime: &Runtime) {
    let links = |link: u64, step| link * 31 % 1_000_003 + step;
    let chain = (0..STEPS as u64).fold(0, links);
    for round in 0..5 {
        let groups = [1, 2, 3].map(|number| runtime.group("part", number));
        let results = (stencil(&groups[0]), chains(&groups[1]), ping_pong(&groups[2]));
        assert_eq!(runtime.block_on(results.2).unwrap().unwrap(), 200, "round {round}");
        assert_eq!(runtime.block_on(results.1).unwrap().unwrap(), vec![chain; TILES]);
        assert_eq!(runtime.block_on(results.0).unwrap().unwrap(), serial_stencil());
        groups.iter().for_each(|group| group.wait_blocking().unwrap());
    }
}

#[test]
fn one_worker() {
    let _watchdog = common::watchdog();
    POLICIES.iter().for_each(|&policy| all_at_once(&common::unwatched(1, policy)));
}

#[test]
fn two_workers() {
    let _watchdog = common::watchdog();
    POLICIES.iter().for_each(|&policy| all_at_once(&common::unwatched(2, policy)));
}

#[test]
fn more_workers_than_cores() {
    let _watchdog = common::watchdog();
    POLICIES.iter().for_each(|&policy| all_at_once(&common::unwatched(8, policy)));
}
