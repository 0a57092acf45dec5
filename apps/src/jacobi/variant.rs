//! The ways to run the solver.

use super::{Machine, Problem, Progress, Solution, fork_join, serial};
use crate::{Error, memory};

/// How the work of a step is spread and how the steps are kept in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum Variant {
    /// One thread and no synchronisation: the reference for the bits of all others
    Serial,
    /// One band of rows for each worker and a barrier after every step
    ForkJoin,
}

impl Variant {
    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::ForkJoin => "fork-join",
        }
    }
}

/// Solves `problem` and returns the last matrix.
///
/// **Completion**: every thread that was started has ended.
///
/// **Errors**: [`Error::MoreRanksThanRows`], [`Error::Memory`], [`Error::Worker`].
pub fn run(
    variant: Variant,
    problem: &Problem,
    machine: Machine,
    progress: &Progress,
) -> Result<Solution, Error> {
    if machine.ranks() > problem.rows() {
        return Err(Error::MoreRanksThanRows {
            ranks: machine.ranks(),
            rows: problem.rows(),
        });
    }
    memory::require(2 * problem.matrix_bytes())?;
    match variant {
        Variant::Serial => Ok(serial::solve(problem, progress)),
        Variant::ForkJoin => fork_join::solve(problem, machine, progress),
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
            run(Variant::Serial, &problem, machine, &Progress::default())
        };
        assert!(run_on(2).is_ok());
        assert!(matches!(
            run_on(3),
            Err(Error::MoreRanksThanRows { ranks: 3, rows: 2 })
        ));
    }

    #[test]
    fn problem_larger_than_memory_is_an_error() {
        let most = *Problem::EXTENTS.end();
        let problem = Problem::new(most, most, 1, 1, heat::default_sources()).unwrap();
        let machine = Machine::new(1, 1).unwrap();
        let result = run(Variant::Serial, &problem, machine, &Progress::default());
        assert!(matches!(result, Err(Error::Memory { .. })));
    }
}
