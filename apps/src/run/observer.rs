//! Observers of a run.

use std::time::Instant;

use talpf_runtime::{GraphRecorder, Monitor};
use talpf_traces::{Event, LabelId, Recorder, State, Stream};

use super::{Interrupt, Progress};

/// Handles through which callers follow a run.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Counter of finished steps.
    pub progress: Progress,
    /// Recorder of the trace, if any.
    pub recorder: Option<Recorder>,
    /// Monitor of the runtime, in a variant with tasks.
    pub monitor: Monitor,
    /// Recorder of the task graph, if any.
    pub graph: Option<GraphRecorder>,
    /// Handle that ends the run, if the ranks of a variant with tasks are in this process.
    pub interrupt: Interrupt,
}

impl Observer {
    /// Creates the trace of thread `worker` of a run without tasks, in times since `start`. Its
    /// work is shown as tasks with a label.
    pub(crate) fn thread(&self, worker: usize, start: Instant, label: &str) -> ThreadTrace {
        ThreadTrace {
            trace: self.recorder.as_ref().map(|recorder| Trace {
                stream: recorder.stream(worker as u32),
                label: recorder.label(label),
                start,
                number: worker as u64,
            }),
        }
    }
}

/// Trace of one thread; records nothing without a recorder.
pub(crate) struct ThreadTrace {
    trace: Option<Trace>,
}

struct Trace {
    stream: Stream,
    label: LabelId,
    start: Instant,
    /// Number of the last task: threads count in steps of 2^32 from their own number.
    number: u64,
}

impl ThreadTrace {
    /// Runs `work`, which the trace shows as one task of rank 0.
    pub(crate) fn task(&mut self, work: impl FnOnce()) {
        if let Some(trace) = &mut self.trace {
            trace.number += 1 << 32;
            let (task, label) = (trace.number, trace.label);
            trace.record(Event::TaskBegin { rank: 0, task, label });
        }
        work();
        if let Some(trace) = &mut self.trace {
            let task = trace.number;
            trace.record(Event::TaskEnd { rank: 0, task });
        }
    }

    /// Records the state of the thread until its next task.
    pub(crate) fn enter(&mut self, state: State) {
        if let Some(trace) = &mut self.trace {
            trace.record(Event::WorkerState { state });
        }
    }
}

impl Trace {
    fn record(&mut self, event: Event) {
        let now_ns = self.start.elapsed().as_nanos() as u64;
        self.stream.record(now_ns, event);
    }
}
