//! Who follows a run.

use std::time::Instant;

use talpf_runtime::{GraphRecorder, Monitor};
use talpf_traces::{Event, LabelId, Recorder, State, Stream};

use super::{Interrupt, Progress};

/// What a run tells about itself while it lasts.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Counts its steps.
    pub progress: Progress,
    /// Keeps what its workers do, if anything does.
    pub recorder: Option<Recorder>,
    /// Shows the runtime of a variant with tasks.
    pub monitor: Monitor,
    /// Keeps the graph of its tasks, if anything does.
    pub graph: Option<GraphRecorder>,
    /// Ends it, where the ranks of a variant with tasks are in this process.
    pub interrupt: Interrupt,
}

impl Observer {
    /// What thread `worker` of a run without tasks records, in times since `start`. Its work is
    /// shown as tasks with a label.
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

/// The trace of one thread; nothing when nobody records.
pub(crate) struct ThreadTrace {
    trace: Option<Trace>,
}

struct Trace {
    stream: Stream,
    label: LabelId,
    start: Instant,
    /// Of the last task: threads count in steps of 2^32 from their own number.
    number: u64,
}

impl ThreadTrace {
    /// Does `work`, which the trace shows as one task of rank 0.
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

    /// What the thread does until its next task.
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
