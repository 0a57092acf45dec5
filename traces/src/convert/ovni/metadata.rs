//! Places of streams, and their metadata.

use std::collections::HashMap;

use super::marks::Marks;
use crate::paraver::Reader;

/// Version of the library whose format is written, which the metadata must name.
const LIBRARY: &str = "1.11.0";

/// Location of a row in ovni: machines are looms, ranks processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    machine: u64,
    rank: u32,
    row: usize,
    /// Number of the cpu of the row on its machine.
    pub(super) cpu: u32,
}

impl Location {
    /// Returns the locations of all rows.
    pub(super) fn of_rows(reader: &Reader) -> Vec<Self> {
        let machines = reader.machines_of_ranks();
        let mut cpus = HashMap::new();
        let rows = reader.ranks_of_rows().iter().enumerate();
        rows.map(|(row, &rank)| {
            let machine = machines[rank as usize];
            let cpus = cpus.entry(machine).or_insert(0);
            *cpus += 1;
            Self { machine, rank, row, cpu: *cpus - 1 }
        })
        .collect()
    }

    /// Folder of the stream.
    pub(super) fn folder(&self) -> String {
        let Self { machine, rank, row, .. } = self;
        format!("loom.node{machine}/proc.{}/thread.{}", rank + 1, row + 1)
    }

    /// Metadata of the stream. That of the first row has the marks of all.
    pub(super) fn metadata(&self, ranks: u32, marks: &Marks) -> String {
        let Self { machine, rank, row, cpu } = self;
        let (pid, tid) = (rank + 1, row + 1);
        let mark = match row {
            0 => format!(",\n    \"mark\": {}", marks.json()),
            _ => String::new(),
        };
        format!(
            r#"{{
  "version": 3,
  "ovni": {{
    "lib": {{"version": "{LIBRARY}", "commit": "unknown"}},
    "part": "thread",
    "tid": {tid},
    "pid": {pid},
    "loom": "node{machine}",
    "app_id": 1,
    "rank": {rank},
    "nranks": {ranks},
    "require": {{"ovni": "1.1.0", "nosv": "2.3.0"}},
    "loom_cpus": [{{"index": {cpu}, "phyid": {cpu}}}]{mark},
    "finished": 1
  }},
  "nosv": {{"can_breakdown": true, "lib_version": "2.3.0"}}
}}
"#
        )
    }
}
