//! Stream of records of one worker, used by one thread at a time.
//!
//! A stream fills chunks of 64 KiB and never moves a record again, so a record costs two comparisons
//! and a store of 40 bytes, without locks or atomic operations that cost more than a store. Full
//! chunks stay in the stream until [`Stream::flush`] or drop gives them to the recorder, or go to the
//! file of one that [spills](Recorder::spilling).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::chunk::{CHUNK_RECORDS, Chunk, ChunkWriter};
use crate::event::Record;
use crate::recorder::MAIN_STREAM;
use crate::spill::{Share, Spill};
use crate::{Event, Keep, Recorder};

/// Smallest number of chunks of a stream that keeps its last records.
const DROPPED_PART: usize = 16;

/// Smallest number of chunks of a stream whose records go to a file.
const SPILLED_PART: usize = 4;

/// Stream of records of one worker. `Send`, so that it can move to the worker's thread; used by one
/// thread at a time.
#[derive(Debug)]
pub struct Stream {
    recorder: Recorder,
    worker: u32,
    chunk: ChunkWriter,
    full: VecDeque<Arc<Chunk>>,
    /// Empty chunks whose memory is already touched.
    prepared: Vec<ChunkWriter>,
    /// Number of records that may still be stored, those of `chunk` included.
    remaining: usize,
    dropped: u64,
    /// Time of the first record for which there was no room.
    stopped_ns: Option<u64>,
    /// Latest time of the records that are not kept.
    last_ns: u64,
    /// `true` if a part of the run is kept.
    has_edges: bool,
    /// Number of records of a chunk.
    chunk_records: usize,
    /// Time before which records were dropped for later ones.
    from_ns: u64,
    /// Chunks that are not in the spill file yet, if there is one.
    share: Option<Share>,
    /// Record that is not simply stored.
    pending: Record,
}

impl Stream {
    pub(crate) fn new(recorder: Recorder, worker: u32) -> Self {
        let remaining = recorder.limits().records;
        let chunk_records = chunk_records(&recorder);
        let share = recorder.spill().map(|_| Share::new(worker, remaining / chunk_records));
        Self {
            worker,
            chunk: ChunkWriter::new(0),
            full: VecDeque::new(),
            prepared: Vec::new(),
            remaining: if share.is_some() { usize::MAX } else { remaining },
            dropped: 0,
            stopped_ns: None,
            last_ns: 0,
            has_edges: recorder.edges().is_some(),
            chunk_records,
            from_ns: 0,
            share,
            pending: Record { time_ns: 0, event: Event::RecordingStopped },
            recorder,
        }
    }

    /// Allocates and touches memory for `records` further records now, on the calling thread and
    /// thus on its NUMA node, instead of page by page while recording.
    ///
    /// **Cost**: 10 ns per record, which [`record`](Self::record) then saves.
    pub fn prepare(&mut self, records: usize) {
        let chunks = records.min(self.remaining).div_ceil(self.chunk_records);
        while self.prepared.len() < chunks {
            self.prepared.push(ChunkWriter::new(self.chunk_records).touch());
        }
    }

    /// Stores an event with its time.
    ///
    /// **Units**: nanoseconds since the start of the run. **Ordering**: times
    /// should not decrease; the writer sorts them if they do. **Cost**: a few
    /// nanoseconds; every 1,638 records 64 KiB of memory, unless this stream or the
    /// [recorder](Recorder::prepare) was prepared.
    #[inline]
    pub fn record(&mut self, time_ns: u64, event: Event) {
        let record = Record { time_ns, event };
        if self.has_edges || self.chunk.is_full() {
            // As an argument the record would be put together in memory each time, and then copied.
            self.pending = record;
            return self.record_pending();
        }
        self.chunk.push(record);
    }

    /// Stores the pending record, as far as it is kept.
    #[cold]
    #[inline(never)]
    fn record_pending(&mut self) {
        let Record { time_ns, event } = self.pending;
        let mut kept = Some(self.pending);
        if self.has_edges {
            self.last_ns = self.last_ns.max(time_ns);
            let edges = self.recorder.edges();
            let of_part = edges.map_or(Some((time_ns, event)), |edges| edges.keep(time_ns, event));
            kept = of_part.map(|(time_ns, event)| Record { time_ns, event });
        }
        let Some(record) = kept else { return };
        if self.chunk.is_full() && !self.next_chunk() {
            return self.stop(record.time_ns, record.event);
        }
        self.chunk.push(record);
    }

    /// Gives all records so far to the recorder.
    pub fn flush(&mut self) {
        self.end_chunk();
        let from_ns = self.from_ns;
        let flushed_chunk =
            |chunk: Arc<Chunk>| if from_ns > 0 { cut(&chunk, from_ns) } else { chunk };
        let mut flushed = self.recorder.flushed();
        let records = flushed.workers.entry(self.worker).or_default();
        records.chunks.extend(self.full.drain(..).map(flushed_chunk));
        records.from_ns = records.from_ns.max(from_ns);
        records.dropped += std::mem::take(&mut self.dropped);
        records.last_ns = records.last_ns.max(self.last_ns);
        if let Some(spill) = self.recorder.spill() {
            spill.note_loss(self.worker, records.dropped, records.last_ns);
        }
    }

    /// Returns the worker of this stream; `None` if it is for threads that are no workers.
    pub fn worker(&self) -> Option<u32> {
        (self.worker != MAIN_STREAM).then_some(self.worker)
    }

    /// Ends the chunk that is filled; the next record needs another.
    fn end_chunk(&mut self) {
        let ended = std::mem::replace(&mut self.chunk, ChunkWriter::new(0));
        self.remaining -= ended.len();
        // Of a spilled one the file has its own share.
        if ended.len() > 0 && self.share.is_none() {
            self.full.push_back(ended.finish());
        }
    }

    /// Makes room for a record. Returns `false` if the stream has reached its limit.
    fn next_chunk(&mut self) -> bool {
        self.end_chunk();
        if self.remaining == 0 && self.recorder.limits().keep == Keep::Last {
            self.drop_oldest();
        }
        if self.remaining == 0 || self.share.as_ref().is_some_and(Share::is_full) {
            return false;
        }
        let records = self.chunk_records.min(self.remaining);
        let fits = |chunk: &mut ChunkWriter| chunk.capacity() <= records;
        let next = self.prepared.pop_if(fits).or_else(|| self.pooled(records));
        self.chunk = next.unwrap_or_else(|| ChunkWriter::new(records));
        if let Some((share, spill)) = self.spilled() {
            spill.add(share, self.chunk.share());
        }
        true
    }

    fn spilled(&self) -> Option<(&Share, &Spill)> {
        Some((self.share.as_ref()?, self.recorder.spill()?))
    }

    /// Returns a chunk that was prepared for any stream.
    fn pooled(&self, records: usize) -> Option<ChunkWriter> {
        if records == CHUNK_RECORDS { self.recorder.pool().take() } else { None }
    }

    /// Drops the oldest chunk, whose memory is used again.
    fn drop_oldest(&mut self) {
        let Some(oldest) = self.full.pop_front() else { return };
        let times = oldest.iter().map(|record| record.time_ns);
        self.from_ns = self.from_ns.max(times.max().unwrap_or_default());
        self.dropped += oldest.len() as u64;
        self.remaining += oldest.len();
        self.prepared.extend(ChunkWriter::reuse(oldest));
    }

    /// Counts a dropped record. The first one leaves a mark, one record beyond the limit, from
    /// which on nothing is known. A slice that was open there is kept up to the mark.
    fn stop(&mut self, time_ns: u64, event: Event) {
        self.last_ns = self.last_ns.max(time_ns);
        let stopped_ns = self.stopped_ns.unwrap_or_else(|| {
            self.keep(Record { time_ns, event: Event::RecordingStopped });
            time_ns
        });
        self.stopped_ns = Some(stopped_ns);
        if event.began_ns().is_some_and(|began_ns| began_ns < stopped_ns) {
            self.keep(Record { time_ns: stopped_ns, event });
        } else {
            self.dropped += 1;
        }
    }

    /// Keeps a record beyond the limit.
    fn keep(&mut self, record: Record) {
        let chunk = Chunk::of(record);
        match self.spilled() {
            Some((share, spill)) => spill.add(share, chunk),
            None => self.full.push_back(chunk),
        }
    }
}

/// Returns the number of records of a chunk of the streams of a recorder.
pub(crate) fn chunk_records(recorder: &Recorder) -> usize {
    let part = |part: usize| CHUNK_RECORDS.min((recorder.limits().records / part).max(1));
    match (recorder.spill(), recorder.limits().keep) {
        (Some(_), _) => part(SPILLED_PART),
        (None, Keep::First) => CHUNK_RECORDS,
        // A chunk is dropped as a whole.
        (None, Keep::Last) => part(DROPPED_PART),
    }
}

/// Returns a chunk without what was before `from_ns`.
fn cut(chunk: &Chunk, from_ns: u64) -> Arc<Chunk> {
    let mut kept = ChunkWriter::new(chunk.len());
    for record in chunk.iter() {
        kept.push(Record { event: record.event.from(from_ns), ..*record });
    }
    kept.finish()
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.flush();
        self.recorder.flushed().open_streams -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value() -> Event {
        Event::Value { rank: 0, kind: crate::ValueKind::PollCompletions, value: 1 }
    }

    /// Records `count` events into a stream of limit `limit`, flushing after each of the given
    /// counts.
    /// Returns the numbers of stored and of dropped records.
    fn fill(limit: usize, count: u64, flush_at: &[u64]) -> (u64, u64) {
        let recorder = Recorder::new(limit);
        let mut stream = recorder.stream(3);
        for time_ns in 0..count {
            stream.record(time_ns, value());
            if flush_at.contains(&time_ns) {
                stream.flush();
            }
        }
        drop(stream);
        (recorder.record_count(), recorder.dropped_count())
    }

    #[test]
    fn limit_is_exact_and_leaves_one_mark() {
        assert_eq!(fill(10, 10, &[]), (10, 0));
        assert_eq!(fill(10, 11, &[]), (11, 1));
        assert_eq!(fill(10, 20, &[]), (11, 10));
        assert_eq!(fill(0, 2, &[]), (1, 2));
    }

    #[test]
    fn limit_holds_across_chunks_and_flushes() {
        let limit = 2 * CHUNK_RECORDS + 7;
        let many = limit as u64 + 5;
        assert_eq!(fill(limit, many, &[]), (limit as u64 + 1, 5));
        assert_eq!(fill(limit, many, &[0, 1, 1637, 1638, 3000]), (limit as u64 + 1, 5));
        assert_eq!(fill(limit, many, &[many - 1]), (limit as u64 + 1, 5));
    }

    #[test]
    fn the_last_records_are_kept_within_the_limit() {
        for limit in [1, 10, 100, 2 * CHUNK_RECORDS + 7] {
            let (keep, extent) = (Keep::Last, crate::Extent::Whole);
            let recorder = Recorder::with_limits(crate::Limits {
                records: limit,
                keep,
                extent,
                edges: false,
                control: false,
            });
            let mut stream = recorder.stream(0);
            let count = 5 * limit as u64;
            for time_ns in 0..count {
                stream.record(time_ns, value());
            }
            drop(stream);
            let flushed = recorder.flushed();
            let worker = &flushed.workers[&0];
            let times: Vec<u64> = worker.records().map(|record| record.time_ns).collect();
            let least = limit - limit / DROPPED_PART;
            assert!((least.min(limit)..=limit).contains(&times.len()), "{limit}: {}", times.len());
            assert!(times.iter().copied().eq(worker.from_ns + 1..count), "{limit}: {times:?}");
            assert_eq!(worker.dropped + times.len() as u64, count);
        }
    }

    #[test]
    fn chunks_are_never_reallocated() {
        let recorder = Recorder::default();
        let mut stream = recorder.stream(0);
        stream.prepare(2 * CHUNK_RECORDS + 1);
        assert_eq!(stream.prepared.len(), 3);
        for time_ns in 0..5 * CHUNK_RECORDS as u64 {
            stream.record(time_ns, value());
            assert!(stream.chunk.capacity() <= CHUNK_RECORDS);
        }
        stream.flush();
        let flushed = recorder.flushed();
        let times = flushed.workers[&0].records().map(|record| record.time_ns);
        assert!(times.eq(0..5 * CHUNK_RECORDS as u64));
    }
}
