//! The points as lines of a plot.

use super::results::{Point, Results, Spread, Way};

/// One way in one plot.
pub(super) struct Series {
    pub(super) name: String,
    /// The classes of what is drawn: one for the colour and mark of the variant, the same in all
    /// plots, and `replayed`.
    pub(super) class: String,
    /// The number of the mark.
    pub(super) style: usize,
    /// Whether it has ranks; if not, it is a level that others are seen against.
    pub(super) has_ranks: bool,
    pub(super) values: Vec<Value>,
}

/// A value on a number of ranks.
pub(super) struct Value {
    pub(super) ranks: usize,
    pub(super) spread: Spread,
}

/// A series for each way, of what `value` says of its points.
pub(super) fn series(
    results: &Results,
    with_levels: bool,
    value: impl Fn(&Point) -> Spread,
) -> Vec<Series> {
    let mut ways: Vec<Way> = results.points.iter().map(|point| point.way).collect();
    ways.dedup();
    let mut variants: Vec<_> = ways.iter().map(|way| way.variant).collect();
    variants.dedup();
    let of_way = |way: Way| {
        let style = variants.iter().position(|known| *known == way.variant).unwrap_or(0);
        let points = results.points.iter().filter(|point| point.way == way);
        let values = points.map(|point| Value { ranks: point.ranks, spread: value(point) });
        let has_ranks = way.variant.has_ranks();
        let class = match (has_ranks, way.replay) {
            (false, _) => format!("s{style} level"),
            (true, false) => format!("s{style}"),
            (true, true) => format!("s{style} replayed"),
        };
        Series { name: way.name(), class, style, has_ranks, values: values.collect() }
    };
    ways.into_iter().filter(|way| with_levels || way.variant.has_ranks()).map(of_way).collect()
}
