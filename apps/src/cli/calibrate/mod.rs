//! `talpf calibrate`: a profile of this machine, and how well it predicts real runs.
//!
//! The overheads of the runtime are measured by themselves ([`overheads`]). The costs of an application are
//! those with which two runs in virtual time, of large and of small tasks, take the time of the real runs
//! ([`fit`]). Then other sizes run on one and on two ranks, really and in virtual time, and the error
//! of each prediction is printed.

mod fit;
mod overheads;
mod samples;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use talpf::Profile;
use talpf_apps::Error;
use talpf_apps::gauss_seidel::GaussSeidel;
use talpf_apps::jacobi::Jacobi;
use talpf_apps::kmeans::Kmeans;
use talpf_apps::mandelbrot::Mandelbrot;
use talpf_apps::matmul::Matmul;
use talpf_apps::nbody::Nbody;
use talpf_apps::run::{self, App, Machine, Observer, Simulation};
use talpf_runtime::cores;

use self::fit::Costs;
use self::overheads::Overheads;
use self::samples::{Sample, Samples};
use super::output::Output;

/// Application to calibrate, and the file of the profile.
#[derive(Args, Debug)]
#[command(arg_required_else_help = false)]
pub(super) struct Options {
    /// Application whose costs are measured [default: each]
    #[arg(value_enum)]
    app: Option<Calibrated>,

    /// File of the profile, for --simulate FILE
    #[arg(short, long, value_name = "FILE", default_value = "this-machine.toml")]
    out: PathBuf,

    /// Real runs of each size, of which the shortest counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = super::number_within::number_within(1..=1000))]
    repeat: usize,

    /// Use tiny problems, to see the form of the results
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Calibrated {
    Jacobi,
    GaussSeidel,
    Nbody,
    Matmul,
    Kmeans,
    Mandelbrot,
}

/// Real and predicted time of a run.
struct Prediction {
    what: String,
    real_s: f64,
    predicted_s: f64,
}

pub(super) fn run(options: Options) -> Result<(), Error> {
    let Options { app, out, repeat, quick } = options;
    let file = Output::open(&out)?;
    let overheads = Overheads::measure(quick)?;
    super::print(&overheads.text())?;
    let (mut profile, mut predictions) = (overheads.profile(), Vec::new());
    for calibrated in Calibrated::value_variants() {
        if app.is_none_or(|app| app == *calibrated) {
            let session = Session { profile: &mut profile, repeat, quick };
            predictions.extend(match calibrated {
                Calibrated::Jacobi => session.calibrate::<Jacobi>(),
                Calibrated::GaussSeidel => session.calibrate::<GaussSeidel>(),
                Calibrated::Nbody => session.calibrate::<Nbody>(),
                Calibrated::Matmul => session.calibrate::<Matmul>(),
                Calibrated::Kmeans => session.calibrate::<Kmeans>(),
                Calibrated::Mandelbrot => session.calibrate::<Mandelbrot>(),
            }?);
        }
    }
    // A text that is read again, so that it can be.
    Profile::parse("this-machine", &profile)?;
    file.write(|out| out.write_all(profile.as_bytes()))?;
    super::print(&format!("{}profile {}\n", table(&predictions), out.display()))
}

/// Calibration of one application after another.
struct Session<'p> {
    /// Text of the profile so far.
    profile: &'p mut String,
    repeat: usize,
    quick: bool,
}

impl Session<'_> {
    /// Measures the costs of an application, adds them to the profile, and predicts other sizes.
    fn calibrate<A: Samples>(self) -> Result<Vec<Prediction>, Error> {
        let [large, small] = A::calibrated(self.quick)?;
        let samples = A::predicted(self.quick)?;
        let predicted = samples.iter().flat_map(|sample| [(sample, 1), (sample, 2)]);
        let runs: Vec<_> = [(&large, 1), (&small, 1)].into_iter().chain(predicted).collect();
        let real_s = self.real(&runs)?;
        let costs = fit::fit([real_s[0], real_s[1]], |costs| {
            let profile = format!("{}{}", self.profile, costs.line(A::WORK[0]));
            Ok([simulated(&large, 1, &profile)?, simulated(&small, 1, &profile)?])
        })?;
        self.profile.push_str(&costs.line(A::WORK[0]));
        let predictions = runs.iter().zip(real_s).skip(2).map(|(&(sample, ranks), real_s)| {
            let what = format!("{}, {}, ranks {ranks}", A::NAME, sample.text());
            let predicted_s = simulated(sample, ranks, self.profile)?;
            Ok(Prediction { what, real_s, predicted_s })
        });
        predictions.collect()
    }

    /// Returns the shortest of several real times of each run, given with its number of ranks. Each run has its first
    /// time before any has its second one, as the machine may be slower for a while.
    fn real<A: App>(&self, runs: &[(&Sample<A>, usize)]) -> Result<Vec<f64>, Error> {
        let mut shortest_s = vec![f64::INFINITY; runs.len()];
        for _ in 0..self.repeat {
            for (shortest_s, (sample, ranks)) in shortest_s.iter_mut().zip(runs) {
                let machine = Machine::new(*ranks, cores().min(*Machine::WORKERS.end()))?;
                *shortest_s = shortest_s.min(seconds(sample, machine)?);
            }
        }
        Ok(shortest_s)
    }
}

/// Returns the time that a profile predicts. The cores of this machine are shared by the ranks.
fn simulated<A: App>(sample: &Sample<A>, ranks: usize, profile: &str) -> Result<f64, Error> {
    let profile = Box::leak(Box::new(Profile::parse("this-machine", profile)?));
    let cores = (cores() / ranks).clamp(1, *Simulation::CORES.end()) as u32;
    let simulation = Simulation { profile, cores, executes: false };
    seconds(sample, Machine::new(ranks, 1)?.simulated(simulation))
}

fn seconds<A: App>(sample: &Sample<A>, machine: Machine) -> Result<f64, Error> {
    let solution = run::run::<A>(A::USUAL, &sample.problem, machine, &Observer::default())?;
    Ok(solution.map_or(0.0, |solution| solution.seconds).max(1e-9))
}

impl Prediction {
    /// Returns the error relative to the real time.
    fn error(&self) -> f64 {
        self.predicted_s / self.real_s - 1.0
    }
}

/// Formats all predictions, and the median of their errors.
fn table(predictions: &[Prediction]) -> String {
    let width = predictions.iter().map(|line| line.what.len()).max().unwrap_or(0);
    let line = |line: &Prediction| {
        let [real, predicted] = [line.real_s, line.predicted_s].map(|seconds| 1e3 * seconds);
        let error = 100.0 * line.error();
        let what = &line.what;
        format!("{what:<width$} real {real:9.3} ms, predicted {predicted:9.3} ms, {error:+6.1} %\n")
    };
    let lines = predictions.iter().map(line).collect::<String>();
    let mut errors: Vec<f64> = predictions.iter().map(|line| line.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let median = errors.get(errors.len() / 2).copied().unwrap_or(0.0);
    format!("{lines}median error {:.1} %\n", 100.0 * median)
}

impl Costs {
    /// Returns the line of a profile.
    fn line(self, kind: &str) -> String {
        format!("{kind} = \"{:.3}ns + {:.3}ns\"\n", self.fixed_ns, self.unit_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_errors_in_both_directions() {
        let prediction =
            |real_s, predicted_s| Prediction { what: "a".to_owned(), real_s, predicted_s };
        let lines = table(&[prediction(1.0, 1.5), prediction(1.0, 0.8), prediction(2.0, 2.02)]);
        assert!(
            lines.contains("a real  1000.000 ms, predicted  1500.000 ms,  +50.0 %\n"),
            "{lines}"
        );
        assert!(lines.ends_with("median error 20.0 %\n"), "{lines}");
    }
}
