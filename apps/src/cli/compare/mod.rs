//! `talpf compare`: comparison of the variants of an application.
//!
//! A point is a variant on a number of ranks. All points run as often as requested, in rounds one
//! after the other, so that a disturbance of the machine affects all of them ([`measure`]). Some
//! further runs have a trace, which yields their messages and waiting times. In virtual time every
//! run of a point is alike, so one of each is enough. The results are a
//! table, `results.json`, and a page that opens without a network ([`page`]).

mod conditions;
mod findings;
mod measure;
pub(super) mod page;
pub(super) mod plot;
pub(super) mod results;
pub(super) mod series;
mod table;
mod trace_metrics;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use talpf_apps::Error;
use talpf_apps::gauss_seidel::{self, GaussSeidel};
use talpf_apps::histogram::Histogram;
use talpf_apps::jacobi::{self, Jacobi};
use talpf_apps::kmeans::Kmeans;
use talpf_apps::mandelbrot::Mandelbrot;
use talpf_apps::matmul::Matmul;
use talpf_apps::matmul_g::MatmulG;
use talpf_apps::nbody::Nbody;
use talpf_apps::run::{App, Machine, Membership, Problem, Variant};

use self::results::Results;
use super::defaults::{self, with_help};
use super::heat::{HeatOptions, JacobiOptions};
use super::launcher::{meeting, must_be_alone};
use super::number_within::number_within;
use super::output::Output;
use super::run_options::{MachineOptions, variant_of};
use super::simulation_options::SimulationOptions;
use super::transport_option::{ChosenTransport, Transport, TransportParser};
use super::{histogram, kmeans, mandelbrot, matmul, nbody};

/// Default number of steps of Jacobi: a run takes tenths of a second.
const STEPS: usize = super::STEPS / 5;

#[derive(Args, Debug)]
#[command(arg_required_else_help = false)]
pub(super) struct Options {
    #[command(subcommand)]
    app: Application,
}

#[derive(Debug, Subcommand)]
enum Application {
    /// Heat diffusion with the Jacobi method
    #[command(mut_args(with_help(defaults::COMPARED_JACOBI)))]
    Jacobi(Comparison<Jacobi, JacobiOptions>),
    /// Heat diffusion with the Gauss-Seidel method
    #[command(mut_args(with_help(defaults::COMPARED_GAUSS_SEIDEL)))]
    GaussSeidel(Comparison<GaussSeidel, HeatOptions>),
    /// Gravity between particles
    #[command(mut_args(with_help(defaults::COMPARED_NBODY)))]
    Nbody(Comparison<Nbody, nbody::ProblemOptions>),
    /// Multiplication on a ring
    #[command(mut_args(with_help(defaults::COMPARED_MATMUL)))]
    Matmul(Comparison<Matmul, matmul::ProblemOptions>),
    /// Multiplication on a square of ranks
    #[command(mut_args(with_help(defaults::COMPARED_MATMUL_G)))]
    MatmulG(Comparison<MatmulG, matmul::ProblemOptions>),
    /// Histogram with remote atomics
    #[command(mut_args(with_help(defaults::COMPARED_HISTOGRAM)))]
    Histogram(Comparison<Histogram, histogram::ProblemOptions>),
    /// Clusters of points by k-means
    #[command(mut_args(with_help(defaults::COMPARED_KMEANS)))]
    Kmeans(Comparison<Kmeans, kmeans::ProblemOptions>),
    /// The Mandelbrot set: a master beside the best static distribution
    #[command(mut_args(with_help(defaults::COMPARED_MANDELBROT)))]
    Mandelbrot(Comparison<Mandelbrot, mandelbrot::ProblemOptions>),
}

/// Options of a comparison, for an application `A` with a problem described by `P`.
#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
struct Comparison<A: App, P: Args> {
    /// Variants, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_name = "A,B,C", value_parser = variant_of::<A>())]
    variants: Vec<Variant>,

    #[command(flatten)]
    problem: P,

    #[command(flatten)]
    settings: Settings,

    #[arg(skip)]
    app: std::marker::PhantomData<A>,
}

/// Settings of all applications.
#[derive(Args, Debug)]
struct Settings {
    /// Numbers of ranks, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "N,N", value_parser = number_within(Machine::RANKS))]
    ranks: Vec<usize>,

    /// Size of the problem as the number of ranks increases
    #[arg(long, value_enum, default_value_t = Scaling::Strong)]
    scaling: Scaling,

    /// Runs of every point; one in virtual time, as all are alike
    #[arg(long, value_name = "N", value_parser = number_within(1..=1000), default_value_t = 5)]
    repeat: usize,

    /// Folder for results.json and report.html
    #[arg(long, value_name = "DIR", default_value = "comparison")]
    out: PathBuf,

    #[command(flatten)]
    machine: MachineOptions,

    #[command(flatten)]
    simulation: SimulationOptions,

    /// Transport between the ranks: `verbs`, since all ranks are in this process
    #[arg(
        long,
        alias = "fabric",
        value_parser = TransportParser,
        default_value = "verbs",
        hide_possible_values = true
    )]
    transport: ChosenTransport,

    /// Also replay the graphs of variants that can replay
    #[arg(long)]
    replay: bool,

    /// Show no progress bar
    #[arg(long)]
    quiet: bool,
}

/// Size of the problem as the number of ranks increases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Scaling {
    /// All ranks share one problem of constant size
    Strong,
    /// The size is proportional to the number of ranks
    Weak,
}

impl Settings {
    /// Returns the number of timed runs of every point.
    fn timed(&self) -> usize {
        if self.simulation.is_given() { 1 } else { self.repeat }
    }

    /// Returns the number of runs of every point with a trace.
    fn traced(&self) -> usize {
        self.timed().min(3)
    }
}

pub(super) fn run(options: Options) -> Result<(), Error> {
    match options.app {
        Application::Jacobi(c) => {
            compare::<Jacobi>(&c.variants, c.problem.problem(STEPS, jacobi::block)?, c.settings)
        }
        Application::GaussSeidel(c) => compare::<GaussSeidel>(
            &c.variants,
            c.problem.problem(STEPS / 2, gauss_seidel::block)?,
            c.settings,
        ),
        Application::Nbody(c) => compare::<Nbody>(&c.variants, c.problem.problem()?, c.settings),
        Application::Matmul(c) => compare::<Matmul>(&c.variants, c.problem.problem()?, c.settings),
        Application::MatmulG(c) => {
            compare::<MatmulG>(&c.variants, c.problem.problem()?, c.settings)
        }
        Application::Histogram(c) => {
            compare::<Histogram>(&c.variants, c.problem.problem()?, c.settings)
        }
        Application::Kmeans(c) => compare::<Kmeans>(&c.variants, c.problem.problem()?, c.settings),
        Application::Mandelbrot(c) => {
            compare::<Mandelbrot>(&c.variants, c.problem.problem()?, c.settings)
        }
    }
}

/// Runs the comparison and writes its results. Outputs are opened before the runs.
fn compare<A: App>(
    variants: &[Variant],
    problem: A::Problem,
    settings: Settings,
) -> Result<(), Error> {
    match settings.transport.transport {
        Transport::Verbs => must_be_alone(meeting(Membership::TIMEOUT)?.as_ref())?,
        _ => return Err(Error::ComparedProcesses),
    }
    let points = measure::points::<A>(variants, &problem, &settings)?;
    let json = Output::open_in(&settings.out, "results.json")?;
    let html = Output::open_in(&settings.out, "report.html")?;
    let results = Results {
        app: A::NAME,
        scaling: settings.scaling,
        repeat: settings.timed(),
        traced: settings.traced(),
        unit: problem.work().unit,
        parameters: problem.parameters(),
        simulated: measure::simulation(&points).map(|simulation| simulation.to_string()),
        dilated: measure::dilation(&points).map(|dilation| dilation.to_string()),
        conditions: conditions::conditions(
            &settings.machine,
            measure::simulation(&points),
            measure::dilation(&points),
        )?,
        points: measure::measure::<A>(&points, &settings)?,
    };
    let findings = findings::findings(&results);
    super::print(&format!("{}\n{}\n", table::table(&results), findings.join("\n")))?;
    let pretty = serde_json::to_string_pretty(&results).map_err(std::io::Error::from);
    json.write(|out| std::io::Write::write_all(out, (pretty? + "\n").as_bytes()))?;
    html.write(|out| std::io::Write::write_all(out, page::page(&results, &findings).as_bytes()))?;
    super::print(&format!("report {}\n", settings.out.join("report.html").display()))
}
