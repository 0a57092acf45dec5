//! Recordings of a run, kept even if it fails: its trace and its graph.

use std::io::Write;

use talpf_apps::Error;
use talpf_apps::run::Machine;
use talpf_runtime::{GraphRecorder, TaskGraph};
use talpf_traces::counted;

use super::output::Output;
use super::report::Line;
use super::trace_output::TraceOutput;

/// Largest number of tasks that `--graph` draws: more would be illegible.
const DRAWN: usize = 2000;

/// Open output files and their recorders.
pub(super) struct Recordings {
    pub(super) trace: Option<TraceOutput>,
    graph: Option<(Output, GraphRecorder)>,
}

impl Recordings {
    pub(super) fn new(trace: Option<TraceOutput>, drawing: Option<Output>) -> Self {
        let graph = drawing.map(|drawing| (drawing, GraphRecorder::new(DRAWN)));
        Recordings { trace, graph }
    }

    /// Returns the output files.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Output> {
        let drawing = self.graph.iter().map(|(drawing, _)| drawing);
        self.trace.iter().flat_map(TraceOutput::outputs).chain(drawing)
    }

    /// Returns the recorder of the run's tasks.
    pub(super) fn graph(&self) -> Option<GraphRecorder> {
        self.graph.as_ref().map(|(_, graph)| graph.clone())
    }

    /// Writes the recordings of a run on `machine`, and returns lines with their paths. Writes
    /// nothing if nothing was recorded.
    pub(super) fn write(
        self,
        machine: &Machine,
        comments: Vec<String>,
    ) -> Result<Vec<Line>, Error> {
        let Self { trace, graph } = self;
        let mut lines = Vec::new();
        match trace {
            Some(trace) if trace.is_empty() => trace.remove_spill()?,
            Some(trace) => lines.extend(trace.write(machine, comments)?),
            None => {}
        }
        if let Some((drawing, graph)) = graph {
            let graph = graph.graph();
            if graph.spawned() > 0 {
                lines.push(draw(drawing, &graph)?);
            }
        }
        Ok(lines)
    }
}

/// Writes a graph, and returns a line with its path.
fn draw(drawing: Output, graph: &TaskGraph) -> Result<Line, Error> {
    let (tasks, spawned) = (graph.tasks().len(), graph.spawned());
    let drawn = if spawned > tasks as u64 {
        format!("the first {tasks} of {}, no more are drawn", counted(spawned, "task"))
    } else {
        counted(tasks, "task")
    };
    let path = drawing.path().display();
    let value = format!("{path} ({drawn}; {} dependencies)", graph.dependencies().len());
    drawing.write(|out| out.write_all(graph.to_svg().as_bytes()))?;
    Ok(("graph", value))
}
