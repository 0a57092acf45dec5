//! `talpf jacobi`.

use std::path::PathBuf;
use std::thread;

use clap::Args;
use talpf_apps::jacobi::{self, Machine, Observer, Problem, Variant};
use talpf_apps::{Error, heat, memory, picture};
use talpf_traces::Recorder;

use super::output::Output;
use super::progress_bar::ProgressBar;
use super::report::Report;
use super::trace_output::TraceOutput;
use super::usage::number_within;

#[derive(Args, Debug)]
#[command(allow_negative_numbers = true)]
pub(super) struct Options {
    /// How to run it
    #[arg(long, value_enum, default_value_t = Variant::TalpfCached)]
    variant: Variant,

    /// Ranks that share the matrix [default: 2, or 1 for a single row]
    #[arg(long, value_name = "N", value_parser = number_within(Machine::RANKS))]
    ranks: Option<usize>,

    /// Worker threads of all ranks together [default: one a core]
    #[arg(long, value_name = "W", value_parser = number_within(Machine::WORKERS))]
    workers: Option<usize>,

    /// Rows and columns of a square matrix
    #[arg(long, value_name = "S", value_parser = number_within(Problem::EXTENTS),
          default_value_t = 1024, conflicts_with_all = ["rows", "cols"])]
    size: usize,

    /// Rows of the matrix
    #[arg(long, value_name = "R", value_parser = number_within(Problem::EXTENTS), requires = "cols")]
    rows: Option<usize>,

    /// Columns of the matrix
    #[arg(long, value_name = "C", value_parser = number_within(Problem::EXTENTS), requires = "rows")]
    cols: Option<usize>,

    /// Rows and columns of a block; a task computes a row of them, at least 4096 cells long
    #[arg(long, value_name = "B", value_parser = number_within(Problem::EXTENTS), default_value_t = 128)]
    block: usize,

    /// Steps to compute
    #[arg(long, value_name = "T", value_parser = number_within(Problem::STEPS), default_value_t = 1000)]
    steps: usize,

    /// Heat sources: a count, then row, column, size and temperature a line, from 0 to 1
    #[arg(long, value_name = "heat.conf")]
    config: Option<PathBuf>,

    /// Compare the result with serial, bit by bit
    #[arg(long)]
    check: bool,

    /// Write a picture of the result
    #[arg(long, value_name = "FILE.png")]
    image: Option<PathBuf>,

    /// Write the result lines as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Leave a Paraver trace: jacobi.prv, .pcf and .row
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,

    /// Show no progress bar
    #[arg(long)]
    quiet: bool,
}

/// Runs the solver. Outputs are opened first, and written even when the check fails.
pub(super) fn run(options: Options) -> Result<(), Error> {
    let (problem, machine) = options.resolve()?;
    let matrices = if options.check { 3 } else { 2 };
    memory::require(matrices * problem.matrix_bytes())?;
    let image = options.image.as_deref().map(Output::open).transpose()?;
    let json = options.json.as_deref().map(Output::open).transpose()?;
    let trace = options.trace.as_deref().map(|dir| TraceOutput::open(dir, machine)).transpose()?;
    let outputs = [image.as_ref(), json.as_ref(), trace.as_ref().map(TraceOutput::output)];
    Output::must_all_differ(outputs.into_iter().flatten())?;

    let solve = |variant: Variant, recorder: Option<Recorder>| {
        let (_bar, progress) = ProgressBar::start(variant.name(), problem.steps(), options.quiet);
        let observer = Observer { progress, recorder };
        jacobi::run(variant, &problem, machine, &observer)
    };
    let recorder = trace.as_ref().map(TraceOutput::recorder);
    let solution = solve(options.variant, recorder)?;
    let difference = match options.check {
        false => None,
        true => Some(solution.matrix.first_difference(&solve(Variant::Serial, None)?.matrix)),
    };

    let verified = difference.map(|difference| difference.is_none());
    let report = Report::new(options.variant, &problem, &solution, verified);
    super::print(&report.lines(solution.matrix.hash()))?;
    if let Some(trace) = trace {
        super::print(&trace.write(&solution.machine, report.parameters())?)?;
    }
    if let Some(json) = json {
        json.write(|out| report.write_json(out))?;
    }
    if let Some(image) = image {
        image.write(|out| picture::write_heat_map(&solution.matrix, out))?;
    }
    match difference.flatten() {
        None => Ok(()),
        Some(at) => Err(Error::Differs {
            variant: options.variant.name(),
            row: at.row,
            col: at.col,
            found: at.found,
            expected: at.expected,
        }),
    }
}

impl Options {
    fn resolve(&self) -> Result<(Problem, Machine), Error> {
        let sources = match &self.config {
            Some(path) => heat::load(path)?,
            None => heat::default_sources(),
        };
        let (rows, cols) = self.rows.zip(self.cols).unwrap_or((self.size, self.size));
        let problem = Problem::new(rows, cols, self.block, self.steps, sources)?;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers = self.workers.unwrap_or(cores.min(*Machine::WORKERS.end()));
        let machine = Machine::new(self.ranks.unwrap_or(rows.min(2)), workers)?;
        Ok((problem, machine))
    }
}
