//! An application of the ablation, measured in a process of its own.

use talpf::Settings;
use talpf_apps::gauss_seidel::{self, GaussSeidel};
use talpf_apps::heat::{Problem as Heat, default_sources};
use talpf_apps::jacobi::{self, Jacobi};
use talpf_apps::nbody::{self, Nbody, Particles};
use talpf_apps::run::{self, App, Machine, Observer};
use talpf_runtime::cores;

use crate::error::Error;
use crate::measure::Report;

/// Runs of a problem of which the median counts, after one that does not.
const RUNS: usize = 3;

/// Measures the application `name` of two ranks on all cores, spawned and replayed, as
/// `app.NAME_ms` and `app.NAME_replay_ms`.
///
/// **Errors**: no application of that name; those of the runs.
pub fn sample(name: &str) -> Result<Report, Error> {
    let heat = |size, block: fn(usize) -> usize, steps| {
        Heat::new(size, size, block(size), steps, default_sources())
    };
    match name {
        "jacobi_512" => measure::<Jacobi>(name, heat(512, jacobi::block, 1000)?),
        "jacobi_1024" => measure::<Jacobi>(name, heat(1024, jacobi::block, 250)?),
        "jacobi_4096" => measure::<Jacobi>(name, heat(4096, jacobi::block, 24)?),
        "gauss_seidel_512" => measure::<GaussSeidel>(name, heat(512, gauss_seidel::block, 300)?),
        "nbody_2048" => {
            let particles = Particles::generate(2048, 64, 1);
            measure::<Nbody>(name, nbody::Problem::new(particles, 20, true, 1)?)
        }
        _ => Err(Error::NoSuchFigure { name: name.to_owned() }),
    }
}

fn measure<A: App>(name: &str, problem: A::Problem) -> Result<Report, Error> {
    let machine = Machine::new(2, cores().min(*Machine::WORKERS.end()))?.set(Settings::load(None)?);
    let mut report = Report::new("");
    for (replays, of_replay) in [(false, ""), (true, "_replay")] {
        if replays && !A::REPLAYED.contains(&A::USUAL) {
            continue;
        }
        let machine = machine.replaying(replays);
        let mut samples = Vec::new();
        for _ in 0..=RUNS {
            let solution = run::run::<A>(A::USUAL, &problem, machine, &Observer::default())?;
            samples.push(solution.expect("all ranks are in this process").seconds * 1e3);
        }
        samples.remove(0);
        report.add(&format!("app.{name}{of_replay}_ms"), "ms", samples);
    }
    Ok(report)
}
