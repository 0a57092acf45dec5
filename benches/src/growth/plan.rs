//! Setting in which rows are measured: runtimes, runs of ranks, and meters.

use std::time::Duration;

use talpf::{Context, Settings};
use talpf_runtime::{Group, IdlePolicy, Runtime};
use tampi_shim::Communicator;

use super::meter::Meter;
use super::shape::Amount;
use crate::conditions;
use crate::error::Error;

/// Workers of a timed run.
pub(super) const WORKERS: usize = 2;

/// Method of measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plan {
    /// Measures time.
    Times,
    /// Counts instructions, on one worker that parks as soon as it is idle.
    Counts,
}

/// Cost per unit in nanoseconds, one for each repetition.
pub(super) type Samples = Result<Vec<f64>, Error>;

impl Plan {
    /// Creates a meter for one size.
    pub(super) fn meter(self, size: usize) -> Meter {
        match self {
            Plan::Times => Meter::of_times(size),
            Plan::Counts => Meter::of_counts(),
        }
    }

    /// Returns the runtime's configuration from the environment, with other workers. The one that
    /// counts instructions has no hang watch.
    ///
    /// **Errors**: invalid settings in the environment.
    pub(super) fn runtime(self) -> Result<talpf_runtime::Config, Error> {
        Ok(match self {
            Plan::Times => conditions::runtime(WORKERS)?,
            Plan::Counts => talpf_runtime::Config {
                workers: 1,
                idle: IdlePolicy::Park,
                hang_after: Duration::ZERO,
                ..talpf_runtime::Config::default()
            },
        })
    }

    /// Returns the configuration of a run of ranks with puts.
    ///
    /// **Errors**: those of [`Plan::runtime`].
    pub(super) fn puts(self, ranks: u32) -> Result<talpf::Config, Error> {
        let (polling, runtime) = (Settings::load(None)?.polling()?, self.runtime()?);
        Ok(talpf::Config { ranks, polling, runtime, ..talpf::Config::default() })
    }

    /// Returns the configuration of a run of ranks with messages.
    ///
    /// **Errors**: those of [`Plan::runtime`].
    pub(super) fn messages(self, ranks: u32) -> Result<tampi_shim::Config, Error> {
        let runtime = self.runtime()?;
        Ok(tampi_shim::Config { ranks, runtime, ..tampi_shim::Config::default() })
    }

    /// Runs a program of tasks without throttle.
    ///
    /// **Errors**: those of the program.
    pub(super) fn in_group<A: Amount, F>(
        self,
        size: A,
        program: impl FnOnce(Group, Meter, A) -> F,
    ) -> Samples
    where
        F: Future<Output = Samples> + Send + 'static,
    {
        let config = talpf_runtime::Config { throttle: usize::MAX, ..self.runtime()? };
        self.run(config, size, program)
    }

    /// Runs a program of tasks like [`Plan::in_group`], with the throttle of the environment.
    ///
    /// **Errors**: those of the program.
    pub(super) fn in_throttled_group<A: Amount, F>(
        self,
        size: A,
        program: impl FnOnce(Group, Meter, A) -> F,
    ) -> Samples
    where
        F: Future<Output = Samples> + Send + 'static,
    {
        self.run(self.runtime()?, size, program)
    }

    fn run<A: Amount, F>(
        self,
        config: talpf_runtime::Config,
        size: A,
        program: impl FnOnce(Group, Meter, A) -> F,
    ) -> Samples
    where
        F: Future<Output = Samples> + Send + 'static,
    {
        let runtime = Runtime::new(config)?;
        let program = program((*runtime).clone(), self.meter(size.count()), size);
        let samples = runtime.block_on(runtime.spawn_main("creator", program)?)??;
        runtime.shut_down()?;
        samples
    }

    /// Runs a program on ranks with puts; the first rank measures.
    ///
    /// **Errors**: those of the program.
    pub(super) fn on_ranks<A: Amount, F>(
        self,
        ranks: u32,
        size: A,
        program: impl Fn(Context, Meter, A) -> F,
    ) -> Samples
    where
        F: Future<Output = Samples> + Send + 'static,
    {
        let program = &program;
        let main = move |ctx: Context| {
            let meter = self.meter(size.count());
            let meter = if ctx.rank().0 == 0 { meter } else { meter.silent() };
            program(ctx, meter, size)
        };
        first(talpf::exec(self.puts(ranks)?, main)?)
    }

    /// Runs a program on ranks with messages; the first rank measures.
    ///
    /// **Errors**: those of the program.
    pub(super) fn on_members<A: Amount, F>(
        self,
        ranks: u32,
        size: A,
        program: impl Fn(Communicator, Meter, A) -> F,
    ) -> Samples
    where
        F: Future<Output = Samples> + Send + 'static,
    {
        let program = &program;
        let main = move |world: Communicator| {
            let meter = self.meter(size.count());
            let meter = if world.rank().0 == 0 { meter } else { meter.silent() };
            program(world, meter, size)
        };
        first(tampi_shim::exec(self.messages(ranks)?, main)?)
    }
}

fn first(of_ranks: Vec<Vec<f64>>) -> Samples {
    Ok(of_ranks.into_iter().next().unwrap_or_default())
}
