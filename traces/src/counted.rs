//! Counts with their nouns, as texts of all crates print them.

/// Returns a count with its noun: `1 run`, `2 runs`.
pub fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(
            [0, 1, 2].map(|ranks: usize| counted(ranks, "rank")),
            ["0 ranks", "1 rank", "2 ranks"]
        );
    }
}
