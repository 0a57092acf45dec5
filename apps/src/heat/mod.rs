//! Heat diffusion, independent of the method: sources of heat, the resulting border of a matrix,
//! and its distribution to ranks.
//!
//! Positions and sizes of sources are in unit coordinates: (0, 0) is the upper left corner of the
//! matrix with its border, (1, 1) the lower right one. So one set of sources fits every matrix
//! size.

mod border;
mod config;
mod field;
mod field_halo;
mod problem;
mod residual;
mod temperatures;
mod tolerance;

pub use border::Border;
pub use config::{default_sources, load, parse};
pub use problem::Problem;
pub use temperatures::Temperatures;
pub use tolerance::Convergence;

pub(crate) use field::collect_field;
pub(crate) use field_halo::FieldHalo;
pub(crate) use residual::{CheckedStep, Residual};
pub(crate) use tolerance::{PERIOD, Periods, TeamChanges, largest_change};

/// Heat source: a cone of heat around one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// Row of the centre, from 0 (top) to 1.
    pub row: f64,
    /// Column of the centre, from 0 (left) to 1.
    pub col: f64,
    /// Radius of the cone, in the unit of `row` and `col`.
    pub size: f64,
    /// Temperature at the centre; it falls linearly to zero at distance `size`.
    pub temperature: f64,
}

impl Source {
    /// Returns the temperature that this source alone causes at a point.
    pub fn temperature_at(&self, row: f64, col: f64) -> f64 {
        let distance = (row - self.row).hypot(col - self.col);
        if distance < self.size {
            self.temperature * (self.size - distance) / self.size
        } else {
            0.0
        }
    }
}
