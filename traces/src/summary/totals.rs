//! Totals over the records of a trace.

use std::collections::{BTreeMap, HashMap};

use super::distribution::{Distribution, Durations};
use super::interval_union::IntervalUnion;
use super::{Efficiency, MessageSummary, PairSummary, RankSummary, Summary, TaskSummary};
use crate::paraver::{Communication, EventKind, Reader, Record};
use crate::{MessageKind, State};

const RUNNING: u32 = State::Running.number();
const NOT_CREATED: u32 = State::NotCreated.number();
const TASK_ID: u32 = EventKind::TaskId.number();
const TASK_TYPE: u32 = EventKind::TaskType.number();
const TASK_STARTED: u32 = EventKind::TaskStarted.number();
const SYNC_ENDED: u32 = EventKind::SyncEnded.number();
const SYNC_COST: u32 = EventKind::SyncOwnWorkDone.number();
const SYNC_MODE: u32 = EventKind::SyncEndedMode.number();
const IDLE_BECAUSE: u32 = EventKind::IdleBecause.number();
const SLOW_CORES: u32 = EventKind::SlowCores.number();
const TIMED_PART: u32 = EventKind::TimedPart.number();
const MESSAGE_KIND: u32 = EventKind::MessageKind.number();

/// Totals as they grow.
pub(super) struct Totals {
    /// Rank of each row.
    ranks_of_rows: Vec<u32>,
    cpus: u64,
    ranks: Vec<Rank>,
    /// Running time of each worker: by cpu, or by row where the trace has no cpus.
    running_ns: HashMap<u64, u64>,
    /// Task type that each row shows, and since when; 0 outside tasks.
    shown: Vec<(i64, u64)>,
    /// Cause of idleness that each row shows, and since when; 0 while it is not idle.
    causes: Vec<(i64, u64)>,
    /// First begin and last end of the timed part.
    timed_ns: Option<(u64, u64)>,
    tasks: BTreeMap<i64, Tasks>,
    states: BTreeMap<u32, Durations>,
    syncs: BTreeMap<i64, Syncs>,
    kinds: BTreeMap<i64, u64>,
    control: BTreeMap<&'static str, u64>,
    latency: Durations,
    pairs: BTreeMap<(u32, u32), (u64, u64)>,
}

#[derive(Clone, Default)]
struct Rank {
    states_ns: BTreeMap<u32, u64>,
    idle_ns: BTreeMap<i64, u64>,
    /// Tasks on slow cores, and since when.
    on_slow_cores: (u64, u64),
    /// Time in which slow cores have computed.
    slow_ns: u64,
    tasks: u64,
    rounds: u64,
    /// Time in which at least one sync of the rank was awaited.
    synced: IntervalUnion,
}

/// Syncs of one mode.
#[derive(Default)]
struct Syncs {
    costs: Durations,
    /// As `Rank::synced`, of this mode alone.
    of_ranks: BTreeMap<usize, IntervalUnion>,
}

#[derive(Default)]
struct Tasks {
    started: u64,
    slices: Durations,
}

impl Totals {
    pub(super) fn new(reader: &Reader) -> Self {
        let ranks_of_rows = reader.ranks_of_rows().to_vec();
        Self {
            cpus: reader.cpus().into(),
            ranks: vec![Rank::default(); reader.ranks() as usize],
            running_ns: HashMap::new(),
            shown: vec![(0, 0); ranks_of_rows.len()],
            causes: vec![(0, 0); ranks_of_rows.len()],
            timed_ns: None,
            ranks_of_rows,
            tasks: BTreeMap::new(),
            states: BTreeMap::new(),
            syncs: BTreeMap::new(),
            kinds: BTreeMap::new(),
            control: BTreeMap::new(),
            latency: Durations::default(),
            pairs: BTreeMap::new(),
        }
    }

    pub(super) fn record(&mut self, record: Record<'_>) {
        match record {
            Record::State { row, cpu, begin_ns, end_ns, state } => {
                self.state(row, cpu, end_ns.saturating_sub(begin_ns), state);
            }
            Record::Event { row, time_ns, values, .. } => self.event(row, time_ns, values),
            Record::Communication(message) => self.message(&message),
        }
    }

    fn message(&mut self, message: &Communication) {
        if let Some(kind) = message.control() {
            *self.control.entry(kind.name()).or_default() += 1;
            return;
        }
        let Communication { sender, receiver, send_ns, receive_ns, bytes, .. } = *message;
        self.latency.add(receive_ns.saturating_sub(send_ns));
        let pair = (self.ranks_of_rows[sender], self.ranks_of_rows[receiver]);
        let (messages, sum) = self.pairs.entry(pair).or_default();
        *messages += 1;
        grow(sum, bytes);
    }

    fn state(&mut self, row: usize, cpu: u32, duration_ns: u64, state: u32) {
        if state == NOT_CREATED {
            return;
        }
        let rank = &mut self.ranks[self.ranks_of_rows[row] as usize];
        grow(rank.states_ns.entry(state).or_default(), duration_ns);
        self.states.entry(state).or_default().add(duration_ns);
        let running = if state == RUNNING { duration_ns } else { 0 };
        grow(self.running_ns.entry(worker(row, cpu)).or_default(), running);
    }

    fn event(&mut self, row: usize, time_ns: u64, values: &[(u32, i64)]) {
        // Much may happen at one time where time is virtual.
        for (index, &(kind, value)) in values.iter().enumerate() {
            let rest = &values[index + 1..];
            let rank = self.ranks_of_rows[row] as usize;
            match kind {
                TASK_STARTED => {
                    self.ranks[rank].tasks += 1;
                    self.tasks.entry(value).or_default().started += 1;
                }
                TASK_ID if rest.iter().all(|(kind, _)| *kind != TASK_TYPE) => {
                    self.show(row, self.shown[row].0, time_ns);
                }
                TASK_TYPE => self.show(row, value, time_ns),
                SYNC_ENDED => {
                    self.ranks[rank].rounds += 1;
                    let of = |wanted| {
                        let mut own = rest.iter().take_while(|(kind, _)| *kind != SYNC_ENDED);
                        own.find(|(kind, _)| *kind == wanted).map_or(0, |(_, value)| *value)
                    };
                    self.sync(rank, of(SYNC_MODE), (time_ns, of(SYNC_COST).unsigned_abs()));
                }
                // Control messages are counted where their lines are.
                MESSAGE_KIND if MessageKind::of(value).is_some_and(MessageKind::is_control) => {}
                MESSAGE_KIND => *self.kinds.entry(value).or_default() += 1,
                TIMED_PART => {
                    let (begin_ns, end_ns) = self.timed_ns.unwrap_or((time_ns, time_ns));
                    self.timed_ns = Some((begin_ns.min(time_ns), end_ns.max(time_ns)));
                }
                SLOW_CORES => self.slow(rank, value.try_into().unwrap_or(0), time_ns),
                IDLE_BECAUSE => self.idle(row, value, time_ns),
                _ => {}
            }
        }
    }

    fn sync(&mut self, rank: usize, mode: i64, (end_ns, cost_ns): (u64, u64)) {
        let syncs = self.syncs.entry(mode).or_default();
        syncs.costs.add(cost_ns);
        let of_mode = syncs.of_ranks.entry(rank).or_default();
        for synced in [of_mode, &mut self.ranks[rank].synced] {
            synced.add(end_ns.saturating_sub(cost_ns), end_ns);
        }
    }

    /// Ends the slice that a row shows, and begins the next.
    fn show(&mut self, row: usize, label: i64, time_ns: u64) {
        let (before, since_ns) = std::mem::replace(&mut self.shown[row], (label, time_ns));
        if before != 0 {
            self.tasks.entry(before).or_default().slices.add(time_ns.saturating_sub(since_ns));
        }
    }

    /// Ends the cause of idleness that a row shows, and begins the next.
    fn idle(&mut self, row: usize, cause: i64, time_ns: u64) {
        let (before, since_ns) = std::mem::replace(&mut self.causes[row], (cause, time_ns));
        if before != 0 {
            let rank = &mut self.ranks[self.ranks_of_rows[row] as usize];
            grow(rank.idle_ns.entry(before).or_default(), time_ns.saturating_sub(since_ns));
        }
    }

    /// Ends a number of tasks on slow cores of a rank, and begins the next.
    fn slow(&mut self, rank: usize, tasks: u64, time_ns: u64) {
        let (before, since_ns) =
            std::mem::replace(&mut self.ranks[rank].on_slow_cores, (tasks, time_ns));
        let cores = before.min(self.cores_of_a_rank());
        grow(&mut self.ranks[rank].slow_ns, time_ns.saturating_sub(since_ns).saturating_mul(cores));
    }

    /// Returns the number of cores of a slow rank: its share of the cpus.
    fn cores_of_a_rank(&self) -> u64 {
        (self.cpus / self.ranks.len().max(1) as u64).max(1)
    }

    pub(super) fn finish(mut self, reader: &Reader, lost: Vec<String>) -> Summary {
        let duration_ns = reader.duration_ns();
        for row in 0..self.shown.len() {
            self.show(row, 0, duration_ns);
            self.idle(row, 0, duration_ns);
        }
        (0..self.ranks.len()).for_each(|rank| self.slow(rank, 0, duration_ns));
        let task = |(label, tasks): (&i64, &Tasks)| {
            let slices = tasks.slices.distribution();
            let name = reader.value_label(TASK_TYPE, *label).into_owned();
            (name, TaskSummary { tasks: tasks.started, slices })
        };
        let state = |(state, times): (&u32, &Durations)| {
            (reader.state_label(*state).into_owned(), times.distribution())
        };
        let sync = |(mode, syncs): (&i64, &Syncs)| {
            let total_ns = syncs.of_ranks.values().map(IntervalUnion::length);
            let total_ns = total_ns.fold(0, u64::saturating_add);
            let costs = Distribution { total_ns, ..syncs.costs.distribution() };
            (reader.value_label(SYNC_MODE, *mode).into_owned(), costs)
        };
        let efficiency = self.efficiency(duration_ns);
        Summary {
            duration_ns,
            workers: self.running_ns.len() as u64,
            timed_ns: self.timed_ns.map_or(0, |(begin_ns, end_ns)| end_ns - begin_ns),
            efficiency,
            limited_by: efficiency.lower_factor(),
            ranks: self.ranks(reader),
            tasks: self.tasks.iter().map(task).collect(),
            states: self.states.iter().map(state).collect(),
            syncs: self.syncs.iter().map(sync).collect(),
            messages: self.messages(reader),
            critical_path: None,
            lost,
            simulation: reader.simulation().map(str::to_owned),
        }
    }

    fn efficiency(&self, duration_ns: u64) -> Efficiency {
        let loads = self.loads(duration_ns);
        let most = loads.iter().copied().fold(0.0, f64::max);
        let average = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Efficiency {
            parallel: share(average, duration_ns as f64),
            load_balance: share(average, most),
            communication: share(most, duration_ns as f64),
        }
    }

    /// Returns the computing time of each worker; that of each rank, for one of its cores, if some are slow.
    fn loads(&self, duration_ns: u64) -> Vec<f64> {
        if self.ranks.iter().all(|rank| rank.slow_ns == 0) {
            return self.running_ns.values().map(|&running| running as f64).collect();
        }
        let load = |rank: &Rank| {
            let running = rank.states_ns.get(&RUNNING).copied().unwrap_or_default() as f64;
            let cores = self.cores_of_a_rank() as f64;
            ((running + rank.slow_ns as f64) / cores).min(duration_ns as f64)
        };
        self.ranks.iter().map(load).collect()
    }

    fn ranks(&self, reader: &Reader) -> Vec<RankSummary> {
        let with_label =
            |(state, time): (&u32, &u64)| (reader.state_label(*state).into_owned(), *time);
        let by_cause = |(cause, time): (&i64, &u64)| {
            (reader.value_label(IDLE_BECAUSE, *cause).into_owned(), *time)
        };
        let summary = |rank: &Rank| RankSummary {
            states_ns: rank.states_ns.iter().map(with_label).collect(),
            idle_ns: rank.idle_ns.iter().map(by_cause).collect(),
            tasks: rank.tasks,
            rounds: rank.rounds,
            sync_ns: rank.synced.length(),
            ..RankSummary::default()
        };
        let mut ranks: Vec<RankSummary> = self.ranks.iter().map(summary).collect();
        for (&(from, to), &(_, bytes)) in &self.pairs {
            grow(&mut ranks[from as usize].bytes_sent, bytes);
            grow(&mut ranks[to as usize].bytes_received, bytes);
        }
        ranks
    }

    fn messages(&self, reader: &Reader) -> MessageSummary {
        let pair = |(&(from, to), &(messages, bytes)): (&(u32, u32), &(u64, u64))| PairSummary {
            from,
            to,
            messages,
            bytes,
        };
        let kind = |(kind, count): (&i64, &u64)| {
            (reader.value_label(MESSAGE_KIND, *kind).into_owned(), *count)
        };
        let pairs: Vec<PairSummary> = self.pairs.iter().map(pair).collect();
        let latency: Distribution = self.latency.distribution();
        MessageSummary {
            kinds: self.kinds.iter().map(kind).collect(),
            control: self
                .control
                .iter()
                .map(|(kind, count)| ((*kind).to_owned(), *count))
                .collect(),
            bytes: pairs.iter().fold(0, |sum: u64, pair| sum.saturating_add(pair.bytes)),
            latency,
            pairs,
        }
    }
}

/// Returns a number for the worker of a row: its cpu, or another number if it has none.
fn worker(row: usize, cpu: u32) -> u64 {
    if cpu == 0 { u64::from(u32::MAX) + row as u64 } else { cpu.into() }
}

/// Adds to a sum of numbers of a trace, which may be anything.
fn grow(sum: &mut u64, by: u64) {
    *sum = sum.saturating_add(by);
}
