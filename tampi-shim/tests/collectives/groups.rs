use tampi_shim::{Comparison, Error, Rank, RankGroup};

use crate::common::run;

/// The group of 8 ranks.
fn eight() -> RankGroup {
    run(8, async |world| Ok(world.ranks())).expect("the program").remove(0)
}

/// Returns the ranks of the members of `group` in `all`.
fn places(group: &RankGroup, all: &RankGroup) -> Vec<u32> {
    let ranks: Vec<Rank> = (0..group.size()).map(Rank).collect();
    let places = group.translate(&ranks, all).expect("ranks that exist");
    places.into_iter().map(|place| place.expect("a member").0).collect()
}

#[test]
fn groups_are_made_by_naming_ranks_or_leaving_them_out() -> Result<(), Error> {
    let all = eight();
    let some = all.include(&[Rank(5), Rank(0), Rank(3)])?;
    assert_eq!(places(&some, &all), [5, 0, 3]);
    assert_eq!(places(&some.include(&[Rank(2), Rank(0)])?, &all), [3, 5]);
    let rest = all.exclude(&[Rank(5), Rank(0), Rank(3)])?;
    assert_eq!(places(&rest, &all), [1, 2, 4, 6, 7]);
    let ranges = [(Rank(0)..=Rank(6), 3), (Rank(7)..=Rank(7), 1)];
    assert_eq!(places(&all.include_ranges(&ranges)?, &all), [0, 3, 6, 7]);
    assert_eq!(all.include(&[])?.size(), 0);
    Ok(())
}

#[test]
fn groups_are_combined_as_sets_that_keep_their_order() -> Result<(), Error> {
    let all = eight();
    let one = all.include(&[4, 2, 0].map(Rank))?;
    let other = all.include(&[0, 1, 2].map(Rank))?;
    assert_eq!(places(&one.union(&other), &all), [4, 2, 0, 1]);
    assert_eq!(places(&one.intersection(&other), &all), [2, 0]);
    assert_eq!(places(&one.difference(&other), &all), [4]);
    Ok(())
}

#[test]
fn groups_compare_by_members_and_order() -> Result<(), Error> {
    let all = eight();
    let one = all.include(&[1, 2].map(Rank))?;
    assert_eq!(one.compare(&all.include(&[1, 2].map(Rank))?), Comparison::Identical);
    assert_eq!(one.compare(&all.include(&[2, 1].map(Rank))?), Comparison::Similar);
    assert_eq!(one.compare(&all.include(&[2, 3].map(Rank))?), Comparison::Unequal);
    Ok(())
}

#[test]
fn translation_says_who_is_missing() -> Result<(), Error> {
    let all = eight();
    let one = all.include(&[1, 2].map(Rank))?;
    let other = all.include(&[2, 3].map(Rank))?;
    assert_eq!(one.translate(&[0, 1].map(Rank), &other)?, [None, Some(Rank(0))]);
    Ok(())
}

#[test]
fn ranks_that_do_not_exist_or_come_twice_are_errors() {
    let all = eight();
    assert!(matches!(all.include(&[Rank(8)]), Err(Error::NoSuchRank { .. })));
    assert!(matches!(all.exclude(&[1, 1].map(Rank)), Err(Error::RankNamedTwice { rank: Rank(1) })));
    let backwards = [(Rank(0)..=Rank(2), 0)];
    assert!(matches!(all.include_ranges(&backwards), Err(Error::Limit { .. })));
}
