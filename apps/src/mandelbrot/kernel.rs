//! Iterations of points of the plane.

use std::ops::Range;

/// Returns the number of iterations of the points of some rows of a picture of `size x size` points,
/// each of at most `limit`. Every step has a picture of its own, of a smaller part of the plane.
pub fn rows(step: usize, rows: Range<usize>, size: usize, limit: usize) -> u64 {
    // The centre is at the border of the set.
    let (across, down) = (-0.6, 0.0);
    let width = 3.0 / (1.0 + step as f64 / 8.0);
    let at = |index: usize| ((index as f64 + 0.5) / size as f64 - 0.5) * width;
    rows.map(|row| {
        let row = at(row) + down;
        (0..size).map(|col| iterations(at(col) + across, row, limit)).sum::<u64>()
    })
    .sum()
}

/// Returns the number of iterations after which a point is away from the origin, `limit` at most.
fn iterations(x: f64, y: f64, limit: usize) -> u64 {
    let (mut re, mut im) = (0.0, 0.0);
    for count in 0..limit {
        let (re_2, im_2) = (re * re, im * im);
        if re_2 + im_2 > 4.0 {
            return count as u64;
        }
        (re, im) = (re_2 - im_2 + x, 2.0 * re * im + y);
    }
    limit as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_the_set_stay_and_others_leave() {
        assert_eq!(iterations(0.0, 0.0, 100), 100);
        assert_eq!(iterations(-1.0, 0.0, 100), 100);
        assert_eq!(iterations(3.0, 0.0, 100), 1);
        assert_eq!(iterations(1.0, 1.0, 100), 2);
    }

    #[test]
    fn rows_in_the_middle_take_several_times_as_long() {
        let row = |row| rows(0, row..row + 1, 100, 1000);
        assert!(row(50) > 10 * row(0), "{} and {}", row(50), row(0));
        assert_eq!(rows(3, 0..9, 9, 50), (0..9).map(|row| rows(3, row..row + 1, 9, 50)).sum());
    }
}
