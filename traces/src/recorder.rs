//! Recorder of one run: gives a [`Stream`] to every worker, and keeps the flushed records and the
//! names of tasks.
//!
//! Shared state is behind two locks, both off the path of a record: one for the labels, taken when
//! a name is interned, one for the chunks, taken when a stream is flushed (by [`Stream::flush`] or
//! on drop). The recorder reads no clock: every time is an argument, relative to the start of the
//! run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::chunk::{CHUNK_RECORDS, Chunk};
use crate::chunk_pool::ChunkPool;
use crate::event::Record;
use crate::extent::{Edges, Extent, Keep, Limits};
use crate::label::LabelTable;
use crate::processes::{ClockReading, RunProcesses};
use crate::spill::Spill;
use crate::stream::chunk_records;
use crate::{LabelId, Result, Stream, TraceInfo};

/// Collector of the records of all workers of one run. Clones share one recorder.
///
/// ```
/// use talpf_traces::{Event, Recorder};
///
/// let recorder = Recorder::default();
/// let label = recorder.label("stencil");
/// let mut stream = recorder.stream(0);
/// stream.record(25, Event::TaskSlice { starts: true, rank: 0, task: 1, label, began_ns: 10 });
/// drop(stream);
/// assert_eq!(recorder.record_count(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    edges: Option<Arc<Edges>>,
    pool: Arc<ChunkPool>,
    labels: Arc<Mutex<LabelTable>>,
    spill: Option<Spill>,
    flushed: Mutex<FlushedRecords>,
    run: Mutex<Run>,
}

/// Facts about a run of several processes that its recorder learns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) processes: Option<RunProcesses>,
    /// Readings of the clock of process 0, in order.
    pub(crate) clock: Vec<ClockReading>,
}

/// Number of the stream of threads that are no workers.
pub(crate) const MAIN_STREAM: u32 = u32::MAX;

/// Records that the streams have flushed.
#[derive(Debug, Default)]
pub(crate) struct FlushedRecords {
    pub(crate) workers: BTreeMap<u32, WorkerRecords>,
    pub(crate) open_streams: usize,
}

/// Records of one worker, in the order of recording.
#[derive(Debug, Default)]
pub(crate) struct WorkerRecords {
    pub(crate) chunks: Vec<Arc<Chunk>>,
    pub(crate) dropped: u64,
    /// Latest time of the records that are not kept.
    pub(crate) last_ns: u64,
    /// Time before which records were dropped for later ones.
    pub(crate) from_ns: u64,
}

impl WorkerRecords {
    /// Iterates over the records.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl Recorder {
    /// Default limit of the number of records in a stream: 160 MiB.
    pub const DEFAULT_RECORD_LIMIT: usize = 4 << 20;

    /// Memory of a record.
    pub const RECORD_BYTES: usize = size_of::<Record>();

    /// Creates a recorder whose streams hold at most `record_limit` records each. Later records are
    /// dropped, counted, and reported in the trace.
    pub fn new(record_limit: usize) -> Self {
        Self::with_limits(Limits {
            records: record_limit,
            keep: Keep::First,
            extent: Extent::Whole,
            edges: false,
            control: false,
        })
    }

    /// Creates a recorder that keeps what is within `limits`.
    pub fn with_limits(limits: Limits) -> Self {
        let edges = Edges::of(&limits.extent).map(Arc::new);
        Self::with(limits, edges, Arc::default(), None)
    }

    /// Creates a recorder that writes its records to `file` during the run, in place of one that is
    /// there, so that a run that is killed leaves all but the last of them for
    /// [`recover`](crate::recover). `limits.records` are those of a stream that are not in the file
    /// yet, of which the first are kept. `info` describes the run as far as that is known before.
    ///
    /// **Errors**: those of the file system.
    pub fn spilling(limits: Limits, file: &Path, info: &TraceInfo) -> Result<Self> {
        let edges = Edges::of(&limits.extent).map(Arc::new);
        let labels: Arc<Mutex<LabelTable>> = Arc::default();
        let spill = Spill::create(file, info, Arc::clone(&labels), edges.clone())?;
        let limits = Limits { keep: Keep::First, ..limits };
        Ok(Self::with(limits, edges, labels, Some(spill)))
    }

    fn with(
        limits: Limits,
        edges: Option<Arc<Edges>>,
        labels: Arc<Mutex<LabelTable>>,
        spill: Option<Spill>,
    ) -> Self {
        let pool = Arc::default();
        let flushed = Mutex::default();
        let run = Mutex::default();
        Self { shared: Arc::new(Shared { limits, edges, pool, labels, spill, flushed, run }) }
    }

    /// Makes this the recorder of one of several processes, whose ranks it records. Its trace declares
    /// the objects of all, and its files have the first of its ranks in their names
    /// ([`stem_of_process`](crate::stem_of_process)); [`merge`](crate::paraver::merge()) joins the traces
    /// of all processes.
    pub fn set_processes(&self, processes: RunProcesses) {
        self.spill().inspect(|spill| spill.note_processes(&processes));
        self.run_mut().processes = Some(processes);
    }

    /// Returns `true` if this is the recorder of one of several processes.
    pub fn has_processes(&self) -> bool {
        self.run_mut().processes.is_some()
    }

    /// Notes a reading of the clock of process 0, by which [`merge`](crate::paraver::merge()) corrects
    /// the times of this process: one at the start of the run, and one at its end.
    pub fn note_clock(&self, reading: ClockReading) {
        self.spill().inspect(|spill| spill.note_clock(reading));
        self.run_mut().clock.push(reading);
    }

    /// Creates a stream for a worker, numbered from 0, to be used on that worker's thread. Streams
    /// of the same worker are merged by time.
    pub fn stream(&self, worker: u32) -> Stream {
        self.flushed().open_streams += 1;
        Stream::new(self.clone(), worker)
    }

    /// Creates a stream for threads of the program that are no workers, which have one row of a rank
    /// together. That row exists if the stream has records, and is not created outside their slices.
    pub fn main_stream(&self) -> Stream {
        self.stream(MAIN_STREAM)
    }

    /// Returns the number of a task name. **Cost**: a lock and a hash lookup, so keep the result.
    pub fn label(&self, name: &str) -> LabelId {
        self.labels().intern(name)
    }

    /// Returns `true` if events [`Ready`](crate::Event::Ready) are wanted.
    pub fn keeps_edges(&self) -> bool {
        self.limits().edges
    }

    /// Returns `true` if control messages are wanted: events [`Send`](crate::Event::Send) and
    /// [`ReceiveControl`](crate::Event::ReceiveControl).
    pub fn keeps_control(&self) -> bool {
        self.limits().control
    }

    /// Returns the number of records that all streams have flushed.
    pub fn record_count(&self) -> u64 {
        let flushed = self.flushed();
        let chunks = flushed.workers.values().flat_map(|worker| &worker.chunks);
        let spilled = self.spill().map_or(0, Spill::record_count);
        chunks.map(|chunk| chunk.len() as u64).sum::<u64>() + spilled
    }

    /// Returns `true` if the flushed streams were given no event, be it kept or not.
    pub fn is_empty(&self) -> bool {
        let flushed = self.flushed();
        let is_spilled = self.spill().is_some_and(|spill| spill.record_count() > 0);
        !is_spilled
            && flushed
                .workers
                .values()
                .all(|worker| worker.chunks.is_empty() && worker.last_ns == 0)
    }

    /// Returns the number of records dropped because a stream was full.
    pub fn dropped_count(&self) -> u64 {
        self.flushed().workers.values().map(|worker| worker.dropped).sum()
    }

    /// Removes the file of a recorder that [spills](Self::spilling), once its trace is written.
    /// Without such a file nothing happens.
    ///
    /// **Errors**: those of the file system.
    pub fn remove_spill(&self) -> Result<()> {
        self.spill().map_or(Ok(()), Spill::remove)
    }

    /// File that gets the records during the run, if there is one.
    pub(crate) fn spill(&self) -> Option<&Spill> {
        self.shared.spill.as_ref()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Touches 16 MiB for the streams, as far as they may have as much, and starts a thread that adds to it
    /// while less than 4 MiB are left: a run that records 400,000 times gets no memory from the kernel
    /// meanwhile. A runtime calls it before its clock starts.
    ///
    /// **Cost**: 2 ms; tens of them where a virtual machine must get the memory from its host.
    pub fn prepare(&self) {
        let chunks = self.limits().records / CHUNK_RECORDS;
        if chunks > 0 && chunk_records(self) == CHUNK_RECORDS {
            self.pool().start(chunks);
        }
    }

    /// Chunks for all streams.
    pub(crate) fn pool(&self) -> &Arc<ChunkPool> {
        &self.shared.pool
    }

    /// Edges of what is kept; `None` if all is.
    pub(crate) fn edges(&self) -> Option<&Edges> {
        self.shared.edges.as_deref()
    }

    pub(crate) fn labels(&self) -> MutexGuard<'_, LabelTable> {
        self.shared.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is known of the processes of the run.
    pub(crate) fn run(&self) -> Run {
        self.run_mut().clone()
    }

    fn run_mut(&self) -> MutexGuard<'_, Run> {
        self.shared.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn flushed(&self) -> MutexGuard<'_, FlushedRecords> {
        self.shared.flushed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.end();
        self.spill.iter().for_each(Spill::end);
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new(Self::DEFAULT_RECORD_LIMIT)
    }
}
