//! Random runs, with what they record.

use talpf_traces::{
    Event, LabelId, MessageKind, Recorder, State, Stream, SyncMode, ValueKind, WaitNs,
};

/// Step of a random run: time that passes, and what a worker does then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) worker: u32,
    pub(super) passed: u64,
    pub(super) kind: u8,
    pub(super) a: u32,
    pub(super) b: u32,
}

/// Recorded run.
pub(super) struct Run {
    pub(super) ranks: u32,
    pub(super) workers: u32,
    pub(super) end_ns: u64,
    pub(super) recorder: Recorder,
    pub(super) labels: [LabelId; 3],
    /// Records of all workers, by time and worker. A worker has one at a time at most.
    pub(super) records: Vec<Record>,
}

/// Record of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) time_ns: u64,
    pub(super) worker: u32,
    pub(super) event: Event,
}

/// Worker that is inside slices.
struct Worker {
    stream: Stream,
    /// Slices that are open, with the time of their begin.
    open: Vec<Event>,
    /// Time of the last begin or record.
    last_ns: Option<u64>,
    /// Record that is made late, after the next one.
    late: Option<(u64, Event)>,
}

/// Runs steps. Slices nest, and a worker does one thing at a time.
pub(super) fn run(ranks: u32, workers: u32, steps: &[Step]) -> Run {
    let recorder = Recorder::default();
    let labels = ["a", "b", "c"].map(|name| recorder.label(name));
    let mut running: Vec<Worker> = (0..workers)
        .map(|worker| Worker {
            stream: recorder.stream(worker),
            open: Vec::new(),
            last_ns: None,
            late: None,
        })
        .collect();
    let mut records = Vec::new();
    let (mut now, mut rounds) = (0, Vec::new());
    for (number, step) in (0..).zip(steps) {
        now += step.passed;
        let number_of = step.worker % workers;
        let worker = &mut running[number_of as usize];
        if worker.last_ns == Some(now) {
            continue;
        }
        worker.last_ns = Some(now);
        let is_idle = matches!(worker.open.last(), Some(Event::Idle { .. }));
        match step.kind {
            0..10 if !is_idle => {
                worker.open.push(opened(step, number, now, ranks, &labels, worker.open.is_empty()));
            }
            10..20 => {
                if let Some(event) = worker.open.pop() {
                    worker.record(now, event, false);
                    records.push(Record { time_ns: now, worker: number_of, event });
                }
            }
            _ => {
                let event = moment(step, number, now, ranks, &labels, &mut rounds);
                worker.record(now, event, step.b % 8 == 0);
                records.push(Record { time_ns: now, worker: number_of, event });
            }
        }
    }
    for (worker, number) in running.iter_mut().zip(0..) {
        now += 1;
        while let Some(event) = worker.open.pop() {
            worker.record(now, event, false);
            records.push(Record { time_ns: now, worker: number, event });
            now += 1;
        }
        worker.flush_late();
    }
    records.sort_by_key(|record| (record.time_ns, record.worker));
    Run { ranks, workers, end_ns: now + 3, recorder, labels, records }
}

impl Run {
    /// Returns the value of a name in the trace: 1 is that of what has none.
    pub(super) fn name(&self, label: LabelId) -> i64 {
        let index = self.labels.iter().position(|known| *known == label);
        index.expect("a label of the run") as i64 + 2
    }
}

impl Worker {
    /// Records an event, or keeps it to record it after the next one.
    fn record(&mut self, time_ns: u64, event: Event, is_late: bool) {
        if is_late && self.late.is_none() {
            self.late = Some((time_ns, event));
            return;
        }
        self.stream.record(time_ns, event);
        self.flush_late();
    }

    fn flush_late(&mut self) {
        if let Some((time_ns, event)) = self.late.take() {
            self.stream.record(time_ns, event);
        }
    }
}

/// Returns the slice that a worker opens.
fn opened(
    step: &Step,
    number: u64,
    began_ns: u64,
    ranks: u32,
    labels: &[LabelId; 3],
    is_outside: bool,
) -> Event {
    let label = labels[step.b as usize % 3];
    match step.kind {
        0..6 => {
            let (starts, rank) = (!step.b.is_multiple_of(4), step.a % ranks);
            Event::TaskSlice { starts, rank, task: number + 1, label, began_ns }
        }
        6 | 7 if is_outside => Event::Idle { began_ns, ready: step.b % 2 },
        8 => Event::StateSlice { state: State::Polling, began_ns },
        _ => Event::SpanSlice { label, began_ns },
    }
}

/// Returns the event without length that a worker records.
fn moment(
    step: &Step,
    number: u64,
    now: u64,
    ranks: u32,
    labels: &[LabelId; 3],
    rounds: &mut Vec<(u32, u32, u64, u64)>,
) -> Event {
    let &Step { kind, a, b, .. } = step;
    let (rank, peer, lane) = (a % ranks, b % ranks, a / 8 % 2);
    let wait = |numbers: u32| WaitNs::between(0, (numbers % 6).into());
    match kind {
        20..23 => {
            let mode = SyncMode::all().nth(b as usize % 12).expect("a mode");
            rounds.push((rank, lane, number, now));
            Event::SyncBegin { rank, lane, round: number, mode, expected: None }
        }
        23..26 => {
            // The worker that began it has done so by now.
            let mut is_earlier = rounds.iter().map(|round| round.3 < now);
            let open = is_earlier.position(|is_earlier| is_earlier && b % 5 != 0);
            let (rank, lane, round, _) =
                open.map_or((rank, lane, number, now), |open| rounds.remove(open));
            Event::SyncEnd { rank, lane, round, posted: wait(a / 16), arrived: wait(b / 16) }
        }
        26..29 => {
            let kind = MessageKind::ALL[b as usize / 8 % MessageKind::ALL.len()];
            let message = u64::from(a / 16 % 4);
            Event::Send { kind, rank, peer, message, bytes: number, waited: wait(a / 64) }
        }
        29..32 => {
            let round = number.saturating_sub((b / 8 % 8).into());
            Event::Receive { rank, peer, message: (a / 16 % 4).into(), lane, round }
        }
        32 => {
            let message = u64::from(a / 16 % 4);
            Event::ReceiveTagged { rank, peer, message, tag: b, arrived: wait(a / 64) }
        }
        37 => {
            let kind = MessageKind::ALL[6 + b as usize / 8 % 4];
            let (message, round) = ((a / 16 % 4).into(), number);
            Event::ReceiveControl { kind, rank, peer, message, lane, round }
        }
        33 => Event::Throttle { rank, waits: b % 2 == 0 },
        34 => Event::Mark { label: labels[b as usize % 3] },
        36 => Event::Ready { rank, task: (a % 4 + 1).into(), by: (b % 4).into() },
        35 => Event::Counter { label: labels[b as usize % 3], value: i64::from(a) - 4 },
        _ => {
            let kinds = [
                ValueKind::OutstandingRequests,
                ValueKind::PollCompletions,
                ValueKind::ReceivePosted,
                ValueKind::TasksReady,
                ValueKind::TasksNotDone,
                ValueKind::TimedPart,
                ValueKind::Step,
                ValueKind::SlowCores,
            ];
            let value = (b / 64 % 3).into();
            Event::Value { rank, kind: kinds[b as usize % 8], value }
        }
    }
}
