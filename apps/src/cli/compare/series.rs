//! Lines of a plot.

use super::results::{Method, Point, Results, Spread};

/// Line of one variant in one plot.
pub(crate) struct Series {
    pub(crate) name: String,
    /// CSS classes: one for the colour and mark of the variant, the same in all plots, and
    /// `replayed`.
    pub(crate) class: String,
    /// Number of the mark.
    pub(crate) style: usize,
    /// `true` if the variant has ranks; otherwise it is drawn as a horizontal line.
    pub(crate) has_ranks: bool,
    pub(crate) values: Vec<Value>,
}

/// Value on a number of ranks.
pub(crate) struct Value {
    pub(crate) ranks: usize,
    pub(crate) spread: Spread,
}

/// Creates a series for each variant from a `value` of its points.
pub(super) fn series(
    results: &Results,
    with_levels: bool,
    value: impl Fn(&Point) -> Spread,
) -> Vec<Series> {
    let mut methods: Vec<Method> = results.points.iter().map(|point| point.method).collect();
    methods.dedup();
    let mut variants: Vec<_> = methods.iter().map(|method| method.variant).collect();
    variants.dedup();
    let of_way = |method: Method| {
        let style = variants.iter().position(|known| *known == method.variant).unwrap_or(0);
        let points = results.points.iter().filter(|point| point.method == method);
        let values = points.map(|point| Value { ranks: point.ranks, spread: value(point) });
        let has_ranks = method.variant.has_ranks();
        let class = match (has_ranks, method.replay) {
            (false, _) => format!("s{style} level"),
            (true, false) => format!("s{style}"),
            (true, true) => format!("s{style} replayed"),
        };
        Series { name: method.name(), class, style, has_ranks, values: values.collect() }
    };
    methods
        .into_iter()
        .filter(|method| with_levels || method.variant.has_ranks())
        .map(of_way)
        .collect()
}
