//! Writer of the `.pcf` file (labels and colours) and the `.row` file (names of rows).

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use super::layout::Layout;
use super::one_line::one_line;
use crate::paraver::{EventKind, FIRST_COUNTER};
use crate::{LabelId, State};

/// Paraver's defaults for a trace in nanoseconds with a row per thread.
const OPTIONS: &str = "\
DEFAULT_OPTIONS
LEVEL               THREAD
UNITS               NANOSEC
LOOK_BACK           100
SPEED               1
FLAG_ICONS          ENABLED
NUM_OF_STATE_COLORS 1000
YMAX_SCALE          37

DEFAULT_SEMANTIC
THREAD_FUNC         State As Is
";

/// Red, green and blue of [`State::ALL`], in its order. Paraver also draws small values of events
/// with them.
const COLOURS: [[u8; 3]; State::ALL.len()] = [
    [117, 195, 255],
    [0, 0, 255],
    [255, 255, 255],
    [179, 0, 0],
    [0, 204, 102],
    [255, 204, 0],
    [120, 120, 120],
    [214, 214, 214],
    [100, 60, 20],
];

pub(super) fn write_pcf(
    out: &mut impl Write,
    task_names: &[Arc<str>],
    counters: &BTreeSet<LabelId>,
    has_control: bool,
) -> io::Result<()> {
    let task_names: Vec<String> = task_names.iter().map(|name| label(name)).collect();
    let task_names: Vec<&str> = task_names.iter().map(String::as_str).collect();
    writeln!(out, "{OPTIONS}\nSTATES")?;
    for state in State::ALL {
        writeln!(out, "{:<4} {}", state.number(), state.name())?;
    }
    writeln!(out, "\nSTATES_COLOR")?;
    for (state, [red, green, blue]) in State::ALL.iter().zip(COLOURS) {
        writeln!(out, "{:<4} {{{red},{green},{blue}}}", state.number())?;
    }
    for kind in EventKind::ALL {
        writeln!(out, "\nEVENT_TYPE\n0    {:<10} {}", kind.number(), kind.name())?;
        let values = kind.values(&task_names, has_control);
        if !values.is_empty() {
            writeln!(out, "VALUES\n0    (none)")?;
        }
        for (value, name) in values {
            writeln!(out, "{value:<4} {name}")?;
        }
    }
    for counter in counters {
        let name = task_names.get(counter.index()).copied().unwrap_or("(unnamed)");
        let number = FIRST_COUNTER.saturating_add(counter.index() as u32);
        writeln!(out, "\nEVENT_TYPE\n0    {number:<10} {name}")?;
    }
    Ok(())
}

pub(super) fn write_row(out: &mut impl Write, layout: &Layout) -> io::Result<()> {
    let &Layout { ranks, mains, .. } = layout;
    let cpus = layout.cpus();
    writeln!(out, "LEVEL CPU SIZE {}", cpus.len() + usize::from(mains > 0))?;
    for (process, worker) in cpus {
        match layout.process() {
            Some(_) => writeln!(out, "p{process} worker {worker}")?,
            None => writeln!(out, "worker {worker}")?,
        }
    }
    if mains > 0 {
        writeln!(out, "main")?;
    }
    let machines = layout.machines();
    writeln!(out, "\nLEVEL NODE SIZE {machines}")?;
    match machines {
        1 => writeln!(out, "node")?,
        _ => (0..machines).try_for_each(|machine| writeln!(out, "node {machine}"))?,
    }
    writeln!(out, "\nLEVEL TASK SIZE {ranks}")?;
    for rank in 0..ranks {
        writeln!(out, "rank {rank}")?;
    }
    writeln!(out, "\nLEVEL THREAD SIZE {}", layout.thread_count())?;
    for thread in layout.threads() {
        let rank = thread.rank;
        if layout.is_main(thread.worker) {
            writeln!(out, "r{rank} main")?;
        } else {
            writeln!(out, "r{rank} w{}", layout.row(thread))?;
        }
    }
    Ok(())
}

/// Formats a name as the rest of a line, never empty.
fn label(name: &str) -> String {
    let name = one_line(name);
    if name.trim().is_empty() { "(blank)".to_owned() } else { name }
}
