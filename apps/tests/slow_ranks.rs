//! Ranks whose cores are so slow that any machine has time for all of them: what counts is how long
//! they wait for each other.

use talpf_apps::gauss_seidel::GaussSeidel;
use talpf_apps::heat;
use talpf_apps::run::{Machine, Observer, Slowdown, Variant, run};

#[test]
#[ignore = "measures time, which a busy machine does not have"]
fn gauss_seidel_has_at_least_1_7_times_the_throughput_on_lanes() {
    let problem = heat::Problem::new(256, 256, 16, 12, heat::default_sources()).unwrap();
    let machine = Machine::new(4, 2).unwrap();
    let machine = machine.slowed(Some(Slowdown { rank: None, factor: 40.0 }));
    let seconds = |variant| {
        let run = || run::<GaussSeidel>(variant, &problem, machine, &Observer::default());
        (0..3).map(|_| run().unwrap().unwrap().seconds).fold(f64::INFINITY, f64::min)
    };
    let (default, lanes) = (seconds(Variant::TalpfDefault), seconds(Variant::TalpfLanes));
    assert!(default > 1.7 * lanes, "{default} s and {lanes} s");
}
