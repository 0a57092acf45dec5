//! Running a program on some ranks, and never for ever.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use tampi_shim::{Communicator, Config, Error, Protocols, exec};

use crate::requested_time::in_requested_time;

/// Longer than any test takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A configuration with `ranks` ranks on `workers` workers.
pub(crate) fn config(ranks: u32, workers: usize) -> Config {
    let mut config = Config { ranks, ..Config::default() };
    config.runtime.workers = workers;
    config
}

/// The same with these thresholds.
pub(crate) fn with_protocols(config: Config, eager: usize, lazy: usize) -> Config {
    let protocols = Some(Protocols { eager, lazy, rtr: 2000 });
    Config { protocols, ..config }
}

/// Runs `program` on every rank. Panics if it has not ended in time.
pub(crate) fn run<R, F>(
    config: Config,
    program: impl Fn(Communicator) -> F + Clone + Send + 'static,
) -> Result<Vec<R>, Error>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let (done, result) = mpsc::channel();
    let config = in_requested_time(config);
    let thread = std::thread::spawn(move || done.send(exec(config, &program)));
    match result.recv_timeout(TIMEOUT) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("not ended after {TIMEOUT:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            thread.join().map(|_| ()).expect("the program");
            unreachable!("a thread that ends well sends a result")
        }
    }
}

/// Runs `program` on 1, 2 and 8 workers.
pub(crate) fn run_on_workers<F>(
    ranks: u32,
    program: impl Fn(Communicator) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    for workers in [1, 2, 8] {
        run_well(config(ranks, workers), program.clone());
    }
}

/// Runs `program` and expects it to end well.
pub(crate) fn run_well<F>(
    config: Config,
    program: impl Fn(Communicator) -> F + Clone + Send + 'static,
) where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let (ranks, workers) = (config.ranks, config.runtime.workers);
    let result = run(config, program);
    result.unwrap_or_else(|error| panic!("{ranks} ranks, {workers} workers: {error}"));
}

/// Waits until nothing of this rank is under way, and checks that nothing was left behind.
pub(crate) async fn nothing_is_left(world: &Communicator) {
    loop {
        let left = world.statistics();
        assert_eq!((left.waiting_receives, left.waiting_messages), (0, 0), "{left:?}");
        if left.unfinished == 0 {
            assert_eq!(left.kept_bytes, 0, "{left:?}");
            return;
        }
        world.group().wait_for(Duration::from_micros(50)).await;
    }
}

/// Returns bytes that differ by message and by index.
pub(crate) fn pattern(seed: u32, length: usize) -> Vec<u8> {
    (0..length as u32).map(|at| (at.wrapping_mul(31) ^ seed.wrapping_mul(101)) as u8).collect()
}
