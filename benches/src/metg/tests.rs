use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;

use super::sweep::{Entrant, Plan, sweep};
use super::work::{Contender, Run, Work};
use super::{Graph, Kernel, OpenMp, Ours, Pattern, Rayon, Tokio};
use crate::error::Error;

/// Returns `true` if `point` depends on `from` by the patterns' definitions with differences and
/// remainders.
fn depends(
    pattern: Pattern,
    set: usize,
    (point, from): (i64, i64),
    width: i64,
    radix: i64,
) -> bool {
    let is_near = || radix > 0 && 2 * (from - point) <= radix && 2 * (point - from) < radix;
    match pattern {
        Pattern::Trivial => false,
        Pattern::NoComm => from == point,
        Pattern::Stencil1d => (from - point).abs() <= 1,
        Pattern::Stencil1dPeriodic => {
            (-1..=1).any(|offset| (from - point - offset).rem_euclid(width) == 0)
        }
        Pattern::Dom => from == point || from == point - 1,
        Pattern::Tree => point == 2 * from || point == 2 * from + 1,
        Pattern::Fft => from == point || (from - point).abs() == 1 << set,
        Pattern::AllToAll => true,
        Pattern::Nearest => is_near(),
        Pattern::Spread => (0..radix).any(|spoke| {
            let shift = if spoke == 0 { 0 } else { set as i64 };
            (from - point - spoke * width / radix - shift).rem_euclid(width) == 0
        }),
        Pattern::RandomNearest => {
            let (point, from) = (point as usize, from as usize);
            is_near() && super::pattern::is_drawn(set, point, from)
        }
    }
}

#[test]
fn dependences_are_those_of_the_definition() {
    for pattern in Pattern::value_variants() {
        for (width, radix) in (1..=17).flat_map(|width| (0..=6).map(move |radix| (width, radix))) {
            for set in 0..pattern.sets(width) {
                for point in 0..width {
                    let wanted = |from: &usize| {
                        let pair = (point as i64, *from as i64);
                        depends(*pattern, set, pair, width as i64, radix as i64)
                    };
                    let wanted: Vec<_> = (0..width).filter(wanted).collect();
                    let found = pattern.dependences(set, point, width, radix);
                    assert_eq!(
                        found, wanted,
                        "{pattern} {width} {radix}: point {point}, set {set}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_butterfly_spans_its_width() {
    for (width, sets) in [(1, 1), (2, 1), (3, 2), (8, 3), (9, 4), (32, 5)] {
        assert_eq!(Pattern::Fft.sets(width), sets, "width {width}");
    }
}

#[test]
fn a_quarter_of_the_nearest_is_drawn_and_every_step_draws_anew() {
    let pattern = Pattern::RandomNearest;
    let of_set = |set: usize| -> Vec<Vec<usize>> {
        (0..64).map(|point| pattern.dependences(set, point, 64, 5)).collect()
    };
    let drawn: usize = (0..64).map(|set| of_set(set).concat().len()).sum();
    let part = drawn as f64 / (64.0 * 64.0 * 5.0);
    assert!((0.2..0.3).contains(&part), "{part}");
    assert_ne!(of_set(0), of_set(1));
}

#[test]
fn a_sweep_begins_and_ends_with_one_point() {
    let points: Vec<_> = (0..6).map(|step| Pattern::Dom.points(step, 6, 3)).collect();
    assert_eq!(points, [0..1, 0..2, 0..3, 0..3, 1..3, 2..3]);
}

#[test]
fn a_tree_doubles_up_to_its_width() {
    let points: Vec<_> = (0..5).map(|step| Pattern::Tree.points(step, 100, 6).end).collect();
    assert_eq!(points, [1, 2, 4, 6, 6]);
    assert_eq!(Pattern::Tree.points(99, 100, 6), 0..6);
}

#[test]
fn inputs_are_points_that_the_step_before_has() {
    for pattern in Pattern::value_variants() {
        let graph = Graph::new(*pattern, 6, 9, 5);
        for step in 0..9 {
            for point in graph.points(step) {
                let inputs = graph.dependences(step, point);
                assert!(step > 0 || inputs.is_empty(), "{pattern}");
                assert!(inputs.iter().all(|from| graph.points(step - 1).contains(from)));
            }
        }
    }
}

fn check(mut contender: Box<dyn Contender>) {
    for pattern in Pattern::value_variants() {
        for width in [1, 2, 7] {
            let graph = Arc::new(Graph::new(*pattern, width, 20, 5));
            let work = Work { graph: Arc::clone(&graph), kernel: Kernel::Compute, iterations: 1 };
            let run = contender.run(&work).expect("a run");
            assert_eq!(run.checksum, graph.checksum(), "{pattern}, width {width}");
        }
    }
}

#[test]
fn ours_computes_every_pattern() {
    check(Box::new(Ours::discovering().expect("threads")));
}

#[test]
fn ours_computes_every_pattern_when_it_replays() {
    check(Box::new(Ours::replaying().expect("threads")));
}

#[test]
fn rayon_computes_every_pattern() {
    check(Box::new(Rayon::start().expect("threads")));
}

#[test]
fn tokio_computes_every_pattern() {
    check(Box::new(Tokio::start().expect("threads")));
}

#[test]
fn openmp_computes_every_pattern() {
    match OpenMp::compile() {
        Ok(openmp) => check(Box::new(openmp)),
        Err(Error::NotInstalled { command }) => eprintln!("no {command}: nothing to check"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn memory_kernels_run_in_tasks() {
    let graph = Arc::new(Graph::new(Pattern::Stencil1d, 4, 5, 5));
    let work = Work { graph, kernel: Kernel::Memory, iterations: 3 };
    let run = Ours::discovering().and_then(|mut ours| ours.run(&work)).expect("a run");
    assert_eq!(run.checksum, work.graph.checksum());
}

/// Model of two cores that take `overhead` per task and one microsecond per iteration.
struct Model {
    overhead: Duration,
    runs: Graph,
}

const PLAN: Plan = Plan { repetitions: 2, begin: 16, most: 256, cores: 2 };

impl Contender for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn run(&mut self, work: &Work) -> Result<Run, Error> {
        let task = self.overhead + Duration::from_micros(work.iterations);
        let tasks = work.graph.tasks() as u32;
        Ok(Run { elapsed: task * tasks / 2, checksum: self.runs.checksum() })
    }

    fn peak(&mut self, _: Kernel) -> Result<f64, Error> {
        Ok(2e6)
    }
}

fn swept(overhead_us: u64, runs: Pattern) -> Result<Vec<Option<f64>>, Error> {
    let of = |pattern| Graph::new(pattern, 4, 10, 5);
    let overhead = Duration::from_micros(overhead_us);
    let contender = Box::new(Model { overhead, runs: of(runs) });
    let mut entrants = [Entrant { contender, peak: 2e6 }];
    let graph = Arc::new(of(Pattern::Stencil1d));
    Ok(sweep(&mut entrants, &graph, Kernel::Compute, &PLAN)?.remove(0))
}

fn assert_metg(overhead_us: u64, wanted: f64) {
    let found = swept(overhead_us, Pattern::Stencil1d).expect("right results");
    assert_eq!(found.len(), PLAN.repetitions);
    for metg in found {
        let metg = metg.expect("both sides of the half");
        assert!((metg - wanted).abs() < 1e-6, "{metg} instead of {wanted}");
    }
}

#[test]
fn a_sweep_finds_half_of_the_peak_below_where_it_begins() {
    assert_metg(4, 8.0);
}

#[test]
fn a_sweep_finds_half_of_the_peak_above_where_it_begins() {
    assert_metg(64, 128.0);
}

#[test]
fn a_sweep_that_never_reaches_half_of_the_peak_says_so() {
    assert_eq!(swept(100_000, Pattern::Stencil1d).expect("right results"), [None, None]);
}

#[test]
fn a_wrong_result_is_an_error() {
    let error = swept(4, Pattern::Stencil1dPeriodic).expect_err("other dependences");
    assert!(matches!(error, Error::WrongResult { contender: "model", .. }), "{error}");
}
