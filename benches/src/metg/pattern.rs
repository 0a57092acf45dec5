//! The dependence patterns of Task Bench.
//!
//! A pattern says which points of the step before a point depends on. Some patterns take turns
//! between several such relations, their *sets*; a step belongs to one of them.

use std::fmt;
use std::ops::Range;

use clap::ValueEnum;

/// A dependence pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Pattern {
    /// Nothing.
    Trivial,
    /// Every point on itself.
    NoComm,
    /// Every point on itself and its neighbours, on a line.
    #[value(name = "stencil_1d")]
    Stencil1d,
    /// Every point on itself and its neighbours, on a ring.
    #[value(name = "stencil_1d_periodic")]
    Stencil1dPeriodic,
    /// A sweep: every point on itself and the point before; points join one a step at the beginning
    /// and leave one a step at the end.
    Dom,
    /// A tree: the number of points doubles up to the width; every point on the one of half its
    /// number.
    Tree,
    /// A butterfly: every point on itself and those at a distance that doubles with every step.
    Fft,
    /// Every point on all.
    AllToAll,
    /// Every point on the `radix` points around it, on a line.
    Nearest,
    /// Every point on `radix` points spread evenly; all but the first move on with every step.
    Spread,
    /// Every point on some of the `radix` points around it, drawn for each step.
    RandomNearest,
}

/// A point takes each of its candidates in one of this many draws of [`Pattern::RandomNearest`].
const DRAWS: u64 = 4;

impl Pattern {
    /// How many sets the pattern takes turns between at this width.
    pub fn sets(self, width: usize) -> usize {
        match self {
            Pattern::Fft => (width.next_power_of_two().ilog2() as usize).max(1),
            Pattern::Spread | Pattern::RandomNearest => width,
            _ => 1,
        }
    }

    /// The points of a step of a graph of `steps x width` points.
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

    /// The points that `point` depends on in a set, in ascending order.
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
                    let turn = if spoke > 0 { set } else { 0 };
                    (point + spoke * width / radix + turn) % width
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
