//! Contents that a trace must have, worked out for each nanosecond by itself.

use std::iter;

use talpf_traces::paraver::EventKind;
use talpf_traces::{Event, IdleCause, MessageKind, State, ValueKind};

use super::program::{Record, Run};
use super::shown::{Contents, Row};

/// Type of the first number of the program.
const FIRST_COUNTER: u32 = 95_100_000;

/// A worker at each time.
struct Worker {
    state: Vec<State>,
    /// Rank whose row shows it.
    owner: Vec<u32>,
    /// Rank, task and name.
    task: Vec<Option<(u32, u64, i64)>>,
    /// Name of the span.
    span: Vec<i64>,
    /// Tasks that were ready at other workers, while it is idle.
    idle: Vec<Option<u32>>,
}

/// Returns the contents that a run must have.
pub(super) fn expected(run: &Run) -> Contents {
    let workers: Vec<Worker> = (0..run.workers).map(|worker| paint(run, worker)).collect();
    let mut contents = Contents::default();
    for (worker, number) in workers.iter().zip(0..) {
        for rank in 0..run.ranks {
            add_row(&mut contents, run, worker, (rank, number));
        }
    }
    for record in &run.records {
        add_moment(&mut contents, run, &workers, record);
    }
    add_rounds(&mut contents, run);
    add_causes(&mut contents, run, &workers);
    add_tasks(&mut contents, run, &workers);
    add_messages(&mut contents, run);
    contents.in_order()
}

/// Returns the rank whose row shows each worker, at each time.
pub(super) fn owners(run: &Run) -> Vec<Vec<u32>> {
    (0..run.workers).map(|worker| paint(run, worker).owner).collect()
}

/// Paints what a worker does, outer slices first.
fn paint(run: &Run, number: u32) -> Worker {
    let length = run.end_ns as usize + 1;
    let mine: Vec<&Record> = run.records.iter().filter(|record| record.worker == number).collect();
    let mut slices: Vec<(usize, &Record)> =
        mine.iter().filter_map(|record| Some((began(record.event)?, *record))).collect();
    let first = mine.iter().map(|record| began(record.event).unwrap_or(record.time_ns as usize));
    let last = mine.iter().map(|record| record.time_ns as usize).max();
    let mut worker = Worker {
        state: vec![State::NotCreated; length],
        owner: vec![0; length],
        task: vec![None; length],
        span: vec![0; length],
        idle: vec![None; length],
    };
    if let (Some(first), Some(last)) = (first.min(), last) {
        worker.state[first..last].fill(State::Scheduling);
    }
    slices.sort_by_key(|(began, record)| *began as i64 - record.time_ns as i64);
    for (began, record) in &slices {
        let times = *began..record.time_ns as usize;
        match record.event {
            Event::TaskSlice { rank, task, label, .. } => {
                worker.state[times.clone()].fill(State::Running);
                worker.task[times.clone()].fill(Some((rank, task, run.name(label))));
                worker.span[times].fill(0);
            }
            Event::StateSlice { state, .. } => worker.state[times].fill(state),
            Event::Idle { ready, .. } => {
                worker.state[times.clone()].fill(State::Idle);
                worker.idle[times].fill(Some(ready));
            }
            Event::SpanSlice { label, .. } => worker.span[times].fill(run.name(label)),
            _ => unreachable!("slices begin"),
        }
    }
    slices.sort_by_key(|(began, _)| *began);
    let mut owner = slices.iter().find_map(|(_, slice)| match slice.event {
        Event::TaskSlice { rank, .. } => Some(rank),
        _ => None,
    });
    for (of_time, task) in worker.owner.iter_mut().zip(&worker.task) {
        owner = task.map(|(rank, ..)| rank).or(owner);
        *of_time = owner.unwrap_or(0);
    }
    worker
}

fn began(event: Event) -> Option<usize> {
    match event {
        Event::TaskSlice { began_ns, .. }
        | Event::StateSlice { began_ns, .. }
        | Event::Idle { began_ns, .. }
        | Event::SpanSlice { began_ns, .. } => Some(began_ns as usize),
        _ => None,
    }
}

/// Adds the states, the tasks and the spans of a row.
fn add_row(contents: &mut Contents, run: &Run, worker: &Worker, row: Row) {
    let end = run.end_ns as usize;
    let shows = |time: usize| worker.owner[time] == row.0;
    let state = |time| if shows(time) { worker.state[time] } else { State::NotCreated };
    contents.states.insert(row, (0..end).map(|time| state(time).number()).collect());
    let of_rank = |time: usize| worker.task[time].filter(|task| task.0 == row.0);
    let mut insert = |kind: EventKind, value: &dyn Fn(usize) -> i64| {
        contents.levels.insert((kind.number(), row), (0..=end).map(value).collect());
    };
    insert(EventKind::TaskId, &|time| of_rank(time).map_or(0, |task| task.1 as i64));
    insert(EventKind::TaskType, &|time| of_rank(time).map_or(0, |task| task.2));
    insert(EventKind::Span, &|time| if shows(time) { worker.span[time] } else { 0 });
}

/// Adds an event that belongs to its moment, or a level that a record sets.
fn add_moment(contents: &mut Contents, run: &Run, workers: &[Worker], record: &Record) {
    let &Record { time_ns, worker, event } = record;
    let own = (workers[worker as usize].owner[time_ns as usize], worker);
    match event {
        Event::TaskSlice { starts: true, rank, label, began_ns, .. } => {
            let name = run.name(label);
            contents.add(EventKind::TaskStarted, (rank, worker), began_ns, name);
        }
        Event::Mark { label } => {
            contents.add(EventKind::Mark, own, time_ns, run.name(label));
        }
        Event::Counter { label, value } => {
            let number = FIRST_COUNTER + run.name(label) as u32 - 1;
            contents.moments.push((number, own, time_ns, value));
        }
        Event::Ready { rank, task, by } => {
            contents.add(EventKind::TaskReady, (rank, worker), time_ns, task as i64);
            contents.add(EventKind::ReadyBy, (rank, worker), time_ns, by as i64);
        }
        Event::Value { rank, kind, value } => {
            let first = (rank, 0);
            let end_ns = run.end_ns;
            let mut set =
                |kind: EventKind, row| contents.set(kind.number(), row, time_ns, end_ns, value);
            match kind {
                ValueKind::OutstandingRequests => set(EventKind::OutstandingRequests, first),
                ValueKind::TimedPart => set(EventKind::TimedPart, first),
                ValueKind::SlowCores => set(EventKind::SlowCores, first),
                ValueKind::Step => set(EventKind::Step, (rank, worker)),
                ValueKind::PollCompletions => {
                    contents.add(EventKind::PollCompletions, (rank, worker), time_ns, value);
                }
                ValueKind::ReceivePosted => {
                    contents.add(EventKind::ReceivePosted, (rank, worker), time_ns, value);
                }
                ValueKind::TasksReady | ValueKind::TasksNotDone => {}
            }
        }
        _ => {}
    }
}

/// Adds the rounds: those that are open, and the times that each leaves where it ends.
fn add_rounds(contents: &mut Contents, run: &Run) {
    let mut open = Vec::new();
    let number = |round: u64| round as i64 + 1;
    for &Record { time_ns, worker, event } in &run.records {
        let rank = match event {
            Event::SyncBegin { rank, lane, round, mode, .. } => {
                open.push(((rank, lane, round), worker, time_ns, mode));
                rank
            }
            Event::SyncEnd { rank, lane, round, posted, arrived } => {
                let mut add = |kind: EventKind, value| {
                    contents.moments.push((kind.number(), (rank, worker), time_ns, value));
                };
                add(EventKind::SyncEnded, number(round));
                add(EventKind::SyncOwnWorkDone, posted.as_nanos() as i64);
                add(EventKind::SyncArrivalsComplete, arrived.as_nanos() as i64);
                let Some(of_it) = open.iter().position(|sync| sync.0 == (rank, lane, round)) else {
                    continue;
                };
                let (_, _, asked_ns, mode) = open.remove(of_it);
                add(EventKind::SyncAsked, (time_ns - asked_ns) as i64);
                add(EventKind::SyncEndedMode, mode.number());
                rank
            }
            _ => continue,
        };
        let mut set = |kind: EventKind, row, value| {
            contents.set(kind.number(), row, time_ns, run.end_ns, value);
        };
        let of_rank = open.iter().filter(|sync| sync.0.0 == rank);
        set(EventKind::RoundsOpen, (rank, 0), of_rank.count() as i64);
        for worker in 0..run.workers {
            let row = (rank, worker);
            let shown = open.iter().rfind(|sync| (sync.0.0, sync.1) == row);
            let of_shown = |value: &dyn Fn((u32, u32, u64)) -> i64| shown.map_or(0, |s| value(s.0));
            set(EventKind::SyncMode, row, shown.map_or(0, |sync| sync.3.number()));
            set(EventKind::SyncLane, row, of_shown(&|key| i64::from(key.1) + 1));
            set(EventKind::SyncRound, row, of_shown(&|key| number(key.2)));
        }
    }
    // No sync is shown beyond the end.
    let kinds = [EventKind::SyncMode, EventKind::SyncLane, EventKind::SyncRound];
    for ((kind, _), levels) in &mut contents.levels {
        if kinds.iter().any(|sync| sync.number() == *kind) {
            levels[run.end_ns as usize] = 0;
        }
    }
}

/// Returns the time of the last task of each rank; 0 without any.
fn last_tasks(run: &Run) -> Vec<u64> {
    let mut last_ns = vec![0; run.ranks as usize];
    for record in &run.records {
        if let Event::TaskSlice { rank, .. } = record.event {
            last_ns[rank as usize] = record.time_ns;
        }
    }
    last_ns
}

/// Adds the causes of idleness.
fn add_causes(contents: &mut Contents, run: &Run, workers: &[Worker]) {
    let last_ns = last_tasks(run);
    for now in 0..=run.end_ns {
        let mut slow: Vec<i64> = (0..run.ranks).map(|rank| level_of_slow(run, rank, now)).collect();
        for (worker, number) in workers.iter().zip(0..) {
            let Some(ready) = worker.idle[now as usize] else { continue };
            let rank = worker.owner[now as usize];
            let slow = &mut slow[rank as usize];
            let (waits, throttled) = waits(run, rank, now);
            let cause = if *slow > 0 {
                *slow -= 1;
                IdleCause::SlowCore
            } else if last_ns[rank as usize] <= now {
                IdleCause::End
            } else if ready > 0 {
                IdleCause::NotForThisWorker
            } else if waits > 0 {
                IdleCause::Communication
            } else if throttled > 0 {
                IdleCause::Throttle
            } else {
                IdleCause::Supply
            };
            let kind = EventKind::IdleBecause.number();
            let row = (rank, number);
            let length = run.end_ns as usize + 1;
            let levels = contents.levels.entry((kind, row)).or_insert_with(|| vec![0; length]);
            levels[now as usize] = cause.number();
        }
    }
}

/// Returns the number of tasks that slow cores of a rank compute.
fn level_of_slow(run: &Run, rank: u32, now: u64) -> i64 {
    latest(run, rank, now, ValueKind::SlowCores)
}

/// Returns the latest value of a rank up to `now`.
fn latest(run: &Run, rank: u32, now: u64, wanted: ValueKind) -> i64 {
    let mut latest = 0;
    for record in run.records.iter().filter(|record| record.time_ns <= now) {
        match record.event {
            Event::Value { rank: of, kind, value } if (of, kind) == (rank, wanted) => {
                latest = value
            }
            _ => {}
        }
    }
    latest
}

/// Returns how much a rank waits for at a time, and how often it is throttled.
fn waits(run: &Run, of_rank: u32, now: u64) -> (i64, i64) {
    let has_outstanding = latest(run, of_rank, now, ValueKind::OutstandingRequests) > 0;
    let (mut waits, mut throttled) = (i64::from(has_outstanding), 0);
    for record in run.records.iter().filter(|record| record.event.group() == Some(of_rank)) {
        let is_past = record.time_ns <= now;
        match record.event {
            Event::SyncEnd { posted, .. } => {
                let from_ns = record.time_ns.saturating_sub(posted.as_nanos());
                waits += i64::from(from_ns <= now && !is_past);
            }
            Event::Value { kind: ValueKind::ReceivePosted, .. } => waits += i64::from(is_past),
            Event::ReceiveTagged { .. } => waits -= i64::from(is_past),
            Event::Throttle { waits, .. } if is_past => throttled += if waits { 1 } else { -1 },
            _ => {}
        }
    }
    (waits, throttled)
}

/// Adds the numbers of tasks that are ready, and of those that are not done.
fn add_tasks(contents: &mut Contents, run: &Run, workers: &[Worker]) {
    let not_done = EventKind::TasksNotDone.number();
    for (rank, last_ns) in (0..).zip(last_tasks(run)) {
        let mut changes = Vec::new();
        for record in &run.records {
            match record.event {
                Event::Value { rank: of, kind: ValueKind::TasksNotDone, value } if of == rank => {
                    changes.push((record.time_ns, value));
                }
                _ => {}
            }
        }
        // All are done after the last record of the moment of the last task.
        let place = changes.partition_point(|(time_ns, _)| *time_ns <= last_ns);
        changes.insert(place, (last_ns, 0));
        for (time_ns, value) in changes {
            contents.set(not_done, (rank, 0), time_ns, run.end_ns, value);
        }
    }
    let ready = EventKind::TasksReady.number();
    for (worker, number) in workers.iter().zip(0..) {
        for now in 0..=run.end_ns {
            let at = now as usize;
            let mut set = |rank, value| contents.set(ready, (rank, number), now, run.end_ns, value);
            if at > 0 && worker.owner[at] != worker.owner[at - 1] {
                set(worker.owner[at - 1], 0);
            }
            for record in run.records.iter().filter(|record| record.worker == number) {
                match record.event {
                    Event::Value { rank, kind: ValueKind::TasksReady, value }
                        if record.time_ns == now =>
                    {
                        set(rank, value);
                    }
                    Event::Idle { began_ns, .. } if began_ns == now => set(worker.owner[at], 0),
                    _ => {}
                }
            }
        }
    }
}

/// Adds the messages: the k-th send of a number meets the k-th receive of it.
fn add_messages(contents: &mut Contents, run: &Run) {
    let mut receives: Vec<Option<&Record>> = run.records.iter().map(Some).collect();
    for sent in &run.records {
        let Event::Send { kind, rank, peer, message, bytes, waited } = sent.event else { continue };
        let key = |record: &Record| match record.event {
            Event::Receive { rank, peer, message, .. }
            | Event::ReceiveTagged { rank, peer, message, .. } => {
                Some((peer, rank, message, false))
            }
            Event::ReceiveControl { rank, peer, message, .. } => Some((peer, rank, message, true)),
            _ => None,
        };
        let of_sent = Some((rank, peer, message, kind.number() > 6));
        let mut candidates = receives.iter_mut();
        let received =
            candidates.find(|record| record.is_some_and(|record| key(record) == of_sent));
        let Some(received) = received.and_then(Option::take) else { continue };
        let called_ns = sent.time_ns.saturating_sub(waited.as_nanos());
        let (arrived_ns, lane, tag, complete_ns) = match received.event {
            Event::Receive { lane, round, .. } => {
                let end_ns = end_of_sync(run, (peer, lane, round), received.time_ns);
                (received.time_ns, Some(lane), round, end_ns.unwrap_or(0))
            }
            Event::ReceiveTagged { tag, arrived, .. } => {
                let arrived_ns = received.time_ns.saturating_sub(arrived.as_nanos());
                (arrived_ns, None, tag.into(), received.time_ns)
            }
            Event::ReceiveControl { kind, lane, round, .. } => {
                let tag = (1 << 52) + (kind.number() as u64) * (1 << 48) + round;
                (received.time_ns, Some(lane), tag, 0)
            }
            _ => unreachable!("only those have a key"),
        };
        let is_early = arrived_ns < called_ns;
        let left_ns = if is_early { sent.time_ns } else { sent.time_ns.min(arrived_ns) };
        let there_ns = arrived_ns.max(left_ns);
        let complete_ns = complete_ns.max(there_ns);
        let row = |rank: u32, worker: u32| format!("{}:1:{}:{}", worker + 1, rank + 1, worker + 1);
        let (from, to) = (row(rank, sent.worker), row(peer, received.worker));
        contents.messages.push(format!(
            "3:{from}:{called_ns}:{left_ns}:{to}:{complete_ns}:{there_ns}:{bytes}:{tag}"
        ));
        let lane = lane.map(|lane| (EventKind::MessageLane, i64::from(lane) + 1));
        let of_put = [
            (EventKind::PutLatency, (there_ns - left_ns) as i64),
            (EventKind::WindowWait, (left_ns - called_ns) as i64),
        ];
        let of_put = of_put.into_iter().filter(|_| kind == MessageKind::Put);
        let events = iter::once((EventKind::MessageKind, kind.number())).chain(lane).chain(of_put);
        let row = (peer, received.worker);
        let moments = events.map(|(kind, value)| (kind.number(), row, there_ns, value));
        contents.moments.extend(moments);
    }
}

/// Returns the first end of a sync from an arrival on.
fn end_of_sync(run: &Run, sync: (u32, u32, u64), arrived_ns: u64) -> Option<u64> {
    let mut records = run.records.iter();
    let end = records.find(|record| match record.event {
        Event::SyncEnd { rank, lane, round, .. } => {
            (rank, lane, round) == sync && record.time_ns >= arrived_ns
        }
        _ => false,
    })?;
    Some(end.time_ns)
}
