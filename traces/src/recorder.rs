//! The recorder of one run: gives a [`Stream`] to every worker, and keeps what
//! they recorded and the names of tasks.
//!
//! Shared state lives behind two locks, both off the path of a record: one for
//! the labels, taken when a name is interned, one for the chunks, taken when a
//! stream hands them over (on [`Stream::flush`] and on drop). The recorder
//! reads no clock: every time is an argument, relative to the start of the run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::label::LabelTable;
use crate::stream::Chunk;
use crate::{LabelId, Stream};

/// Collects what the workers of one run record. Clones share one recorder.
///
/// ```
/// use talpf_traces::{Event, Recorder};
///
/// let recorder = Recorder::default();
/// let label = recorder.label("stencil");
/// let mut stream = recorder.stream(0);
/// stream.record(10, Event::TaskBegin { rank: 0, task: 1, label });
/// stream.record(25, Event::TaskEnd { rank: 0, task: 1 });
/// drop(stream);
/// assert_eq!(recorder.record_count(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    record_limit: usize,
    labels: Mutex<LabelTable>,
    collected: Mutex<Collected>,
}

/// What the streams have handed over so far.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) workers: BTreeMap<u32, WorkerRecords>,
    pub(crate) open_streams: usize,
}

/// What one worker has recorded, in the order of recording.
#[derive(Debug, Default)]
pub(crate) struct WorkerRecords {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) dropped: u64,
}

impl Recorder {
    /// Records that a stream holds at most unless told otherwise: 160 MiB.
    pub const DEFAULT_RECORD_LIMIT: usize = 4 << 20;

    /// A recorder whose streams hold at most `record_limit` records each. What
    /// comes later is counted, dropped, and reported in the trace.
    pub fn new(record_limit: usize) -> Self {
        Self {
            shared: Arc::new(Shared {
                record_limit,
                labels: Mutex::new(LabelTable::new()),
                collected: Mutex::default(),
            }),
        }
    }

    /// The stream of a worker, numbered from 0, for the thread that is that
    /// worker. Streams of the same worker are merged by time.
    pub fn stream(&self, worker: u32) -> Stream {
        self.collected().open_streams += 1;
        Stream::new(self.clone(), worker, self.shared.record_limit)
    }

    /// The number of a task name. **Cost**: a lock and a look-up, so keep the
    /// result.
    pub fn label(&self, name: &str) -> LabelId {
        self.labels().intern(name)
    }

    /// Records handed over so far by all streams.
    pub fn record_count(&self) -> u64 {
        let collected = self.collected();
        collected.workers.values().flat_map(|w| &w.chunks).map(|chunk| chunk.len() as u64).sum()
    }

    /// Records dropped so far because a stream was full.
    pub fn dropped_count(&self) -> u64 {
        self.collected().workers.values().map(|worker| worker.dropped).sum()
    }

    pub(crate) fn record_limit(&self) -> usize {
        self.shared.record_limit
    }

    pub(crate) fn labels(&self) -> MutexGuard<'_, LabelTable> {
        self.shared.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn collected(&self) -> MutexGuard<'_, Collected> {
        self.shared.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new(Self::DEFAULT_RECORD_LIMIT)
    }
}
