//! Measures the cost of short messages between two ranks, each a task of this process.
//!
//! ```text
//! short_messages                              both figures on a worker for each rank
//! short_messages exchange|window WORKERS REPETITIONS
//! ```
//!
//! The second form does one thing once, for profilers. `exchange` sends 8 bytes to and fro and
//! gives half of the time; `window` sends 64 messages of 8 bytes, and waits for an answer before
//! the next 64.

use tampi_shim::{Communicator, Config, Error, Rank, Tag, exec};

const WINDOW: usize = 64;
const ROUNDS: usize = 15;
const TAG: Tag = Tag(0);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [what, workers, repetitions] = arguments.as_slice() {
        let (workers, repetitions) = (workers.parse()?, repetitions.parse()?);
        println!("{what}: {:.1} ns", measure(what == "window", workers, repetitions)? * 1e9);
        return Ok(());
    }
    for (what, is_window, repetitions) in
        [("8 B one-way", false, 20_000), ("8 B, window of 64", true, 2_000)]
    {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(measure(is_window, 2, repetitions)? * 1e9);
        }
        times.sort_by(f64::total_cmp);
        let [low, median, high] = [times[0], times[ROUNDS / 2], times[ROUNDS - 1]];
        println!("{what:20} {median:7.1} ns [{low:.1} .. {high:.1}], {:.2} M/s", 1e3 / median);
    }
    Ok(())
}

/// Seconds a message.
fn measure(is_window: bool, workers: usize, repetitions: usize) -> Result<f64, Error> {
    let mut config = Config { ranks: 2, ..Config::default() };
    config.runtime.workers = workers;
    let seconds = exec(config, |world: Communicator| async move {
        // Once to warm up.
        let mut seconds = 0.0;
        for repetitions in [repetitions.div_ceil(10), repetitions] {
            let start = world.group().clock().now();
            let messages = match is_window {
                true => window(&world, repetitions).await?,
                false => exchange(&world, repetitions).await?,
            };
            seconds = (world.group().clock().now() - start).as_secs_f64() / messages as f64;
        }
        Ok::<_, Error>(seconds)
    })?;
    Ok(seconds[0])
}

async fn exchange(world: &Communicator, repetitions: usize) -> Result<usize, Error> {
    let other = Rank(1 - world.rank().0);
    let (mut outgoing, mut incoming) = (vec![1u64], vec![0u64]);
    for _ in 0..repetitions {
        if world.rank() == Rank(0) {
            outgoing = world.send(outgoing, other, TAG).await?;
        }
        (incoming, _) = world.recv(incoming, other, TAG).await?;
        if world.rank() == Rank(1) {
            outgoing = world.send(outgoing, other, TAG).await?;
        }
    }
    Ok(2 * repetitions)
}

async fn window(world: &Communicator, repetitions: usize) -> Result<usize, Error> {
    let other = Rank(1 - world.rank().0);
    let mut buffers = vec![vec![0u64]; WINDOW];
    let mut requests = Vec::with_capacity(WINDOW);
    for _ in 0..repetitions {
        requests.extend(buffers.drain(..).map(|buffer| match world.rank() {
            Rank(0) => world.isend(buffer, other, TAG),
            _ => world.irecv(buffer, other, TAG),
        }));
        for request in requests.drain(..) {
            buffers.push(request.await?.0);
        }
        match world.rank() {
            Rank(0) => drop(world.recv(Vec::<u8>::new(), other, TAG).await?),
            _ => drop(world.send(Vec::<u8>::new(), other, TAG).await?),
        }
    }
    Ok(WINDOW * repetitions)
}
