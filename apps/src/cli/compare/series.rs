//! The points as lines of a plot.

use talpf_apps::run::Variant;

use super::results::{Point, Results, Spread};

/// One variant in one plot.
pub(super) struct Series {
    pub(super) name: &'static str,
    /// Which of the colours and marks of the page it has, the same in all plots.
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

/// The variants that were measured, in order.
pub(super) fn variants(results: &Results) -> Vec<Variant> {
    let mut variants: Vec<Variant> = results.points.iter().map(|point| point.variant).collect();
    variants.dedup();
    variants
}

/// A series for each variant, of what `value` says of its points.
pub(super) fn series(
    results: &Results,
    with_levels: bool,
    value: impl Fn(&Point) -> Spread,
) -> Vec<Series> {
    let of_variant = |(style, variant): (usize, Variant)| {
        let points = results.points.iter().filter(|point| point.variant == variant);
        let values = points.map(|point| Value { ranks: point.ranks, spread: value(point) });
        let has_ranks = variant.has_ranks();
        Series { name: variant.name(), style, has_ranks, values: values.collect() }
    };
    let all = variants(results).into_iter().enumerate();
    all.filter(|(_, variant)| with_levels || variant.has_ranks()).map(of_variant).collect()
}
