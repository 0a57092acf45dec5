//! Objects of a trace: ranks, workers, and the rows that show them.

use super::trace_files::TraceInfo;
use crate::error::{Error, Result};
use crate::paraver::{EXACT_LIMIT, OBJECT_LIMIT};

/// Ranks, workers and length of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) ranks: u32,
    /// Workers of all ranks.
    pub(super) workers: u32,
    /// Workers that a rank has rows for, which are its own or those of all ranks.
    pub(super) rows: u32,
    /// Ranks, from 0 on, that have a row for threads that are no workers.
    pub(super) mains: u32,
    /// Last time of the trace, at least 1.
    pub(super) end_ns: u64,
}

/// Row of the trace: one worker while it belongs to one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Thread {
    pub(super) rank: u32,
    pub(super) worker: u32,
}

/// Place of a record: a row, and the cpu of its worker, or 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Location {
    pub(super) cpu: u32,
    pub(super) rank: u32,
    pub(super) row: u32,
}

impl Layout {
    pub(super) fn new(info: &TraceInfo) -> Result<Self> {
        let &TraceInfo { ranks, workers, own_workers, end_ns, .. } = info;
        let threads = u64::from(ranks) * u64::from(workers);
        if threads == 0 {
            return Err(Error::NoThreads { ranks, workers });
        }
        if threads > OBJECT_LIMIT {
            return Err(Error::TooManyThreads { ranks, workers, threads, limit: OBJECT_LIMIT });
        }
        check_time(end_ns)?;
        let all = if own_workers { ranks * workers } else { workers };
        Ok(Self { ranks, workers: all, rows: workers, mains: 0, end_ns: end_ns.max(1) })
    }

    /// Adds rows for threads that are no workers to the ranks up to `last`.
    pub(super) fn add_mains(&mut self, last: u32) -> Result<()> {
        let &mut Self { ranks, workers, rows, .. } = self;
        self.mains = last.saturating_add(1).min(ranks);
        let threads = self.thread_count();
        if threads > OBJECT_LIMIT || u64::from(workers) + 1 > OBJECT_LIMIT {
            let limit = OBJECT_LIMIT;
            return Err(Error::TooManyThreads { ranks, workers: rows, threads, limit });
        }
        Ok(())
    }

    /// Returns the number of rows.
    pub(super) fn thread_count(self) -> u64 {
        u64::from(self.ranks) * u64::from(self.rows) + u64::from(self.mains)
    }

    /// Returns the number of workers, where threads that are none count as one more, the last.
    pub(super) fn streams(self) -> u32 {
        self.workers + u32::from(self.mains > 0)
    }

    /// Returns `true` for the number that stands for threads that are no workers.
    pub(super) fn is_main(self, worker: u32) -> bool {
        worker == self.workers
    }

    /// Returns `true` if each rank has workers of its own.
    pub(super) fn has_own_workers(self) -> bool {
        self.rows < self.workers
    }

    /// Returns the first row of a rank.
    pub(super) fn first_thread(self, rank: u32) -> Thread {
        let worker = if self.has_own_workers() { rank * self.rows } else { 0 };
        Thread { rank, worker }
    }

    /// Returns the rank that a worker belongs to before its first slice.
    pub(super) fn first_rank(self, worker: u32) -> u32 {
        if self.has_own_workers() && !self.is_main(worker) { worker / self.rows } else { 0 }
    }

    /// Returns the number of a row among those of its rank.
    pub(super) fn row(self, thread: Thread) -> u32 {
        if self.is_main(thread.worker) { self.rows } else { thread.worker % self.rows }
    }

    /// Returns the location fields of a record on the worker's cpu.
    pub(super) fn on_cpu(self, thread: Thread) -> Location {
        Location { cpu: thread.worker + 1, rank: thread.rank, row: self.row(thread) }
    }

    /// Returns the location fields of a record on no cpu.
    pub(super) fn on_no_cpu(self, thread: Thread) -> Location {
        Location { cpu: 0, ..self.on_cpu(thread) }
    }

    /// Iterates over all threads, by rank and worker.
    pub(super) fn threads(self) -> impl Iterator<Item = Thread> {
        (0..self.ranks).flat_map(move |rank| {
            let first = self.first_thread(rank).worker;
            let main = (rank < self.mains).then_some(self.workers);
            (first..first + self.rows).chain(main).map(move |worker| Thread { rank, worker })
        })
    }

    /// Returns the index of `thread` in [`threads`](Self::threads).
    pub(super) fn index(self, thread: Thread) -> usize {
        let before = u64::from(thread.rank) * u64::from(self.rows);
        (before + u64::from(thread.rank.min(self.mains) + self.row(thread))) as usize
    }
}

/// Checks that Paraver can show a time.
pub(super) fn check_time(time_ns: u64) -> Result<()> {
    if time_ns > EXACT_LIMIT {
        return Err(Error::TimeOutOfRange { time_ns, limit: EXACT_LIMIT });
    }
    Ok(())
}
