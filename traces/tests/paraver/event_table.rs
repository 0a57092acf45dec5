//! The table of event types in the README is the one of the code.

use talpf_traces::paraver::EventKind;

#[test]
fn readme_lists_every_event_type() {
    let readme = include_str!("../../README.md");
    let listed: Vec<(u32, &str)> = readme
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?.trim().parse().ok()?, cells.next()?.trim()))
        })
        .collect();
    let known: Vec<_> = EventKind::ALL.iter().map(|kind| (kind.number(), kind.name())).collect();
    assert_eq!(listed, known);
}
