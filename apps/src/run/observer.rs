//! Observers of a run.

use std::sync::Arc;

use parking_lot::Mutex;
use talpf::TicketCounts;
use talpf_runtime::{Clock, GraphRecorder, Metrics, Monitor};
use talpf_traces::{Event, LabelId, Recorder, State, Stream};

use super::{Interrupt, Overshoot, Progress};

/// Handles through which callers follow a run.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Counter of finished steps.
    pub progress: Progress,
    /// Recorder of the trace, if any.
    pub recorder: Option<Recorder>,
    /// Monitor of the runtime, in a variant with tasks.
    pub monitor: Monitor,
    /// Metrics of the other processes, and tickets of all ranks, in the process of rank 0, once the ranks have given
    /// their results.
    pub other_metrics: OtherMetrics,
    /// Recorder of the task graph, if any.
    pub graph: Option<GraphRecorder>,
    /// Handle that ends the run, if the ranks of a variant with tasks are in this process, or the run is
    /// traced.
    pub interrupt: Interrupt,
    /// Counter of cores that were given back late, in dilated time.
    pub overshoot: Overshoot,
}

/// Sums of the metrics of other processes, and of the tickets of all ranks. Clones have the same.
#[derive(Clone, Debug, Default)]
pub struct OtherMetrics {
    sum: Arc<Mutex<Option<Metrics>>>,
    tickets: Arc<Mutex<Option<TicketCounts>>>,
}

impl OtherMetrics {
    /// Adds the metrics of a process.
    pub(crate) fn add(&self, metrics: Option<Metrics>) {
        let mut sum = self.sum.lock();
        match (&mut *sum, metrics) {
            (Some(sum), Some(metrics)) => sum.add(&metrics),
            (sum, metrics) => *sum = sum.take().or(metrics),
        }
    }

    /// Returns the metrics of the run: those of this process, with those of the others.
    pub fn with_own(&self, own: Metrics) -> Metrics {
        let mut all = own;
        self.sum.lock().iter().for_each(|others| all.add(others));
        all
    }

    /// Adds the tickets that a rank has given to ranks of other processes.
    pub(crate) fn add_tickets(&self, of_rank: TicketCounts) {
        self.tickets.lock().get_or_insert_default().add(&of_rank);
    }

    /// Returns the tickets of all ranks; `None` if the ranks are in one process, or have sent messages.
    pub fn tickets(&self) -> Option<TicketCounts> {
        *self.tickets.lock()
    }
}

impl Observer {
    /// Creates the trace of thread `worker` of a run without tasks, in times of `clock`. Its
    /// work is shown as tasks with a label.
    pub(crate) fn thread(&self, worker: usize, clock: &Clock, label: &str) -> ThreadTrace {
        ThreadTrace {
            trace: self.recorder.as_ref().map(|recorder| Trace {
                stream: recorder.stream(worker as u32),
                label: recorder.label(label),
                clock: clock.clone(),
                number: worker as u64,
                state: None,
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
    clock: Clock,
    /// Number of the last task: threads count in steps of 2^32 from their own number.
    number: u64,
    /// State outside tasks, with its begin.
    state: Option<(State, u64)>,
}

impl ThreadTrace {
    /// Runs `work`, which the trace shows as one task of rank 0.
    pub(crate) fn task(&mut self, work: impl FnOnce()) {
        let began_ns = self.trace.as_mut().map(|trace| trace.leave_state(None));
        work();
        if let (Some(trace), Some(began_ns)) = (&mut self.trace, began_ns) {
            trace.number += 1 << 32;
            let event = Event::task_slice(0, trace.number, trace.label, began_ns, true);
            trace.stream.record(trace.now_ns(), event);
        }
    }

    /// Records the state of the thread until its next task or state.
    pub(crate) fn enter(&mut self, state: State) {
        if let Some(trace) = &mut self.trace {
            trace.leave_state(Some(state));
        }
    }
}

impl Trace {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Records the state that ends now, if there is one, and begins the next. Returns the time.
    fn leave_state(&mut self, next: Option<State>) -> u64 {
        let now_ns = self.now_ns();
        let next = next.map(|state| (state, now_ns));
        if let Some((state, began_ns)) = std::mem::replace(&mut self.state, next) {
            self.stream.record(now_ns, Event::StateSlice { state, began_ns });
        }
        now_ns
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.leave_state(None);
    }
}
