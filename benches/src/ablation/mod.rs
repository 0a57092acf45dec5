//! Gain of each policy of the scheduler: which programs are slower without it, and by how much?
//!
//! Every sample is a process of this command that measures one program, without the policy that
//! its environment names. The samples of a round follow each other: with all policies, with all
//! policies again (the column `control`, whose figures are noise), and without each one. A figure
//! is the median over rounds of the cost without the policy, as a multiple of the cost with all
//! policies in the same round: time, or the inverse of a rate.

mod program;
mod sample;

use talpf_runtime::{Policy, cores};
use talpf_traces::counted;

use self::program::{Figure, PROGRAMS, Program};
pub use self::sample::sample;
use crate::conditions;
use crate::error::Error;
use crate::measure::Report;
use crate::micro::WORKERS;
use crate::print_line::print_line;

/// Selection of measurements.
#[derive(Clone, Debug)]
pub struct Options {
    /// Beginnings of names of figures, such as `metg.`; empty for all figures.
    pub only: Vec<String>,
    /// Names of policies to leave out, one after another; empty for all policies.
    pub policies: Vec<String>,
    /// Number of rounds.
    pub rounds: usize,
    /// A single round of one program, as a test.
    pub quick: bool,
}

/// Name of the column whose samples have all policies.
const CONTROL: &str = "control";

/// Least width of a column.
const COLUMN: usize = 8;

/// Measures all requested programs without each requested policy, and prints the table.
///
/// **Errors**: no figure or no policy of that name; a process that fails.
pub fn run(options: &Options) -> Result<Report, Error> {
    let policies = policies(&options.policies)?;
    let rounds = if options.quick { 1 } else { options.rounds };
    let programs: Vec<_> = match options.quick && options.only.is_empty() {
        true => PROGRAMS[..1].iter().collect(),
        false => PROGRAMS.iter().filter(|program| program.is_requested(&options.only)).collect(),
    };
    if programs.is_empty() {
        return Err(Error::NoSuchFigure { name: options.only.join(", ") });
    }
    print_line(format_args!(
        "# ablation: {}, {WORKERS} workers in micro and {} in others, idle policy {}, link inproc, \
         no randomness, medians of {}; cost without a policy over the cost with all, in percent \
         more; `{CONTROL}` is noise",
        conditions::machine(),
        counted(cores(), "worker"),
        conditions::runtime(cores())?.idle,
        counted(rounds, "round"),
    ));
    let columns = policies.iter().map(|name| format!(" {name:>COLUMN$}")).collect::<String>();
    print_line(format_args!("{:<36} {:>14}{columns}", "figure", "all policies"));
    let mut report = Report::new("");
    for program in programs {
        measure(program, &policies, rounds, &mut report)?;
    }
    Ok(report)
}

/// Returns the names of the columns: [`CONTROL`] and the requested policies.
fn policies(requested: &[String]) -> Result<Vec<&'static str>, Error> {
    let names = Policy::ALL.map(|(_, name)| name);
    if let Some(name) = requested.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(Error::NoSuchPolicy { name: name.clone(), policies: names.join(", ") });
    }
    let is_requested =
        |name: &&str| requested.is_empty() || requested.iter().any(|one| one == name);
    Ok(std::iter::once(CONTROL).chain(names.into_iter().filter(is_requested)).collect())
}

/// Measures the figures of one program and prints their rows.
fn measure(
    program: &Program,
    columns: &[&'static str],
    rounds: usize,
    report: &mut Report,
) -> Result<(), Error> {
    let folder = tempfile::tempdir()
        .map_err(|reason| Error::System { doing: "makes a folder for figures", reason })?;
    let path = folder.path().join("figures.json");
    let mut rows = vec![Row::new(columns.len()); program.figures.len()];
    for _ in 0..rounds {
        let with = program.sample(None, &path)?;
        for (row, figure) in rows.iter_mut().zip(program.figures) {
            row.all.extend(figure.of(&with));
        }
        for (column, name) in columns.iter().enumerate() {
            let without = program.sample(Some(*name).filter(|name| *name != CONTROL), &path)?;
            for (row, figure) in rows.iter_mut().zip(program.figures) {
                let pair = figure.of(&without).zip(figure.of(&with));
                row.costs[column].extend(pair.map(|(without, with)| figure.cost(without, with)));
            }
        }
    }
    rows.into_iter()
        .zip(program.figures)
        .for_each(|(row, figure)| row.report(figure, columns, report));
    Ok(())
}

/// Samples of one figure.
#[derive(Clone)]
struct Row {
    /// Values with all policies.
    all: Vec<f64>,
    /// Relative costs by column.
    costs: Vec<Vec<f64>>,
}

impl Row {
    fn new(columns: usize) -> Self {
        Row { all: Vec::new(), costs: vec![Vec::new(); columns] }
    }

    /// Prints the row and adds its figures to a report.
    fn report(self, figure: &Figure, columns: &[&'static str], report: &mut Report) {
        let Figure(figure, unit) = figure;
        let all = report.note(&format!("ablation.{figure}"), unit, self.all).median;
        let mut line = format!("{figure:<36} {all:>10.2} {unit:<3}");
        for (name, costs) in columns.iter().zip(self.costs) {
            let cost = report.note(&format!("ablation.{figure}.{name}"), "x", costs).median;
            let more = (cost - 1.0) * 100.0;
            line.push_str(&format!(" {more:>+width$.1}", width = name.len().max(COLUMN)));
        }
        print_line(line);
    }
}
