//! Writer of a spill file.
//!
//! Streams add their chunks as they begin to fill them, under a lock that is never held during output.
//! A pass takes those, and stores what is new in all chunks; the thread of the writer makes one every
//! 200 ms, and whoever needs the file makes another. After an error of the file nothing more is stored:
//! chunks stay, streams become full, and the error is returned when the trace is written.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use super::block::{Kind, MAGIC, VERSION, put_block};
use super::fields::{put_text, put_u32, put_u64};
use super::records;
use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::extent::Edges;
use crate::label::LabelTable;
use crate::paraver::TraceInfo;
use crate::processes::{ClockReading, RunProcesses};

/// Time between two passes: the last records that a killed run loses.
const PERIOD: Duration = Duration::from_millis(200);

/// Number of chunks after which a pass comes sooner.
const MANY: usize = 32;

/// Number of bytes that are written at once.
const BUFFER: usize = 1 << 20;

/// Chunks of one stream that are not in the file yet.
#[derive(Debug)]
pub(crate) struct Share {
    worker: u32,
    chunks: Arc<AtomicUsize>,
    most: usize,
}

impl Share {
    /// Creates the share of a stream that may have `most` chunks.
    pub(crate) fn new(worker: u32, most: usize) -> Self {
        Self { worker, chunks: Arc::default(), most }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.chunks.load(Ordering::Acquire) >= self.most
    }
}

/// Writer of a spill file, with its thread.
#[derive(Debug)]
pub(crate) struct Spill {
    shared: Arc<Shared>,
    thread: Thread,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    labels: Arc<Mutex<LabelTable>>,
    edges: Option<Arc<Edges>>,
    added: Mutex<Added>,
    output: Mutex<Output>,
    records: AtomicU64,
    ends: AtomicBool,
}

/// Records that streams have added since the last pass.
#[derive(Debug, Default)]
struct Added {
    chunks: Vec<Spilled>,
    /// Worker, number of dropped records, last time of those that are not kept.
    losses: Vec<(u32, u64, u64)>,
    /// Blocks about the run.
    blocks: Vec<u8>,
}

/// Chunk that has records which are not in the file yet, or may get some.
#[derive(Debug)]
struct Spilled {
    worker: u32,
    /// Number of such chunks of the stream.
    of_stream: Arc<AtomicUsize>,
    chunk: Arc<Chunk>,
    /// Number of records in the file.
    written: usize,
}

#[derive(Debug)]
struct Output {
    file: File,
    chunks: Vec<Spilled>,
    labels: usize,
    extent: Option<Range<u64>>,
    buffer: Vec<u8>,
    /// `true` once the file has failed, for the reason that the first caller gets.
    has_failed: bool,
    reason: Option<io::Error>,
}

impl Spill {
    /// Creates the file, and starts the thread.
    pub(crate) fn create(
        path: &Path,
        info: &TraceInfo,
        labels: Arc<Mutex<LabelTable>>,
        edges: Option<Arc<Edges>>,
    ) -> Result<Self> {
        let mut file = File::create(path).map_err(Error::io(path))?;
        let mut buffer = [MAGIC.as_slice(), &VERSION.to_le_bytes()].concat();
        put_block(&mut buffer, Kind::Run, |out| put_run(out, info));
        file.write_all(&buffer).map_err(Error::io(path))?;
        buffer.clear();
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            labels,
            edges,
            added: Mutex::default(),
            output: Mutex::new(Output {
                file,
                chunks: Vec::new(),
                labels: 0,
                extent: None,
                buffer,
                has_failed: false,
                reason: None,
            }),
            records: AtomicU64::new(0),
            ends: AtomicBool::new(false),
        });
        let writer = Arc::clone(&shared);
        let builder = thread::Builder::new().name("trace spill".to_owned());
        let spawned = builder.spawn(move || {
            loop {
                let ends = writer.ends.load(Ordering::Acquire);
                drop(writer.pass());
                if ends {
                    return;
                }
                thread::park_timeout(PERIOD);
            }
        });
        let thread = spawned.map_err(Error::io(path))?.thread().clone();
        Ok(Self { shared, thread })
    }

    /// Adds a chunk of a stream, which is stored as it fills.
    pub(crate) fn add(&self, share: &Share, chunk: Arc<Chunk>) {
        let of_stream = Arc::clone(&share.chunks);
        let chunks = 1 + of_stream.fetch_add(1, Ordering::Relaxed);
        let spilled = Spilled { worker: share.worker, of_stream, chunk, written: 0 };
        self.shared.added().chunks.push(spilled);
        if chunks.is_multiple_of(MANY.min(share.most / 2).max(1)) {
            self.wake();
        }
    }

    /// Stores how many records a worker has dropped, if any, and the last time of those that are not
    /// kept.
    pub(crate) fn note_loss(&self, worker: u32, dropped: u64, last_ns: u64) {
        if dropped > 0 || last_ns > 0 {
            self.shared.added().losses.push((worker, dropped, last_ns));
        }
    }

    /// Stores the processes of the run.
    pub(crate) fn note_processes(&self, processes: &RunProcesses) {
        put_block(&mut self.shared.added().blocks, Kind::Processes, |out| {
            put_u32(out, processes.own);
            put_u32(out, processes.ranks_each);
            for process in &processes.all {
                put_u32(out, process.machine);
                put_u32(out, process.workers);
            }
        });
    }

    /// Stores a reading of the clock of process 0.
    pub(crate) fn note_clock(&self, reading: ClockReading) {
        put_block(&mut self.shared.added().blocks, Kind::Clock, |out| {
            let ClockReading { here_ns, there_ns, error_ns } = reading;
            [here_ns, there_ns, error_ns].into_iter().for_each(|ns| put_u64(out, ns));
        });
    }

    /// Returns the number of records so far, which are all in the file then.
    pub(crate) fn record_count(&self) -> u64 {
        drop(self.shared.pass());
        self.shared.records.load(Ordering::Relaxed)
    }

    /// Stores all records so far, and returns the path of the file.
    ///
    /// **Errors**: the first one of the file.
    pub(crate) fn complete(&self) -> Result<&Path> {
        let mut output = self.shared.pass();
        if !output.has_failed {
            return Ok(&self.shared.path);
        }
        let reason = output.reason.take();
        let reason = reason.unwrap_or_else(|| io::Error::other("an earlier write has failed"));
        Err(Error::io(&self.shared.path)(reason))
    }

    /// Removes the file, and ends the thread.
    pub(crate) fn remove(&self) -> Result<()> {
        self.end();
        fs::remove_file(&self.shared.path).map_err(Error::io(&self.shared.path))
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        self.shared.ends.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        self.thread.unpark();
    }
}

impl Shared {
    fn added(&self) -> MutexGuard<'_, Added> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores what is new.
    fn pass(&self) -> MutexGuard<'_, Output> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let Added { chunks, losses, blocks } = std::mem::take(&mut *self.added());
        output.chunks.extend(chunks);
        output.buffer.extend(blocks);
        if !output.has_failed
            && let Err(reason) = self.store(&mut output, &losses)
        {
            (output.has_failed, output.reason) = (true, Some(reason));
        }
        output
    }

    fn store(&self, output: &mut Output, losses: &[(u32, u64, u64)]) -> io::Result<()> {
        // The names of these records are known by now, and so are the times that are kept.
        let lens: Vec<usize> = output.chunks.iter().map(|spilled| spilled.chunk.len()).collect();
        self.put_labels(output);
        self.put_extent(output);
        for (spilled, len) in output.chunks.iter_mut().zip(lens) {
            if len > spilled.written {
                put_records(&mut output.buffer, spilled, len);
                self.records.fetch_add((len - spilled.written) as u64, Ordering::Relaxed);
                spilled.written = len;
            }
            if output.buffer.len() >= BUFFER {
                output.file.write_all(&output.buffer)?;
                output.buffer.clear();
            }
        }
        for &(worker, dropped, last_ns) in losses {
            put_block(&mut output.buffer, Kind::Loss, |out| {
                put_u32(out, worker);
                put_u64(out, dropped);
                put_u64(out, last_ns);
            });
        }
        output.file.write_all(&output.buffer)?;
        output.buffer.clear();
        output.chunks.retain_mut(|spilled| {
            // Nobody else has it, so it gets no more records.
            let is_ended = Arc::get_mut(&mut spilled.chunk).is_some();
            let is_stored = is_ended && spilled.chunk.len() == spilled.written;
            if is_stored {
                spilled.of_stream.fetch_sub(1, Ordering::Release);
            }
            !is_stored
        });
        Ok(())
    }

    fn put_labels(&self, output: &mut Output) {
        let labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        // Few enough for the length of a block, however long they are.
        for names in labels.names()[output.labels..].chunks(8) {
            put_block(&mut output.buffer, Kind::Labels, |out| {
                put_u32(out, output.labels as u32);
                names.iter().for_each(|name| put_text(out, name));
            });
            output.labels += names.len();
        }
    }

    fn put_extent(&self, output: &mut Output) {
        let extent = self.edges.as_ref().map(|edges| edges.times());
        if let Some(times) = extent.filter(|times| output.extent.as_ref() != Some(times)) {
            put_block(&mut output.buffer, Kind::Extent, |out| {
                put_u64(out, times.start);
                put_u64(out, times.end);
            });
            output.extent = Some(times);
        }
    }
}

/// Appends the description of a run.
fn put_run(out: &mut Vec<u8>, info: &TraceInfo) {
    put_u32(out, info.ranks);
    put_u32(out, info.workers);
    out.push(info.own_workers.into());
    put_text(out, &info.started);
    // As many as a block holds.
    info.comments.iter().take(8).for_each(|comment| put_text(out, comment));
}

/// Appends the records of a chunk up to `len` that are not in the file.
fn put_records(out: &mut Vec<u8>, spilled: &Spilled, len: usize) {
    put_block(out, Kind::Records, |out| {
        put_u32(out, spilled.worker);
        let new = spilled.chunk.iter().take(len).skip(spilled.written);
        new.for_each(|record| records::put(out, record));
    });
}
