//! Points, the centres that are nearest to them, and the means of those of each centre.

use std::ops::Range;

use crate::random::mix;

/// Number of coordinates of a point.
pub const AXES: usize = 2;
/// Numbers of a cluster in the sums: of its coordinates, and of its points.
pub const SUMS: usize = AXES + 1;
/// Bits of a coordinate.
const BITS: u32 = 20;
/// Number of places around which points lie.
const PLACES: u64 = 64;

/// Returns the coordinates of some points (`points x 2`).
pub fn points(numbers: Range<usize>) -> Vec<f64> {
    numbers.flat_map(point).collect()
}

/// Returns a point: near one of some places, at a random distance.
fn point(number: usize) -> [f64; AXES] {
    let random = mix(number as u64);
    let place = mix((random % PLACES) << 32);
    let axis = |axis: u32| {
        let place = (place >> (32 * axis)) & ((1 << BITS) - 1);
        let offset = (random >> (8 + 16 * axis)) & 0xffff;
        // Between two places at the border as well.
        ((place + offset) & ((1 << BITS) - 1)) as f64
    };
    [axis(0), axis(1)]
}

/// Returns the first centres (`clusters x 2`), which are points.
pub fn first_centres(clusters: usize, points: usize) -> Vec<f64> {
    let number = |cluster: usize| cluster * points / clusters;
    (0..clusters).flat_map(|cluster| point(number(cluster))).collect()
}

/// Adds points to the sums (`clusters x 3`) of the clusters whose centres are nearest to them, of
/// several the first.
pub fn assign(points: &[f64], centres: &[f64], sums: &mut [f64]) {
    let (points, _) = points.as_chunks::<AXES>();
    let (centres, _) = centres.as_chunks::<AXES>();
    let (sums, _) = sums.as_chunks_mut::<SUMS>();
    for [x, y] in points {
        let (mut nearest, mut least) = (0, f64::INFINITY);
        for (cluster, [across, down]) in centres.iter().enumerate() {
            let (across, down) = (x - across, y - down);
            let distance = across * across + down * down;
            if distance < least {
                (nearest, least) = (cluster, distance);
            }
        }
        let sum = &mut sums[nearest];
        sum[0] += x;
        sum[1] += y;
        sum[2] += 1.0;
    }
}

/// Adds sums to others.
pub fn add(sums: &mut [f64], more: &[f64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Moves centres to the means of their points; one without points stays. Sums are those of all parts
/// of the points, in this order (`parts x clusters x 3`).
pub fn advance(centres: &mut [f64], sums: &[f64]) {
    let (centres, _) = centres.as_chunks_mut::<AXES>();
    let (sums, _) = sums.as_chunks::<SUMS>();
    let clusters = centres.len();
    for (cluster, centre) in centres.iter_mut().enumerate() {
        let mut all = [0.0; SUMS];
        sums[cluster..].iter().step_by(clusters).for_each(|part| add(&mut all, part));
        let [x, y, count] = all;
        if count > 0.0 {
            *centre = [x / count, y / count];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_belong_to_the_nearest_centre_and_to_the_first_of_two() {
        let centres = [0.0, 0.0, 10.0, 0.0, 0.0, 0.0];
        let mut sums = [0.0; 9];
        assign(&[1.0, 1.0, 9.0, 2.0, 5.0, 0.0, 6.0, 3.0], &centres, &mut sums);
        assert_eq!(sums, [6.0, 1.0, 2.0, 15.0, 5.0, 2.0, 0.0, 0.0, 0.0]);
        let mut centres = centres;
        advance(&mut centres, &sums);
        assert_eq!(centres, [3.0, 0.5, 7.5, 2.5, 0.0, 0.0]);
    }

    #[test]
    fn centres_are_means_of_the_points_of_all_parts() {
        let mut centres = [1.0, 2.0, 3.0, 4.0];
        advance(&mut centres, &[2.0, 4.0, 1.0, 0.0, 0.0, 0.0, 6.0, 0.0, 3.0, 0.0, 0.0, 0.0]);
        assert_eq!(centres, [2.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn coordinates_are_whole_numbers_within_their_bits() {
        let points = points(0..10_000);
        assert!(points.iter().all(|axis| axis.fract() == 0.0 && (0.0..1_048_576.0).contains(axis)));
        let differ = |pair: &[f64]| pair[0] != pair[1];
        assert!(points.chunks(2).filter(|pair| differ(pair)).count() > 9_000);
    }
}
