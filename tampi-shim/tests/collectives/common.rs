//! Running a program on some ranks, and never for ever.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use tampi_shim::{Communicator, Config, Error, exec};

use crate::requested_time::in_requested_time;

/// Longer than any test takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Runs `program` on `ranks` ranks. Panics if it has not ended in time.
pub(crate) fn run<R, F>(
    ranks: usize,
    program: impl Fn(Communicator) -> F + Send + 'static,
) -> Result<Vec<R>, Error>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let config = in_requested_time(Config { ranks: ranks as u32, ..Config::default() });
    let (done, result) = mpsc::channel();
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

/// Runs `program` on 1 to 9 ranks. It panics itself where it finds something wrong.
pub(crate) fn on_1_to_9_ranks<F>(program: impl Fn(Communicator) -> F + Clone + Send + 'static)
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    for ranks in 1..=9 {
        run(ranks, program.clone()).unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
    }
}
