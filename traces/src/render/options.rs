//! Contents of a picture, as a caller chooses them.

use std::ops::Range;

use super::view::{Rows, View};

/// Contents of a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenderOptions {
    /// View that is drawn.
    pub view: View,
    /// Objects that have a row each; `None` for those of the view.
    pub rows: Option<Rows>,
    /// Ranks that are shown; `None` for all.
    pub ranks: Option<Range<u32>>,
    /// First time that is shown.
    pub from_ns: u64,
    /// Time after the last that is shown; `None` for the end of the trace.
    pub to_ns: Option<u64>,
    /// Title of the picture.
    pub title: String,
}
