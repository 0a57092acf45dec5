//! Serial moves centres to the means of their points, and every other variant gives its centres.

use talpf_apps::kmeans::{Kmeans, Problem, kernel, serial};
use talpf_apps::run::{App, Observer, Variant};

use crate::{check, progress_is_counted};

/// Points, clusters, block and steps.
const SHAPES: [[usize; 4]; 5] = [
    [1_000, 7, 64, 6],
    [1_001, 13, 100, 4],
    // Clusters without points; blocks that are larger than a share.
    [9, 20, 7, 3],
    [500, 1, 1_000, 2],
    // More sums than points.
    [300, 700, 40, 2],
];

fn problem([points, clusters, block, steps]: [usize; 4]) -> Problem {
    Problem::new(points, clusters, block, steps).unwrap()
}

#[test]
fn serial_moves_centres_to_the_means_of_their_points() {
    let [points, clusters, block, _] = SHAPES[0];
    let problem = problem([points, clusters, block, 1]);
    let found = serial::solve(&problem, &Observer::default()).result;
    let (first, points) = (kernel::first_centres(clusters, points), kernel::points(0..points));
    let distance = |point: &[f64], centre: &[f64]| {
        (point[0] - centre[0]).powi(2) + (point[1] - centre[1]).powi(2)
    };
    let nearest = |point: &[f64]| {
        let each = first.chunks(2).map(|centre| distance(point, centre)).enumerate();
        each.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap().0
    };
    for cluster in 0..clusters {
        let own: Vec<_> = points.chunks(2).filter(|point| nearest(point) == cluster).collect();
        for axis in 0..2 {
            let mean = own.iter().map(|point| point[axis]).sum::<f64>() / own.len() as f64;
            assert_eq!(found.cells()[2 * cluster + axis], mean);
        }
    }
}

#[test]
fn every_variant_is_serial_on_any_number_of_ranks_and_workers() {
    for &variant in &Kmeans::VARIANTS[1..] {
        for shape in SHAPES {
            let ranks: &[usize] = if variant == Variant::ForkJoin { &[1] } else { &[1, 2, 3, 8] };
            check::<Kmeans>(variant, &problem(shape), ranks, &[1, 2, 4]);
        }
    }
}

#[test]
fn progress_counts_every_step_once() {
    progress_is_counted::<Kmeans>(&problem([200, 8, 50, 9]));
}
