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

use super::entry::{Edge, Entry};
use super::layout::Thread;
use super::owners::Owners;
use super::records::RecordIndex;
use super::timeline::Timeline;
use crate::{Event, IdleCause, ValueKind};

/// State of a rank at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Rank {
    awaited: i64,
    throttled: i64,
    on_slow_cores: i64,
    /// `true` while requests are outstanding.
    has_outstanding: bool,
    has_ended: bool,
}

/// Causes of idleness of all workers, in the order of the timeline.
#[derive(Debug)]
pub(super) struct Causes<'a> {
    timeline: &'a Timeline<'a>,
    /// Ends of syncs, by the time from which their ranks wait for them.
    begins: Queue,
    /// Records that change what a rank waits for, by time.
    changes: Queue,
    /// Ranks with the time of their last task, by that.
    ends: Vec<(u64, u32)>,
    /// Number of ranks that have ended.
    ended: usize,
    ranks: Vec<Rank>,
    workers: Vec<Worker>,
    /// `true` if something has changed since the last update.
    is_stale: bool,
}

/// Records of which the first were applied.
#[derive(Debug, Default)]
struct Queue {
    places: Vec<RecordIndex>,
    applied: usize,
}

#[derive(Clone, Debug, Default)]
struct Worker {
    /// Tasks that were ready at other workers, while the worker is idle.
    idle: Option<u32>,
    shown: Option<(Thread, IdleCause)>,
}

impl<'a> Causes<'a> {
    pub(super) fn new(timeline: &'a Timeline<'a>) -> Self {
        let layout = timeline.layout();
        let mut last_ns = vec![0; layout.ranks as usize];
        let (mut begins, mut changes) = (Queue::default(), Queue::default());
        for (place, _, record) in timeline.records().all() {
            match record.event {
                Event::TaskSlice { rank, .. } => {
                    let last_ns = &mut last_ns[rank as usize];
                    *last_ns = record.time_ns.max(*last_ns);
                }
                Event::SyncEnd { .. } => {
                    begins.places.push(place);
                    changes.places.push(place);
                }
                Event::Value {
                    kind:
                        ValueKind::OutstandingRequests | ValueKind::SlowCores | ValueKind::ReceivePosted,
                    ..
                }
                | Event::ReceiveTagged { .. }
                | Event::Throttle { .. } => changes.places.push(place),
                _ => {}
            }
        }
        begins.places.sort_by_key(|place| posted_ns(timeline, *place));
        changes.places.sort_by_key(|place| timeline.records().get(*place).1.time_ns);
        let mut ends: Vec<_> = last_ns.into_iter().zip(0..).collect();
        ends.sort_unstable();
        Self {
            timeline,
            begins,
            changes,
            ends,
            ended: 0,
            ranks: vec![Rank::default(); layout.ranks as usize],
            workers: vec![Worker::default(); layout.streams() as usize],
            is_stale: true,
        }
    }

    /// Returns the time of the next change that has not been applied.
    pub(super) fn next_change_ns(&self) -> Option<u64> {
        let time_ns = |place: RecordIndex| self.timeline.records().get(place).1.time_ns;
        let begin_ns = self.begins.next().map(|place| posted_ns(self.timeline, place));
        let change_ns = self.changes.next().map(time_ns);
        let end_ns = self.ends.get(self.ended).map(|(time_ns, _)| *time_ns);
        begin_ns.into_iter().chain(change_ns).chain(end_ns).min()
    }

    /// Applies the changes up to `now`. Returns the ranks that have ended with them.
    pub(super) fn advance(&mut self, now: u64) -> Vec<u32> {
        let records = self.timeline.records();
        let posted_ns = |place: &RecordIndex| posted_ns(self.timeline, *place);
        while let Some(place) = self.begins.next().filter(|place| posted_ns(place) <= now) {
            if let Some(rank) = records.get(place).1.event.group() {
                self.ranks[rank as usize].awaited += 1;
            }
            self.begins.applied += 1;
            self.is_stale = true;
        }
        while let Some(place) = self.changes.next() {
            let (_, record) = records.get(place);
            if record.time_ns > now {
                break;
            }
            if let Some(rank) = record.event.group() {
                self.is_stale |= self.ranks[rank as usize].apply(record.event);
            }
            self.changes.applied += 1;
        }
        let mut ended = Vec::new();
        while let Some(&(_, rank)) = self.ends.get(self.ended).filter(|end| end.0 <= now) {
            self.ranks[rank as usize].has_ended = true;
            ended.push(rank);
            self.ended += 1;
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

impl Queue {
    fn next(&self) -> Option<RecordIndex> {
        self.places.get(self.applied).copied()
    }
}

impl Rank {
    /// Applies a record. Returns `true` if that has changed anything.
    fn apply(&mut self, event: Event) -> bool {
        match event {
            Event::SyncEnd { .. } | Event::ReceiveTagged { .. } => self.awaited -= 1,
            Event::Throttle { waits, .. } => self.throttled += if waits { 1 } else { -1 },
            Event::Value { kind: ValueKind::SlowCores, value, .. } => self.on_slow_cores = value,
            Event::Value { kind: ValueKind::ReceivePosted, .. } => self.awaited += 1,
            Event::Value { kind: ValueKind::OutstandingRequests, value, .. } => {
                let has = value > 0;
                let had = std::mem::replace(&mut self.has_outstanding, has);
                self.awaited += i64::from(has) - i64::from(had);
                return has != had;
            }
            _ => return false,
        }
        true
    }
}

/// Returns the time from which a rank waits for the end of a sync, given that.
fn posted_ns(timeline: &Timeline<'_>, end: RecordIndex) -> u64 {
    let (_, record) = timeline.records().get(end);
    match record.event {
        Event::SyncEnd { posted, .. } => record.time_ns.saturating_sub(posted.as_nanos()),
        _ => record.time_ns,
    }
}
