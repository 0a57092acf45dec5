//! Choice of what a picture shows.

use std::str::FromStr;

use crate::paraver::EventKind;

/// Value that is drawn over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum View {
    /// States of the workers.
    #[default]
    States,
    /// Latest value of an event type.
    Event(u32),
}

/// Objects that have a row each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rows {
    /// Paraver's threads: each worker of each rank.
    #[default]
    Worker,
    /// Ranks: their workers together.
    Rank,
    /// Cpus, whichever rank runs there.
    Cpu,
}

impl View {
    /// Names of all views of our own traces: the states, and the labels of the event types in
    /// lower case with hyphens.
    pub fn names() -> Vec<String> {
        let kinds = EventKind::ALL.iter().map(|kind| name(*kind));
        std::iter::once("states".to_owned()).chain(kinds).collect()
    }
}

fn name(kind: EventKind) -> String {
    kind.name().to_lowercase().replace(' ', "-")
}

impl FromStr for View {
    type Err = String;

    /// Parses a name of [`View::names`], or the number of an event type of any trace.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "states" {
            return Ok(Self::States);
        }
        if let Some(kind) = EventKind::ALL.iter().find(|kind| name(**kind) == text) {
            return Ok(Self::Event(kind.number()));
        }
        text.parse().map(Self::Event).map_err(|_| {
            format!("no view is called `{text}`; there are {}", Self::names().join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_view_of_its_own() {
        let views: Vec<View> = View::names().iter().map(|name| name.parse().unwrap()).collect();
        let distinct: std::collections::HashSet<&View> = views.iter().collect();
        assert_eq!(distinct.len(), 1 + EventKind::ALL.len());
        assert_eq!("11".parse(), Ok(View::Event(11)));
        assert!("task".parse::<View>().unwrap_err().contains("task-type"));
    }
}
