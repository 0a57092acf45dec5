//! Ranks with cores so slow that any machine has time for all of them: the time is that of waiting
//! for each other.

use talpf_apps::gauss_seidel::GaussSeidel;
use talpf_apps::heat;
use talpf_apps::run::{Machine, Observer, Slowdown, Variant, run};

/// Number of runs of each variant at most: on a busy machine some may be disturbed.
const RUNS: usize = 3;
const MOST_RUNS: usize = 12;

#[test]
fn gauss_seidel_has_at_least_1_7_times_the_throughput_on_lanes() {
    let problem = heat::Problem::new(256, 256, 16, 12, heat::default_sources()).unwrap();
    let machine = Machine::new(4, 2).unwrap();
    let machine = machine.slowed(Some(Slowdown { rank: None, factor: 40.0 }));
    let seconds = |variant| {
        run::<GaussSeidel>(variant, &problem, machine, &Observer::default())
            .unwrap()
            .unwrap()
            .seconds
    };
    let (mut default, mut lanes) = (f64::INFINITY, f64::INFINITY);
    for runs in 1..=MOST_RUNS {
        default = default.min(seconds(Variant::TalpfDefault));
        lanes = lanes.min(seconds(Variant::TalpfLanes));
        if runs >= RUNS && default > 1.7 * lanes {
            return;
        }
    }
    panic!("{default} s and {lanes} s at best");
}
