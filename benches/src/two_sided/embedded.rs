//! Measurement of our messages between ranks of this process.

use std::time::Duration;

use talpf_runtime::cores;
use tampi_shim::{Communicator, Config, Protocols, exec};

use super::sizes::{SIZES, Value};
use super::{RANKS, collectives, ranks, tasks};
use crate::conditions;
use crate::error::Error;

fn config(ranks: u32, workers: usize) -> Result<Config, Error> {
    Ok(Config { ranks, runtime: conditions::runtime(workers)?, ..Config::default() })
}

/// Runs a program on all ranks and returns the figures of rank 0.
fn measure<F>(config: Config, program: impl Fn(Communicator) -> F) -> Result<Vec<Value>, Error>
where
    F: Future<Output = Result<Vec<Value>, tampi_shim::Error>> + Send + 'static,
{
    Ok(exec(config, &program)?.into_iter().next().unwrap_or_default())
}

/// Measures all figures with the protocols that the transport chooses.
pub(super) fn sample(budget: Duration) -> Result<Vec<Value>, Error> {
    let mut values = measure(config(2, cores())?, |world| ranks::all(world, budget))?;
    values.extend(measure(config(2, 1)?, |world| tasks::hand_over(world, budget))?);
    values.extend(measure(config(2, cores())?, |world| tasks::bound(world, budget))?);
    for ranks in RANKS {
        values.extend(measure(config(ranks, cores())?, |world| collectives::all(world, budget))?);
    }
    Ok(values)
}

/// Protocols with the largest message that each can carry, and the thresholds that force it.
const FORCED: [(&str, usize, Protocols); 4] = [
    ("eager", 8 << 10, Protocols { eager: 8 << 10, lazy: 0, rtr: usize::MAX }),
    ("lazy", usize::MAX, Protocols { eager: 0, lazy: usize::MAX, rtr: usize::MAX }),
    ("read", usize::MAX, Protocols { eager: 0, lazy: 0, rtr: usize::MAX }),
    ("rtr", usize::MAX, Protocols { eager: 0, lazy: 0, rtr: 0 }),
];

/// Measures one-way times with each protocol forced.
pub(super) fn sample_protocols(budget: Duration) -> Result<Vec<(&'static str, Vec<Value>)>, Error> {
    let forced = FORCED.into_iter().map(|(name, longest, protocols)| {
        let config = Config { protocols: Some(protocols), ..config(2, cores())? };
        let sizes: Vec<_> = SIZES.into_iter().filter(|(size, _)| *size <= longest).collect();
        let program = move |world: Communicator| {
            let sizes = sizes.clone();
            async move { ranks::one_way_times(&world, budget, &sizes).await }
        };
        Ok((name, measure(config, program)?))
    });
    forced.collect()
}
