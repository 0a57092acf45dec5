//! The dependence patterns of Task Bench.
//!
//! A pattern defines the points of the previous step that a point depends on. Some patterns cycle
//! through several such relations, their *sets*; each step belongs to one of them.

use std::fmt;
use std::ops::Range;

use clap::ValueEnum;

/// Dependence pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Pattern {
    /// No dependences.
    Trivial,
    /// Every point depends on itself.
    NoComm,
    /// Every point depends on itself and its neighbours, on a line.
    #[value(name = "stencil_1d")]
    Stencil1d,
    /// Every point depends on itself and its neighbours, on a ring.
    #[value(name = "stencil_1d_periodic")]
    Stencil1dPeriodic,
    /// Sweep: every point depends on itself and the previous point; one point joins in each step at
    /// the beginning, and one leaves in each step at the end.
    Dom,
    /// Tree: the number of points doubles up to the width; every point depends on the one of half
    /// its number.
    Tree,
    /// Butterfly: every point depends on itself and those at a distance that doubles with every
    /// step.
    Fft,
    /// Every point depends on all points.
    AllToAll,
    /// Every point depends on the `radix` points around it, on a line.
    Nearest,
    /// Every point depends on `radix` evenly spread points; all but the first shift with every
    /// step.
    Spread,
    /// Every point depends on a random part of the `radix` points around it, drawn for each step.
    RandomNearest,
}

/// Inverse probability of a candidate of [`Pattern::RandomNearest`].
const DRAWS: u64 = 4;

impl Pattern {
    /// Returns the number of sets that the pattern cycles through at this width.
    pub fn sets(self, width: usize) -> usize {
        match self {
            Pattern::Fft => (width.next_power_of_two().ilog2() as usize).max(1),
            Pattern::Spread | Pattern::RandomNearest => width,
            _ => 1,
        }
    }

    /// Returns the points of a step of a graph of `steps x width` points.
    pub fn points(self, step: usize, steps: usize, width: usize) -> Range<usize> {
        match self {
            Pattern::Dom => {
                let last = step.min(width - 1);
                (step + width).saturating_sub(steps).min(last)..last + 1
            }
            Pattern::Tree => {
                0..u32::try_from(step)
                    .ok()
                    .and_then(|step| 1usize.checked_shl(step))
                    .map_or(width, |points| points.min(width))
            }
            _ => 0..width,
        }
    }

    /// Returns the points that `point` depends on in a set, in ascending order.
    pub fn dependences(self, set: usize, point: usize, width: usize, radix: usize) -> Vec<usize> {
        let around = |below: usize, above: usize| -> Vec<usize> {
            (point.saturating_sub(below)..width.min(point + above + 1)).collect()
        };
        let nearest = || match radix {
            0 => Vec::new(),
            _ => around((radix - 1) / 2, radix / 2),
        };
        let mut found = match self {
            Pattern::Trivial => Vec::new(),
            Pattern::NoComm => vec![point],
            Pattern::Stencil1d => around(1, 1),
            Pattern::Stencil1dPeriodic => {
                vec![(point + width - 1) % width, point, (point + 1) % width]
            }
            Pattern::Dom => around(1, 0),
            Pattern::Tree => vec![point / 2],
            Pattern::Fft => {
                let distance = 1 << set;
                let below = point.checked_sub(distance);
                let above = Some(point + distance).filter(|above| *above < width);
                below.into_iter().chain([point]).chain(above).collect()
            }
            Pattern::AllToAll => (0..width).collect(),
            Pattern::Nearest => nearest(),
            Pattern::Spread => (0..radix)
                .map(|spoke| {
                    let shift = if spoke > 0 { set } else { 0 };
                    (point + spoke * width / radix + shift) % width
                })
                .collect(),
            Pattern::RandomNearest => {
                nearest().into_iter().filter(|from| is_drawn(set, point, *from)).collect()
            }
        };
        found.sort_unstable();
        found.dedup();
        found
    }
}

pub(super) fn is_drawn(set: usize, point: usize, from: usize) -> bool {
    let numbers = [set, point, from].map(|number| number as u64);
    numbers.into_iter().fold(0, super::checksum::fold).is_multiple_of(DRAWS)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("hidden", |value| value.get_name()))
    }
}
