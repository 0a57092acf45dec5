//! A ball that two ranks send back and forth, in tasks.
//!
//! Every send and every receive is a task that has the ball as a region, so all rounds are spawned
//! at once and run in the order of their accesses. A task that awaits a message is suspended and
//! leaves its worker to others. Run it with `cargo run --release -p tampi-shim --example ping`.

use talpf_runtime::{Array, Error as RuntimeError};
use tampi_shim::{Communicator, Config, Error, Rank, Tag, exec};

const ROUNDS: u64 = 1000;
const TAG: Tag = Tag(0);

pub(crate) fn main() -> Result<(), Error> {
    let ends = exec(Config { ranks: 2, ..Config::default() }, play)?;
    let hits = [ends[0].0, ends[1].0];
    assert_eq!(hits, [2 * ROUNDS; 2]);
    let way_us = ends[0].1 * 1e6 / (2 * ROUNDS) as f64;
    println!("{} hits, one in {way_us:.2} us", hits[0]);
    Ok(())
}

/// Returns the hits that the ball has had, and the seconds that they have taken.
async fn play(world: Communicator) -> Result<(u64, f64), Error> {
    let ball = Array::new(world.group(), vec![0u64], 1)?;
    let other = Rank(1 - world.rank().0);
    let hit = || -> Result<(), RuntimeError> {
        let to = world.clone();
        let task = world.group().task("hit").inout(&ball.all());
        task.spawn_async(move |mut ball| async move {
            ball[0] += 1;
            to.send(ball, other, TAG).await.expect("the other rank receives it");
        })
    };
    let wait = || -> Result<(), RuntimeError> {
        let from = world.clone();
        let task = world.group().task("wait").output(&ball.all());
        task.spawn_async(move |ball| async move {
            from.recv(ball, other, TAG).await.expect("the other rank sends it");
        })
    };
    let started = world.group().clock().now();
    for _ in 0..ROUNDS {
        if world.rank() == Rank(0) {
            hit()?;
            wait()?;
        } else {
            wait()?;
            hit()?;
        }
    }
    let hits = world.group().task("read").input(&ball.all()).run(|ball| ball[0])?.await?;
    Ok((hits, (world.group().clock().now() - started).as_secs_f64()))
}
