//! Ranks whose cores are so slow that any machine has time for all of them: what counts is how long
//! they wait for each other.

use talpf_apps::gauss_seidel::GaussSeidel;
use talpf_apps::heat;
use talpf_apps::run::{Machine, Observer, Slowdown, Variant, run};

/// Runs of each variant, and at most: a busy machine may need more for one that nothing disturbs.
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
