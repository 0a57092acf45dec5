//! Applications compared with plain C loops.
//!
//! The peers are compiled when the benchmark starts, with GCC and OpenMP on as many threads as
//! cores, and run alternately with ours: the same problem, the same arithmetic, results compared.
//! Each contender runs once in every round, so a disturbance of the machine affects all of them.
//!
//! Our entry is the usual variant (`talpf-cached`, for Gauss-Seidel `talpf-lanes`), with or without
//! replay, whichever has the better median. The other one and our own fork-join variant are
//! contenders too. One thread is compared with one thread of the peer.

mod case;
mod input;
mod peers;

use std::time::Duration;

use talpf::Settings;
use talpf_apps::gauss_seidel::{self, GaussSeidel};
use talpf_apps::heat::{Problem as Heat, default_sources};
use talpf_apps::jacobi::{self, Jacobi};
use talpf_apps::matmul::{self, Matmul};
use talpf_apps::nbody::{self, Nbody, Particles};
use talpf_apps::run::{App, Machine};
use talpf_runtime::cores;
use talpf_traces::counted;

use self::case::{Case, Plan};
use self::input::Input;
use self::peers::{Peers, Source};
use crate::conditions;
use crate::core_to_core;
use crate::error::Error;
use crate::measure::{REPETITIONS, Report};
use crate::print_line::print_line;

/// Selection of measurements.
#[derive(Clone, Debug)]
pub struct Options {
    /// Beginnings of names of problems, such as `jacobi_10`; empty for all problems.
    pub only: Vec<String>,
    /// Few and short runs, for a first impression.
    pub quick: bool,
}

/// Sides and steps of heat problems, chosen to take about a quarter of a second.
const JACOBI: [(usize, usize); 5] =
    [(256, 8000), (512, 3000), (1024, 1000), (4096, 64), (8192, 24)];
const GAUSS_SEIDEL: [(usize, usize); 3] = [(512, 1000), (2048, 64), (8192, 16)];
/// Particles and their block sizes; `None` is the usual block size.
const NBODY: (usize, [Option<usize>; 3]) = (4096, [None, Some(512), Some(64)]);
const NBODY_STEPS: usize = 40;
/// Sides of matrices, and numbers of multiplications.
const MATMUL: [(usize, usize); 2] = [(1024, 8), (2048, 2)];

/// Measures all requested problems.
///
/// **Errors**: no problem of that name; those of our runs; a peer that fails or computes a wrong
/// result. A compiler or a library that is not installed is reported, and its peers are left out.
pub fn run(options: &Options) -> Result<Report, Error> {
    let workers = cores().min(*Machine::WORKERS.end());
    let plan = Plan {
        machine: Machine::new(2, workers)?.set(Settings::load(None)?),
        rounds: if options.quick { 3 } else { REPETITIONS },
        budget: Duration::from_secs(if options.quick { 2 } else { 40 }),
    };
    print_line(format_args!(
        "# apps: {}, {}, {} each with a half of the problem, idle policy {}, link inproc, no \
         randomness, median [min .. max] of {} rounds, fewer where these take {} s",
        conditions::machine(),
        counted(workers, "worker"),
        counted(plan.machine.ranks(), "rank"),
        conditions::runtime(workers)?.idle,
        plan.rounds,
        plan.budget.as_secs(),
    ));
    let mut bench = Bench {
        only: &options.only,
        step_divisor: if options.quick { 20 } else { 1 },
        plan,
        peers: Peers::default(),
        lines: Vec::new(),
        report: Report::new(""),
    };
    for (size, steps) in JACOBI {
        let problem =
            |steps| Ok(Heat::new(size, size, jacobi::block(size), steps, default_sources())?);
        bench.measure::<Jacobi>(&format!("jacobi_{size}_mups"), Source::Jacobi, problem, steps)?;
    }
    for (size, steps) in GAUSS_SEIDEL {
        let problem =
            |steps| Ok(Heat::new(size, size, gauss_seidel::block(size), steps, default_sources())?);
        let name = format!("gauss_seidel_{size}_mups");
        bench.measure::<GaussSeidel>(&name, Source::GaussSeidel, problem, steps)?;
    }
    for block in NBODY.1 {
        let of_block = block.map_or_else(String::new, |block| format!("_block_{block}"));
        let name = format!("nbody_{}{of_block}_mpairs", NBODY.0);
        let particles =
            Particles::generate(NBODY.0, block.unwrap_or_else(|| nbody::block(NBODY.0)), 1);
        let problem = |steps| Ok(nbody::Problem::new(particles.clone(), steps, false, 1)?);
        bench.measure::<Nbody>(&name, Source::Nbody, problem, NBODY_STEPS)?;
    }
    for (size, steps) in MATMUL {
        let problem = |steps| Ok(matmul::Problem::new(size, matmul::block(size), steps)?);
        bench.measure::<Matmul>(
            &format!("matmul_{size}_mflops"),
            Source::Matmul,
            problem,
            steps,
        )?;
    }
    if bench.lines.is_empty() {
        return Err(Error::NoSuchFigure { name: options.only.join(", ") });
    }
    bench.report.add(core_to_core::NAME, "ns", bench.lines);
    Ok(bench.report)
}

/// State of a measurement of all problems.
struct Bench<'a> {
    only: &'a [String],
    /// Divisor of the numbers of steps.
    step_divisor: usize,
    plan: Plan,
    peers: Peers,
    /// Samples of [`core_to_core::sample`].
    lines: Vec<f64>,
    report: Report,
}

impl Bench<'_> {
    /// Measures a problem on all cores and then, with fewer steps, on one core, if it is requested.
    fn measure<A: App>(
        &mut self,
        name: &str,
        source: Source,
        problem: impl Fn(usize) -> Result<A::Problem, Error>,
        steps: usize,
    ) -> Result<(), Error>
    where
        A::Problem: Input,
    {
        if !self.only.is_empty() && !self.only.iter().any(|only| name.starts_with(only.as_str())) {
            return Ok(());
        }
        let steps = |threads: usize| (steps / self.step_divisor / threads).max(1);
        let (all, one) = (problem(steps(1))?, problem(steps(cores()))?);
        let peers = self.peers.of(source)?;
        let case = Case::<A> { name: format!("apps.{name}"), source, all, one, peers };
        self.lines.extend(case.measure(self.plan, &mut self.report)?);
        Ok(())
    }
}
