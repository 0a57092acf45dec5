//! The table of event types in the README is the one of the code.

use talpf_traces::State;
use talpf_traces::paraver::EventKind;

#[test]
fn readme_lists_every_event_type() {
    let readme = include_str!("../../README.md");
    let table = readme.split_once("| type | label | value |").expect("table").1;
    let listed: Vec<(u32, &str)> = table
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?.trim().parse().ok()?, cells.next()?.trim()))
        })
        .collect();
    let known: Vec<_> = EventKind::ALL.iter().map(|kind| (kind.number(), kind.name())).collect();
    assert_eq!(listed, known);
}

#[test]
fn readme_lists_every_state() {
    let readme = include_str!("../../README.md");
    let table = readme.split_once("| state | label | the worker |").expect("table").1;
    let rows = table.lines().skip(2).take_while(|line| !line.is_empty());
    let cells = rows.map(|row| row.split(" | ").map(|cell| cell.trim_start_matches("| ")));
    let listed: Vec<(u32, &str)> = cells
        .map(|mut cells| {
            let number = cells.next().expect("number").parse().expect("number");
            (number, cells.next().expect("label"))
        })
        .collect();
    let known: Vec<_> = State::ALL.iter().map(|state| (state.number(), state.name())).collect();
    assert_eq!(listed, known);
}
