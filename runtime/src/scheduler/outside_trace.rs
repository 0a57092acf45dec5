//! Stream of the trace for threads that are none of a runtime's workers.

use talpf_primitives::Mutex;
use talpf_traces::{Event, Recorder, Stream};

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
    /// Records an event, unless the runtime has ended.
    pub(super) fn record(&self, recorder: &Recorder, time_ns: u64, event: Event) {
        let mut outside = self.stream.lock();
        if matches!(*outside, Outside::Empty) {
            *outside = Outside::Open(recorder.main_stream());
        }
        if let Outside::Open(stream) = &mut *outside {
            stream.record(time_ns, event);
        }
    }

    /// Gives the records to the recorder, and drops later ones.
    pub(super) fn end(&self) {
        let last = std::mem::replace(&mut *self.stream.lock(), Outside::Ended);
        drop(last);
    }
}
