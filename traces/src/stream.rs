//! Stream of records of one worker, used by its thread alone.
//!
//! A stream fills chunks of 64 KiB and never moves a record again, so a record costs a comparison
//! and a store of 40 bytes, without atomics or locks. Full chunks stay in the stream until
//! [`Stream::flush`] or drop gives them to the recorder.

use crate::event::Record;
use crate::{Event, Recorder};

/// Records in the order of recording, in an allocation that never grows.
pub(crate) type Chunk = Vec<Record>;

const CHUNK_RECORDS: usize = (64 << 10) / size_of::<Record>();

/// Stream of records of one worker. `Send`, so that it can move to the worker's thread; used by one
/// thread at a time.
#[derive(Debug)]
pub struct Stream {
    recorder: Recorder,
    worker: u32,
    chunk: Chunk,
    /// Number of records that `chunk` still takes: its free space, or less at the limit.
    room: usize,
    full: Vec<Chunk>,
    /// Empty chunks whose memory is already touched.
    prepared: Vec<Chunk>,
    /// Number of records that may still be stored, `room` included.
    remaining: usize,
    dropped: u64,
    /// Time of the first record for which there was no room.
    stopped_ns: Option<u64>,
    /// Latest time of the records for which there was no room.
    last_ns: u64,
}

impl Stream {
    pub(crate) fn new(recorder: Recorder, worker: u32, record_limit: usize) -> Self {
        Self {
            recorder,
            worker,
            chunk: Chunk::new(),
            room: 0,
            full: Vec::new(),
            prepared: Vec::new(),
            remaining: record_limit,
            dropped: 0,
            stopped_ns: None,
            last_ns: 0,
        }
    }

    /// Allocates and touches memory for `records` further records now, on the calling thread and
    /// thus on its NUMA node, instead of page by page while recording.
    ///
    /// **Cost**: 10 ns per record, which [`record`](Self::record) then saves.
    pub fn prepare(&mut self, records: usize) {
        const BLANK: Record = Record { time_ns: 0, event: Event::RecordingStopped };
        let chunks = records.min(self.remaining).div_ceil(CHUNK_RECORDS);
        while self.prepared.len() < chunks {
            let mut chunk = Chunk::with_capacity(CHUNK_RECORDS);
            chunk.resize(CHUNK_RECORDS, BLANK);
            chunk.clear();
            self.prepared.push(chunk);
        }
    }

    /// Stores an event with its time.
    ///
    /// **Units**: nanoseconds since the start of the run. **Ordering**: times
    /// should not decrease; the writer sorts them if they do. **Cost**: a few
    /// nanoseconds; every 1,638 records an allocation of 64 KiB, unless
    /// [prepared](Self::prepare).
    #[inline]
    pub fn record(&mut self, time_ns: u64, event: Event) {
        if self.room == 0 && !self.next_chunk() {
            return self.stop(time_ns, event);
        }
        self.room -= 1;
        self.chunk.push(Record { time_ns, event });
    }

    /// Gives all records so far to the recorder.
    pub fn flush(&mut self) {
        self.remaining -= self.chunk.len();
        self.room = 0;
        let last = std::mem::take(&mut self.chunk);
        if !last.is_empty() {
            self.full.push(last);
        }
        let mut flushed = self.recorder.flushed();
        let records = flushed.workers.entry(self.worker).or_default();
        records.chunks.append(&mut self.full);
        records.dropped += std::mem::take(&mut self.dropped);
        records.last_ns = records.last_ns.max(self.last_ns);
    }

    /// Returns the worker of this stream.
    pub fn worker(&self) -> u32 {
        self.worker
    }

    /// Makes room for a record. Returns `false` if the stream has reached its limit.
    #[cold]
    #[inline(never)]
    fn next_chunk(&mut self) -> bool {
        self.remaining -= self.chunk.len();
        if self.remaining == 0 {
            return false;
        }
        let next = self.prepared.pop().unwrap_or_else(|| Chunk::with_capacity(CHUNK_RECORDS));
        let filled = std::mem::replace(&mut self.chunk, next);
        if !filled.is_empty() {
            self.full.push(filled);
        }
        self.room = CHUNK_RECORDS.min(self.remaining);
        true
    }

    /// Counts a dropped record. The first one leaves a mark, one record beyond the limit, from
    /// which on nothing is known. A slice that was open there is kept up to the mark.
    #[cold]
    #[inline(never)]
    fn stop(&mut self, time_ns: u64, event: Event) {
        self.last_ns = self.last_ns.max(time_ns);
        let stopped_ns = self.stopped_ns.unwrap_or_else(|| {
            self.full.push(std::mem::take(&mut self.chunk));
            self.full.push(vec![Record { time_ns, event: Event::RecordingStopped }]);
            time_ns
        });
        self.stopped_ns = Some(stopped_ns);
        if event.began_ns().is_some_and(|began_ns| began_ns < stopped_ns) {
            self.full.push(vec![Record { time_ns: stopped_ns, event }]);
        } else {
            self.dropped += 1;
        }
    }
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
        let times = flushed.workers[&0].chunks.iter().flatten().map(|record| record.time_ns);
        assert!(times.eq(0..5 * CHUNK_RECORDS as u64));
    }
}
