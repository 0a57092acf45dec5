//! Stream of the trace for threads that are none of a runtime's workers.

use talpf_primitives::Mutex;
use talpf_traces::{Event, Recorder, Stream};

use super::Shared;

/// Stream that all threads outside share, made with the first record.
#[derive(Default)]
pub(super) struct OutsideTrace {
    stream: Mutex<Outside>,
}

#[derive(Default)]
enum Outside {
    #[default]
    Empty,
    Open(Stream),
    /// The runtime has ended, and its trace may be written.
    Ended,
}

impl OutsideTrace {
    fn record(&self, recorder: &Recorder, time_ns: u64, event: Event) {
        let mut outside = self.stream.lock();
        if matches!(*outside, Outside::Empty) {
            *outside = Outside::Open(recorder.main_stream());
        }
        if let Outside::Open(stream) = &mut *outside {
            stream.record(time_ns, event);
        }
    }
}

impl Shared {
    /// Records an event on a thread outside, if the run is traced.
    #[cold]
    pub(super) fn trace_outside(&self, event: impl FnOnce(u64) -> Event) {
        if let Some(recorder) = &self.config.recorder {
            let now_ns = self.clock.now_ns();
            // Code of the program, which may record another event.
            let event = event(now_ns);
            self.outside_trace.record(recorder, now_ns, event);
        }
    }

    /// Gives the records of threads outside to the recorder, and drops later ones.
    pub(crate) fn end_outside_trace(&self) {
        let last = std::mem::replace(&mut *self.outside_trace.stream.lock(), Outside::Ended);
        drop(last);
    }
}
