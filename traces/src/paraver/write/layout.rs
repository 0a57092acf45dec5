//! Objects of a trace: ranks, workers, and the rows that show them.
//!
//! Ranks come in blocks of as many, whose ranks share workers: all ranks of a process, or one that has
//! workers of its own. The trace of one of several processes declares the blocks of all, in which it
//! fills its own. Cpus are numbered machine by machine, and there block by block.

use std::ops::Range;
use std::sync::Arc;

use super::trace_files::TraceInfo;
use crate::error::{Error, Result};
use crate::paraver::{EXACT_LIMIT, OBJECT_LIMIT};
use crate::processes::{RunProcess, RunProcesses};

/// Ranks, workers and length of a trace.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) ranks: u32,
    /// Workers that the recorder has streams of.
    pub(super) workers: u32,
    /// Ranks, from 0 on, that have a row for threads that are no workers.
    pub(super) mains: u32,
    /// Last time of the trace, at least 1.
    pub(super) end_ns: u64,
    /// Ranks of the recorder.
    here: Range<u32>,
    ranks_each: u32,
    blocks: Arc<[Block]>,
    /// Cpus of each machine, without that of threads that are no workers.
    machines: Arc<[u32]>,
    /// Number of the process of the recorder, if the run has several.
    process: Option<u32>,
}

/// Ranks that share workers.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Number of the first worker among those of the recorder that has them.
    first_worker: u32,
    workers: u32,
    first_cpu: u32,
    /// Index of the first row among all threads.
    first_row: u32,
    machine: u32,
}

/// Row of the trace: one worker while it belongs to one rank. Those of other processes have numbers of
/// their own.
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
    /// Creates the layout of a run; of one with several processes only the length is in `info`.
    pub(super) fn new(info: &TraceInfo, processes: Option<&RunProcesses>) -> Result<Self> {
        let &TraceInfo { ranks, workers, own_workers, end_ns, .. } = info;
        check_time(end_ns)?;
        let run = match processes {
            Some(run) => run.clone(),
            None => RunProcesses {
                own: 0,
                ranks_each: ranks,
                all: vec![RunProcess { machine: 0, workers }],
            },
        };
        let ranks = run.ranks();
        let workers = run.all.get(run.own as usize).map_or(0, |own| own.workers);
        if ranks == 0 || run.all.iter().any(|process| process.workers == 0) {
            return Err(Error::NoThreads { ranks, workers });
        }
        let each = u64::from(run.ranks_each);
        let threads = run.all.iter().map(|process| each * u64::from(process.workers)).sum();
        if threads > OBJECT_LIMIT {
            return Err(Error::TooManyThreads { ranks, workers, threads, limit: OBJECT_LIMIT });
        }
        let has_own = own_workers && processes.is_none();
        let (ranks_each, of_blocks) = match has_own {
            true => (1, vec![RunProcess { machine: 0, workers }; ranks as usize]),
            false => (run.ranks_each, run.all.clone()),
        };
        let (blocks, machines) = blocks(&of_blocks, ranks_each, has_own);
        Ok(Self {
            ranks,
            workers: if has_own { ranks * workers } else { workers },
            mains: 0,
            end_ns: end_ns.max(1),
            here: run.own_ranks(),
            ranks_each,
            blocks,
            machines,
            process: processes.map(|run| run.own),
        })
    }

    /// Adds rows for threads that are no workers to the ranks up to `last`.
    pub(super) fn add_mains(&mut self, last: u32) -> Result<()> {
        let &mut Self { ranks, workers, .. } = self;
        self.mains = last.saturating_add(1).min(ranks);
        let threads = self.thread_count();
        if threads > OBJECT_LIMIT || u64::from(workers) + 1 > OBJECT_LIMIT {
            let (workers, limit) = (self.rows(0), OBJECT_LIMIT);
            return Err(Error::TooManyThreads { ranks, workers, threads, limit });
        }
        Ok(())
    }

    fn block(&self, rank: u32) -> Block {
        self.blocks[(rank / self.ranks_each) as usize]
    }

    /// Returns the number of workers that a rank has rows for, which are its own or shared.
    fn rows(&self, rank: u32) -> u32 {
        self.block(rank).workers
    }

    /// Returns the number of the process of the recorder, if the run has several.
    pub(super) fn process(&self) -> Option<u32> {
        self.process
    }

    /// Returns `true` for a rank of the recorder.
    pub(super) fn is_here(&self, rank: u32) -> bool {
        self.here.contains(&rank)
    }

    /// Returns the number of rows.
    pub(super) fn thread_count(&self) -> u64 {
        let each = u64::from(self.ranks_each);
        let of_workers: u64 = self.blocks.iter().map(|block| each * u64::from(block.workers)).sum();
        of_workers + u64::from(self.mains)
    }

    /// Returns the number of workers, where threads that are none count as one more, the last.
    pub(super) fn streams(&self) -> u32 {
        self.workers + u32::from(self.mains > 0)
    }

    /// Returns `true` for the number that stands for threads that are no workers.
    pub(super) fn is_main(&self, worker: u32) -> bool {
        self.mains > 0 && worker == self.workers
    }

    /// Returns the first row of a rank.
    pub(super) fn first_thread(&self, rank: u32) -> Thread {
        Thread { rank, worker: self.block(rank).first_worker }
    }

    /// Returns the rank that a worker belongs to before its first slice.
    pub(super) fn first_rank(&self, worker: u32) -> u32 {
        if self.process.is_some() || self.is_main(worker) {
            return self.here.start;
        }
        let has = |block: &Block| worker - block.first_worker < block.workers;
        let block = self.blocks.partition_point(|block| block.first_worker <= worker);
        let block = block.saturating_sub(1);
        if self.blocks.get(block).is_some_and(has) { block as u32 * self.ranks_each } else { 0 }
    }

    /// Returns the number of a row among those of its rank.
    pub(super) fn row(&self, thread: Thread) -> u32 {
        let block = self.block(thread.rank);
        if self.is_main(thread.worker) { block.workers } else { thread.worker - block.first_worker }
    }

    /// Returns the location fields of a record on the worker's cpu.
    pub(super) fn on_cpu(&self, thread: Thread) -> Location {
        let row = self.row(thread);
        let block = self.block(thread.rank);
        let is_main = row == block.workers;
        let cpu = if is_main { self.workers } else { block.first_cpu + row };
        Location { cpu: cpu + 1, rank: thread.rank, row }
    }

    /// Returns the location fields of a record on no cpu.
    pub(super) fn on_no_cpu(&self, thread: Thread) -> Location {
        Location { cpu: 0, ..self.on_cpu(thread) }
    }

    /// Iterates over all threads, by rank and worker.
    pub(super) fn threads(&self) -> impl Iterator<Item = Thread> + use<> {
        let this = self.clone();
        (0..this.ranks).flat_map(move |rank| {
            let first = this.first_thread(rank).worker;
            let main = (rank < this.mains).then_some(this.workers);
            (first..first + this.rows(rank)).chain(main).map(move |worker| Thread { rank, worker })
        })
    }

    /// Returns the index of `thread` in [`threads`](Self::threads).
    pub(super) fn index(&self, thread: Thread) -> usize {
        let block = self.block(thread.rank);
        let before = thread.rank % self.ranks_each * block.workers + thread.rank.min(self.mains);
        (block.first_row + before + self.row(thread)) as usize
    }

    /// Returns the objects as the header has them: cpus of each machine, threads of each rank with its
    /// machine.
    pub(super) fn objects(&self) -> String {
        let main = u32::from(self.mains > 0);
        let list = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(",");
        let cpus = list(&mut self.machines.iter().map(|cpus| (cpus + main).to_string()));
        let task = |rank: u32| {
            let Block { workers, machine, .. } = self.block(rank);
            format!("{}:{}", workers + u32::from(rank < self.mains), machine + 1)
        };
        let tasks = list(&mut (0..self.ranks).map(task));
        format!("{}({cpus}):1:{}({tasks})", self.machines.len(), self.ranks)
    }

    /// Returns the number of machines.
    pub(super) fn machines(&self) -> usize {
        self.machines.len()
    }

    /// Returns the workers, by their cpus: the number of the block and of the worker.
    pub(super) fn cpus(&self) -> Vec<(u32, u32)> {
        let mut blocks: Vec<_> = (0..).zip(self.blocks.iter()).collect();
        blocks.sort_by_key(|(_, block)| block.first_cpu);
        let of = |(number, block): (u32, &Block)| {
            let first = block.first_worker;
            (first..first + block.workers).map(move |worker| (number, worker))
        };
        blocks.into_iter().flat_map(of).collect()
    }
}

/// Returns blocks of `ranks_each` ranks, and the cpus of each machine. Workers are numbered over all
/// blocks, or in each of them.
fn blocks(
    processes: &[RunProcess],
    ranks_each: u32,
    is_one_recorder: bool,
) -> (Arc<[Block]>, Arc<[u32]>) {
    let mut numbers: Vec<u32> = processes.iter().map(|process| process.machine).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut machines = vec![0; numbers.len()];
    let (mut first_worker, mut first_row) = (0, 0);
    let mut blocks = Vec::with_capacity(processes.len());
    for &RunProcess { machine, workers } in processes {
        let machine = numbers.partition_point(|number| *number < machine) as u32;
        let first_cpu = machines[machine as usize];
        machines[machine as usize] += workers;
        blocks.push(Block { first_worker, workers, first_cpu, first_row, machine });
        first_worker += if is_one_recorder { workers } else { 0 };
        first_row += ranks_each * workers;
    }
    let mut firsts = Vec::with_capacity(machines.len());
    let mut before = 0;
    for cpus in &machines {
        firsts.push(before);
        before += cpus;
    }
    blocks.iter_mut().for_each(|block| block.first_cpu += firsts[block.machine as usize]);
    (blocks.into(), machines.into())
}

/// Checks that Paraver can show a time.
pub(super) fn check_time(time_ns: u64) -> Result<()> {
    if time_ns > EXACT_LIMIT {
        return Err(Error::TimeOutOfRange { time_ns, limit: EXACT_LIMIT });
    }
    Ok(())
}
