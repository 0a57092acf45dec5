//! Rows of a view as runs of equal values, without text in a drawing.

use std::ops::Range;

use super::bins::Run;
use super::palette::Colour;

/// View of a trace over time, for a page that zooms.
pub(crate) struct Timeline {
    /// Label of the view.
    pub(crate) title: String,
    /// Names of the rows.
    pub(crate) names: Vec<String>,
    /// Time that is shown, in nanoseconds.
    pub(crate) shown: Range<u64>,
    /// Number of columns of that time.
    pub(crate) columns: usize,
    pub(crate) values: Vec<ShownValue>,
    pub(crate) legend: Vec<(Colour, String)>,
    /// Sentences that a reader must know beside it.
    pub(crate) notes: Vec<String>,
}

/// Value of a view, and the cells that show it.
pub(crate) struct ShownValue {
    pub(crate) colour: Colour,
    pub(crate) label: String,
    pub(crate) runs: Vec<Run>,
}
