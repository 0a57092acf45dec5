//! The ranks of a program with tasks.

use std::sync::Arc;
use std::time::Duration;

use talpf::PollingFrequency;
use talpf_traces::{Event, Recorder, ValueKind};

use super::{
    Communication, Machine, Messages, Observer, RankContext, Simulation, Solution, Transport,
    Variant,
};
use crate::Error;

/// State shared by all ranks of a run.
pub(crate) struct RunInput<P> {
    pub(crate) problem: P,
    pub(crate) machine: Machine,
    pub(crate) observer: Observer,
}

/// Part of the result of one rank, with the start and the end of its steps on the clock of its
/// runtime.
pub(crate) struct Part {
    pub(crate) result: Vec<f64>,
    pub(crate) started: Duration,
    pub(crate) ended: Duration,
}

/// Parts of a result by rank, and the seconds from the first start to the last end.
pub(crate) type Parts = (Vec<Vec<f64>>, f64);

/// Solves `problem` with `program` on the ranks and workers of `machine`; `assemble` makes the
/// result of their parts in the process of rank 0.
///
/// **Errors**: those of [`on_ranks`].
pub(crate) fn solve_on_ranks<P: Clone, R, F>(
    problem: &P,
    machine: Machine,
    variant: Variant,
    observer: &Observer,
    program: impl Fn(RankContext, Arc<RunInput<P>>) -> F,
    assemble: impl FnOnce(Vec<Vec<f64>>) -> R,
) -> Result<Option<Solution<R>>, Error>
where
    F: Future<Output = Result<Part, Error>> + Send + 'static,
{
    let input =
        Arc::new(RunInput { problem: problem.clone(), machine, observer: observer.clone() });
    let parts = on_ranks(machine, variant, observer, |ctx| program(ctx, Arc::clone(&input)))?;
    Ok(parts.map(|(parts, seconds)| Solution { result: assemble(parts), seconds, machine }))
}

/// Runs `program` on the ranks and workers of `machine`. Returns the parts in the process of rank
/// 0.
///
/// **Errors**: [`Error::NoRanks`]; [`Error::Interrupted`]; those of `program`, and of the
/// communication between the ranks.
pub(super) fn on_ranks<F>(
    machine: Machine,
    variant: Variant,
    observer: &Observer,
    program: impl Fn(RankContext) -> F,
) -> Result<Option<Parts>, Error>
where
    F: Future<Output = Result<Part, Error>> + Send + 'static,
{
    let no_ranks = Error::NoRanks { variant: variant.name() };
    let communication = variant.communication().ok_or(no_ranks)?;
    match machine.transport() {
        Transport::Verbs => on_ranks_here(machine, communication, observer, program).map(Some),
        _ => super::processes::on_ranks_of_process(machine, communication, observer, program),
    }
}

fn on_ranks_here<F>(
    machine: Machine,
    communication: Communication,
    observer: &Observer,
    program: impl Fn(RankContext) -> F,
) -> Result<Parts, Error>
where
    F: Future<Output = Result<Part, Error>> + Send + 'static,
{
    let runtime = runtime(machine, observer)?;
    let program = |ctx: RankContext| {
        observer.interrupt.covers(ctx.group());
        program(ctx)
    };
    let parts = match communication {
        Communication::OneSided(protocol) => {
            let config = talpf_config(machine, runtime)?;
            let config = match machine.simulation() {
                Some(Simulation { profile, cores, executes }) => {
                    let mut config = profile.simulate(cores, config);
                    config.device.phantom = !executes;
                    config
                }
                None => config,
            };
            talpf::exec(config, |ctx| program(RankContext::OneSided(ctx, protocol)))
        }
        Communication::TwoSided(waiting) => {
            let config = tampi_config(machine, runtime)?;
            tampi_shim::exec(config, |world| {
                program(RankContext::TwoSided(Messages::new(world, waiting)))
            })
        }
    };
    // The interruption explains more than the errors it causes in the ranks.
    observer.interrupt.covers_nothing()?;
    let parts = parts?;
    if let Some(recorder) = &observer.recorder {
        (0..).zip(&parts).for_each(|(rank, part)| mark_timed_part(recorder, rank, part));
    }
    let started = parts.iter().map(|part| part.started).min();
    let ended = parts.iter().map(|part| part.ended).max();
    let seconds =
        started.zip(ended).map_or(0.0, |(started, ended)| (ended - started).as_secs_f64());
    Ok((parts.into_iter().map(|part| part.result).collect(), seconds))
}

/// Records where the timed part of a rank began and ended.
pub(super) fn mark_timed_part(recorder: &Recorder, rank: u32, part: &Part) {
    let mut stream = recorder.stream(0);
    for (time, value) in [(part.started, 1), (part.ended, 0)] {
        let event = Event::Value { rank, kind: ValueKind::TimedPart, value };
        stream.record(time.as_nanos() as u64, event);
    }
}

/// Returns the configuration of the runtime.
///
/// **Errors**: an invalid setting in the environment.
pub(super) fn runtime(
    machine: Machine,
    observer: &Observer,
) -> Result<talpf_runtime::Config, Error> {
    let sets = machine.workers_per_rank().map_or(1, |_| machine.ranks_here().len());
    Ok(talpf_runtime::Config {
        workers: machine.workers(),
        worker_sets: sets,
        recorder: observer.recorder.clone(),
        graph: observer.graph.clone(),
        monitor: Some(observer.monitor.clone()),
        ..machine.settings().runtime()?
    })
}

/// Returns the configuration of two-sided communication.
///
/// **Errors**: an invalid setting in the environment.
fn tampi_config(
    machine: Machine,
    runtime: talpf_runtime::Config,
) -> Result<tampi_shim::Config, Error> {
    let ranks = machine.ranks() as u32;
    let mut config = tampi_shim::Config { ranks, runtime, ..tampi_shim::Config::default() };
    config.device.link = machine.link_model();
    if let Some(Simulation { profile, cores, executes }) = machine.simulation() {
        config.runtime.virtual_time = Some(profile.virtual_time(cores));
        config.device.link = Some(profile.link().clone());
        config.device.phantom = !executes;
        config.polling = match machine.polling()? {
            PollingFrequency::Adaptive => None,
            PollingFrequency::Every(period) => Some(period),
        };
    }
    Ok(config)
}

/// Returns the configuration of one-sided communication.
///
/// **Errors**: an invalid setting in the environment.
pub(super) fn talpf_config(
    machine: Machine,
    runtime: talpf_runtime::Config,
) -> Result<talpf::Config, Error> {
    let (polling, progress) = (machine.polling()?, machine.progress());
    let (ranks, check_conflicts) = (machine.ranks() as u32, machine.checks_conflicts()?);
    let usual = talpf::Config::default();
    let mut config = talpf::Config { ranks, polling, progress, check_conflicts, runtime, ..usual };
    config.device.link = machine.link_model();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use talpf_runtime::{Group, Standing};

    /// Returns `true` if the program of any rank has not ended.
    fn has_programs(group: &Group) -> bool {
        use Standing::{Ended, Ready, Running, Suspended, Waiting};
        let dump = group.dump();
        let mut standings = [Running, Ready, Suspended, Ended, Waiting].into_iter();
        standings.any(|standing| dump.labels(standing).any(|label| label == "main"))
    }

    #[test]
    fn run_that_is_cancelled_after_its_programs_is_interrupted() {
        for variant in [Variant::TalpfCached, Variant::Tampi] {
            let observer = Observer::default();
            let run = on_ranks(Machine::ONE, variant, &observer, |ctx| {
                let (group, interrupt) = (ctx.group().clone(), observer.interrupt.clone());
                let late = async move {
                    while has_programs(&group) {
                        group.wait_for(Duration::from_micros(100)).await;
                    }
                    assert!(interrupt.cancel("late"));
                };
                async move {
                    // The run is over when its services have ended.
                    drop(ctx.group().spawn_service("late", late)?);
                    let now = ctx.now();
                    Ok(Part { result: Vec::new(), started: now, ended: now })
                }
            });
            assert!(matches!(run, Err(Error::Interrupted)), "{variant:?}");
            assert!(!observer.interrupt.cancel("too late"));
        }
    }
}
