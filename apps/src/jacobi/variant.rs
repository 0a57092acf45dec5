//! The ways to run the solver.

use super::talpf::Protocol;
use super::{Machine, Observer, Problem, Solution, fork_join, serial, talpf};
use crate::{Error, memory};

/// How the work of a step is spread and how the steps are kept in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum Variant {
    /// One thread and no synchronisation: the reference for the bits of all others
    Serial,
    /// One band of rows for each worker and a barrier after every step
    ForkJoin,
    /// Tasks; puts of halos; counts exchanged and a barrier in every round
    TalpfDefault,
    /// Tasks; puts of halos; counts exchanged once
    TalpfCached,
    /// As talpf-cached, and a barrier in every round
    TalpfCachedBarrier,
    /// As talpf-cached, and targets acknowledge the round before
    TalpfCachedAck,
    /// Tasks; puts of halos that no window checks; counts exchanged once
    TalpfRawCached,
    /// Tasks; puts of halos; every rank knows how many arrive
    TalpfMsg,
    /// Tasks; gets of halos; counts exchanged and a barrier in every round
    TalpfGet,
}

impl Variant {
    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::ForkJoin => "fork-join",
            Self::TalpfDefault => "talpf-default",
            Self::TalpfCached => "talpf-cached",
            Self::TalpfCachedBarrier => "talpf-cached-barrier",
            Self::TalpfCachedAck => "talpf-cached-ack",
            Self::TalpfRawCached => "talpf-raw-cached",
            Self::TalpfMsg => "talpf-msg",
            Self::TalpfGet => "talpf-get",
        }
    }
}

/// Solves `problem` and returns the last matrix.
///
/// **Completion**: every thread that was started has ended.
///
/// **Errors**: [`Error::MoreRanksThanRows`], [`Error::Memory`], [`Error::Worker`], and
/// [`Error::Talpf`] for what a variant with tasks can run into.
pub fn run(
    variant: Variant,
    problem: &Problem,
    machine: Machine,
    observer: &Observer,
) -> Result<Solution, Error> {
    if machine.ranks() > problem.rows() {
        return Err(Error::MoreRanksThanRows { ranks: machine.ranks(), rows: problem.rows() });
    }
    let solve = |protocol| {
        memory::require(2 * problem.band_bytes(machine.ranks()))?;
        talpf::solve(problem, machine, protocol, observer)
    };
    memory::require(2 * problem.matrix_bytes())?;
    match variant {
        Variant::Serial => Ok(serial::solve(problem, observer)),
        Variant::ForkJoin => fork_join::solve(problem, machine, observer),
        Variant::TalpfDefault => solve(Protocol::DEFAULT),
        Variant::TalpfCached => solve(Protocol::CACHED),
        Variant::TalpfCachedBarrier => solve(Protocol::CACHED_BARRIER),
        Variant::TalpfCachedAck => solve(Protocol::CACHED_ACK),
        Variant::TalpfRawCached => solve(Protocol::RAW_CACHED),
        Variant::TalpfMsg => solve(Protocol::MSG),
        Variant::TalpfGet => solve(Protocol::GET),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat;
    use clap::ValueEnum;

    #[test]
    fn name_is_the_one_on_the_command_line() {
        for variant in Variant::value_variants() {
            let value = variant.to_possible_value().expect("no variant is hidden");
            assert_eq!(variant.name(), value.get_name());
        }
    }

    #[test]
    fn more_ranks_than_rows_is_an_error() {
        let problem = Problem::new(2, 5, 1, 1, heat::default_sources()).unwrap();
        let run_on = |ranks| {
            let machine = Machine::new(ranks, 1).unwrap();
            run(Variant::Serial, &problem, machine, &Observer::default())
        };
        assert!(run_on(2).is_ok());
        assert!(matches!(run_on(3), Err(Error::MoreRanksThanRows { ranks: 3, rows: 2 })));
    }

    #[test]
    fn problem_larger_than_memory_is_an_error() {
        let most = *Problem::EXTENTS.end();
        let problem = Problem::new(most, most, 1, 1, heat::default_sources()).unwrap();
        let machine = Machine::new(1, 1).unwrap();
        let result = run(Variant::Serial, &problem, machine, &Observer::default());
        assert!(matches!(result, Err(Error::Memory { .. })));
    }
}
