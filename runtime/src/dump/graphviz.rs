//! A dump in the language of Graphviz.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use super::{Dump, Standing, Task};
use crate::record::RecordId;

pub(super) fn graph(dump: &Dump) -> String {
    let mut text = String::from(
        "digraph tasks {\n  rankdir=TB;\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n",
    );
    let mut groups: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in &dump.tasks {
        groups.entry(&task.group).or_default().push(task);
    }
    for (number, (group, tasks)) in groups.iter().enumerate() {
        let _ = writeln!(text, "  subgraph cluster_{number} {{\n    label={};", quoted(group));
        for task in tasks {
            let says = format!("{}\n{}", task.label, described(task));
            let (name, says) = (task.id.index(), quoted(&says));
            let _ = writeln!(text, "    t{name} [label={says}, fillcolor={}];", color(task));
        }
        text.push_str("  }\n");
    }
    let known: HashSet<RecordId> = dump.tasks.iter().map(|task| task.id).collect();
    for task in &dump.tasks {
        if let Some(parent) = task.parent.filter(|parent| known.contains(&parent.id)) {
            let _ = writeln!(
                text,
                "  t{} -> t{} [style=dotted, arrowhead=none, label=\"in\"];",
                parent.id.index(),
                task.id.index()
            );
        }
        for access in &task.accesses {
            let says = quoted(&access.to_string());
            for waiting in access.waiting.iter().filter(|waiting| known.contains(waiting)) {
                let _ = writeln!(
                    text,
                    "  t{} -> t{} [label={says}];",
                    task.id.index(),
                    waiting.index()
                );
            }
        }
    }
    text.push_str("}\n");
    text
}

fn described(task: &Task) -> String {
    match task.standing {
        Standing::Running => match task.spawner {
            Some(spawner) => format!("runs inside a spawn of {spawner}"),
            None => "runs".to_owned(),
        },
        Standing::Ready => "ready".to_owned(),
        Standing::Suspended => format!("waits for {}", task.waits_for.unwrap_or("?")),
        Standing::Ended => "ended, held".to_owned(),
        Standing::Waiting if task.pending == 0 => "waits for a tile lock".to_owned(),
        Standing::Waiting if task.acted => "held back by its actions".to_owned(),
        Standing::Waiting if task.pending == 1 => "waits for 1 access".to_owned(),
        Standing::Waiting => format!("waits for {} accesses", task.pending),
    }
}

fn color(task: &Task) -> &'static str {
    match task.standing {
        Standing::Running => "palegreen",
        Standing::Ready => "lightyellow",
        Standing::Suspended => "lightblue",
        Standing::Ended => "lightgrey",
        Standing::Waiting => "white",
    }
}

/// Returns a string of Graphviz; a line break stays one.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quoted("a \"b\"\n\\c"), r#""a \"b\"\n\\c""#);
    }
}
