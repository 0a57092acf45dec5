//! `talpf reproduce`: the evaluation of chapter 7 of the TALPF thesis, in virtual time.
//!
//! Each figure is an application, one rule by which its problem grows with the ranks, and the versions of
//! table 7.1 ([`figures`]). Every point is one run without execution
//! ([`points`]). What the text says of a figure is judged by what came out ([`statements`]), agreeing or
//! not; nothing is adjusted until it does. The page opens without a network ([`page`]).

mod figures;
mod page;
mod points;
mod results;
mod statements;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use talpf::Profile;
use talpf_apps::Error;
use talpf_apps::run::Simulation;

use self::figures::{FIGURES, Figure, Size};
use self::results::{FigureResults, Results};
use super::output::Output;
use super::progress_bar::ProgressBar;

/// Profile of the machine of the thesis.
const PROFILE: &str = "kunpeng-4x4";

/// Figures, and the folder of their results.
#[derive(Args, Debug)]
#[command(arg_required_else_help = false)]
pub(super) struct Options {
    /// Figures of chapter 7 [default: all]
    #[arg(value_name = "FIGURE", value_parser = numbers())]
    figures: Vec<String>,

    /// Folder for report.html and results.json
    #[arg(short, long, value_name = "DIR", default_value = "reproduced")]
    out: PathBuf,

    /// Use smaller problems on at most 8 ranks: seconds in place of minutes, to see the form of the
    /// report
    #[arg(long)]
    quick: bool,

    /// Show no progress bar
    #[arg(long)]
    quiet: bool,
}

/// Returns a parser of the numbers of figures.
fn numbers() -> PossibleValuesParser {
    let mut numbers = FIGURES.each_ref().map(|figure| figure.number).to_vec();
    // A figure in two sizes has one number.
    numbers.dedup();
    PossibleValuesParser::new(numbers)
}

pub(super) fn run(options: Options) -> Result<(), Error> {
    let Options { figures, out, quick, quiet } = options;
    let is_chosen = |figure: &&Figure| {
        figures.is_empty() || figures.iter().any(|number| number == figure.number)
    };
    let figures: Vec<&Figure> = FIGURES.iter().filter(is_chosen).collect();
    let profile: &'static Profile = Box::leak(Box::new(Profile::load(PROFILE)?));
    let machine = Simulation { profile, cores: profile.cores(), executes: false };
    let json = Output::open_in(&out, "results.json")?;
    let html = Output::open_in(&out, "report.html")?;
    let size = if quick { Size::Quick } else { Size::Full };

    let points = figures.iter().map(|figure| figure.points(size).len()).sum();
    let (bar, progress) = ProgressBar::start("reproduce", points, quiet);
    let measured = points::measure(&figures, size, machine, &progress)?;
    drop(bar);
    let figures = figures.into_iter().zip(measured);
    let figures = figures.map(|(figure, points)| FigureResults::new(figure, size, points));
    let results = Results { machine, size, figures: figures.collect() };

    let pretty = serde_json::to_string_pretty(&results.json()).map_err(std::io::Error::from);
    json.write(|out| out.write_all((pretty? + "\n").as_bytes()))?;
    html.write(|out| out.write_all(page::page(&results).as_bytes()))?;
    super::print(&format!("{}report {}\n", results.text(), out.join("report.html").display()))
}
