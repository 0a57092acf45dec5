//! Measurement of one problem of an application, alternately by our runtime and by peers.

use std::rc::Rc;
use std::time::{Duration, Instant};

use talpf_apps::run::{self, App, Machine, Observer, Outcome, Problem, Variant};
use talpf_runtime::cores;

use super::input::Input;
use super::peers::{self, Mode, Source};
use crate::contest::{Contest, OURS};
use crate::core_to_core;
use crate::error::Error;
use crate::measure::Report;
use crate::peer::Program;
use crate::print_line::print_line;

/// Problem, and the program of the peers that solve it too.
pub(super) struct Case<A: App> {
    pub(super) name: String,
    pub(super) source: Source,
    /// Problem for all cores.
    pub(super) all: A::Problem,
    /// Same problem with fewer steps, for one core.
    pub(super) one: A::Problem,
    pub(super) peers: Option<Rc<Program>>,
}

/// Settings of all measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) machine: Machine,
    pub(super) rounds: usize,
    /// Time after which no round begins, except for the first [`LEAST_ROUNDS`].
    pub(super) budget: Duration,
}

const LEAST_ROUNDS: usize = 3;

/// Relative and absolute tolerance of sums: a peer adds forces in another order.
const TOLERANCE: f64 = 1e-9;

/// Names of our entrants other than [`OURS`].
const SPAWNED: &str = "spawned";
const REPLAYED: &str = "replayed";
const FORK_JOIN: &str = "fork_join";

/// Contender: its name, its method, and its rates by round.
struct Entrant {
    name: &'static str,
    threads: Threads,
    method: Method,
    rates: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Threads {
    All,
    One,
}

#[derive(Clone, Copy)]
enum Method {
    Ours { variant: Variant, replays: bool },
    Peer(Mode),
}

impl<A: App> Case<A>
where
    A::Problem: Input,
{
    /// Measures the problem and adds its figures to `report`. Returns one sample of the
    /// core-to-core latency for each round.
    ///
    /// **Errors**: those of our runs and of the peers; a wrong result.
    pub(super) fn measure(&self, plan: Plan, report: &mut Report) -> Result<Vec<f64>, Error> {
        if let Some(program) = &self.peers {
            peers::write_input(program, &self.all.numbers())?;
        }
        let mut entrants = self.entrants();
        let (begin, mut lines) = (Instant::now(), Vec::new());
        while lines.len() < plan.rounds
            && (lines.len() < LEAST_ROUNDS || begin.elapsed() < plan.budget)
        {
            lines.push(core_to_core::sample());
            let mut expected = [None; 2];
            for entrant in &mut entrants {
                let expected = &mut expected[usize::from(entrant.threads == Threads::One)];
                let rate = self.sample(plan.machine, entrant, expected)?;
                entrant.rates.push(rate);
            }
        }
        self.report(entrants, &lines, report);
        Ok(lines)
    }

    fn entrants(&self) -> Vec<Entrant> {
        let entrant = |name, threads, method| Entrant { name, threads, method, rates: Vec::new() };
        let ours = |name, threads, variant, replays| {
            entrant(name, threads, Method::Ours { variant, replays })
        };
        let mut entrants = vec![ours(SPAWNED, Threads::All, A::USUAL, false)];
        if A::REPLAYED.contains(&A::USUAL) {
            entrants.push(ours(REPLAYED, Threads::All, A::USUAL, true));
        }
        entrants.push(ours(FORK_JOIN, Threads::All, Variant::ForkJoin, false));
        entrants.push(ours(OURS, Threads::One, Variant::Serial, false));
        if self.peers.is_some() {
            for mode in self.source.modes(self.all.size()) {
                entrants.push(entrant(mode.name, Threads::All, Method::Peer(mode)));
            }
            if let Some(mode) = self.source.modes(self.all.size()).next() {
                entrants.push(entrant(mode.name, Threads::One, Method::Peer(mode)));
            }
        }
        entrants
    }

    /// Runs the problem once. Returns its rate in millions per second.
    fn sample(
        &self,
        machine: Machine,
        entrant: &Entrant,
        expected: &mut Option<f64>,
    ) -> Result<f64, Error> {
        let (problem, threads) = match entrant.threads {
            Threads::All => (&self.all, cores()),
            Threads::One => (&self.one, 1),
        };
        let (seconds, checksum) = match entrant.method {
            Method::Ours { variant, replays } => {
                let machine = machine.at_most(A::RANKS, machine.workers()).replaying(replays);
                let solution = run::run::<A>(variant, problem, machine, &Observer::default())?;
                let solution = solution.expect("all ranks are in this process");
                (solution.seconds, solution.result.checksum())
            }
            Method::Peer(mode) => {
                let program = self.peers.as_ref().expect("its peers are entrants");
                let run = peers::run(program, mode, problem.size(), problem.steps(), threads)?;
                (run.seconds, run.checksum)
            }
        };
        let expected = *expected.get_or_insert(checksum);
        if (checksum - expected).abs() > TOLERANCE * (1.0 + expected.abs()) {
            let (contender, what) = (entrant.name, self.name.clone());
            return Err(Error::WrongSum { contender, what, expected, found: checksum });
        }
        Ok(problem.work().amount / seconds / 1e6)
    }

    /// Adds the figures: those of all cores under the name of the problem, those of one core under
    /// `name_serial`.
    fn report(&self, mut entrants: Vec<Entrant>, lines: &[f64], report: &mut Report) {
        let best = entrants
            .iter_mut()
            .filter(|entrant| [SPAWNED, REPLAYED].contains(&entrant.name))
            .max_by(|a, b| median(&a.rates).total_cmp(&median(&b.rates)))
            .expect("one is always spawned");
        let parameters = self.all.parameters();
        let parameters = parameters.iter().map(|(name, value)| format!("{name} {value}"));
        print_line(format_args!(
            "# {}: {}, best {}, a line one way {:.0} ns",
            self.name,
            parameters.collect::<Vec<_>>().join(", "),
            best.name,
            median(lines),
        ));
        best.name = OURS;
        let mut contest = Contest::default();
        for entrant in &entrants {
            let figure = match entrant.threads {
                Threads::All => self.name.clone(),
                Threads::One => serial_of(&self.name),
            };
            for (round, rate) in entrant.rates.iter().enumerate() {
                contest.record(round, entrant.name, &figure, *rate);
            }
        }
        contest.report(report);
    }
}

/// Inserts `serial` before the unit in the name of a figure.
fn serial_of(name: &str) -> String {
    let (name, unit) = name.rsplit_once('_').expect("a name ends in its unit");
    format!("{name}_serial_{unit}")
}

fn median(samples: &[f64]) -> f64 {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
