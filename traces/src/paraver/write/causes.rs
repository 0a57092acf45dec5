//! Causes of idleness: what a worker without a task waits for.
//!
//! The cause is that of the rank whose row shows the worker, the first that holds: a slow core of the
//! rank computes, of which each stands for one idle worker; all tasks of the rank have ended; tasks were
//! ready at other workers as long as the worker was idle; the rank waits for communication; its program
//! is throttled; and else supply. It changes while a worker is idle, so the times at which a rank begins
//! or ceases to wait are collected first.
//!
//! A rank waits for communication from where its own operations of a round are posted to the end of
//! the round, from the post of a receive to its completion, and while requests are outstanding.

use super::owners::Owners;
use super::timeline::{Edge, Entry, Thread, Timeline};
use crate::{Event, IdleCause, ValueKind};

/// Change of what a rank waits for.
#[derive(Clone, Copy, Debug)]
struct Change {
    time_ns: u64,
    rank: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// As many more things are awaited.
    Awaited(i64),
    /// As many more parts of the program are throttled.
    Throttled(i64),
    /// As many tasks are computed by slow cores.
    OnSlowCores(i64),
    /// The last task of the rank has ended.
    Ended,
}

/// State of a rank at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    awaited: i64,
    throttled: i64,
    on_slow_cores: i64,
    has_ended: bool,
}

/// Causes of idleness of all workers, in the order of the timeline.
#[derive(Debug)]
pub(super) struct Causes {
    /// Changes by time, of which the first `applied` have been applied.
    changes: Vec<Change>,
    applied: usize,
    ranks: Vec<Rank>,
    workers: Vec<Worker>,
    /// `true` if something has changed since the last update.
    is_stale: bool,
}

#[derive(Clone, Debug, Default)]
struct Worker {
    /// Tasks that were ready at other workers, while the worker is idle.
    idle: Option<u32>,
    shown: Option<(Thread, IdleCause)>,
}

impl Causes {
    pub(super) fn new(timeline: &Timeline<'_>) -> Self {
        let layout = timeline.layout();
        let workers = vec![Worker::default(); layout.streams() as usize];
        let ranks = vec![Rank::default(); layout.ranks as usize];
        Self { changes: changes(timeline), applied: 0, ranks, workers, is_stale: true }
    }

    /// Returns the time of the next change that has not been applied.
    pub(super) fn next_change_ns(&self) -> Option<u64> {
        self.changes.get(self.applied).map(|change| change.time_ns)
    }

    /// Applies the changes up to `now`. Returns the ranks that have ended with them.
    pub(super) fn advance(&mut self, now: u64) -> Vec<u32> {
        let mut ended = Vec::new();
        while let Some(change) = self.changes.get(self.applied).filter(|next| next.time_ns <= now) {
            let rank = &mut self.ranks[change.rank as usize];
            match change.what {
                What::Awaited(by) => rank.awaited += by,
                What::Throttled(by) => rank.throttled += by,
                What::OnSlowCores(tasks) => rank.on_slow_cores = tasks,
                What::Ended => {
                    rank.has_ended = true;
                    ended.push(change.rank);
                }
            }
            self.applied += 1;
            self.is_stale = true;
        }
        ended
    }

    /// Applies an entry.
    pub(super) fn apply(&mut self, entry: Entry<'_>) {
        if let Event::Idle { ready, .. } = entry.record.event {
            let idle = (entry.edge == Edge::Begin).then_some(ready);
            self.workers[entry.worker as usize].idle = idle;
            self.is_stale = true;
        }
    }

    /// Calls `show` for each row whose cause has changed, with 0 for none.
    pub(super) fn update(&mut self, owners: &Owners, mut show: impl FnMut(Thread, i64)) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let mut ranks = self.ranks.clone();
        for (number, worker) in (0..).zip(&mut self.workers) {
            // A worker changes its row with a task only.
            let thread = worker.shown.map_or_else(|| owners.thread(number), |(thread, _)| thread);
            let rank = &mut ranks[thread.rank as usize];
            let cause = worker.idle.map(|ready| cause(ready, rank));
            let next = cause.map(|cause| (thread, cause));
            if std::mem::replace(&mut worker.shown, next) != next {
                show(thread, cause.map_or(0, IdleCause::number));
            }
        }
    }
}

/// Returns the cause of idleness of a worker of `rank` that found `ready` tasks at other workers.
fn cause(ready: u32, rank: &mut Rank) -> IdleCause {
    if rank.on_slow_cores > 0 {
        rank.on_slow_cores -= 1;
        IdleCause::SlowCore
    } else if rank.has_ended {
        IdleCause::End
    } else if ready > 0 {
        IdleCause::NotForThisWorker
    } else if rank.awaited > 0 {
        IdleCause::Communication
    } else if rank.throttled > 0 {
        IdleCause::Throttle
    } else {
        IdleCause::Supply
    }
}

/// Returns all changes by time.
fn changes(timeline: &Timeline<'_>) -> Vec<Change> {
    let ranks = timeline.layout().ranks as usize;
    let mut changes = Vec::new();
    let mut has_outstanding = vec![false; ranks];
    let mut ended_ns = vec![0; ranks];
    for entry in timeline.entries() {
        let now = entry.time_ns();
        let mut change = |time_ns, rank, what| changes.push(Change { time_ns, rank, what });
        match entry.record.event {
            Event::TaskSlice { rank, .. } => ended_ns[rank as usize] = now,
            Event::SyncEnd { rank, posted, .. } => {
                change(now.saturating_sub(posted.as_nanos()), rank, What::Awaited(1));
                change(now, rank, What::Awaited(-1));
            }
            Event::Value { rank, kind: ValueKind::OutstandingRequests, value } => {
                let has = value > 0;
                let had = std::mem::replace(&mut has_outstanding[rank as usize], has);
                if has != had {
                    change(now, rank, What::Awaited(i64::from(has) - i64::from(had)));
                }
            }
            Event::Value { rank, kind: ValueKind::SlowCores, value } => {
                change(now, rank, What::OnSlowCores(value));
            }
            Event::Value { rank, kind: ValueKind::ReceivePosted, .. } => {
                change(now, rank, What::Awaited(1));
            }
            Event::ReceiveTagged { rank, .. } => change(now, rank, What::Awaited(-1)),
            Event::Throttle { rank, waits } => {
                change(now, rank, What::Throttled(if waits { 1 } else { -1 }));
            }
            _ => {}
        }
    }
    let ends = (0..).zip(ended_ns);
    changes.extend(ends.map(|(rank, time_ns)| Change { time_ns, rank, what: What::Ended }));
    changes.sort_by_key(|change| change.time_ns);
    changes
}
