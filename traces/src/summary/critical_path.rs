//! Critical path of a trace: the longest chain of slices in which each task has made the next one
//! ready, and of messages that a task on the chain has waited for.
//!
//! The lengths grow as the records are read. Each task has the length of the longest chain that ends in
//! it so far: that of the chain which it has waited for, and its own time since. Where it makes another
//! task ready, its chain up to then becomes a link, from which the chain of the other goes on. Links
//! are never changed, so that the types on the longest chain are found at the end by going back.
//!
//! Records of one time have no order among workers, as tasks may take no time where it is virtual:
//! edges of one time are followed from the first task to the last.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::mem;

use serde::Serialize;

use crate::paraver::{Communication, EventKind, Reader, Record};

const TASK_ID: u32 = EventKind::TaskId.number();
const TASK_TYPE: u32 = EventKind::TaskType.number();
const TASK_READY: u32 = EventKind::TaskReady.number();
const READY_BY: u32 = EventKind::ReadyBy.number();

/// Number of tasks and messages among which a trace with edges has one.
const MOST_WITHOUT: usize = 1 << 16;

/// Name of the messages on the path, beside those of task types.
const MESSAGES: &str = "messages";

/// Longest chain of slices and messages in which each has made the next one possible.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CriticalPath {
    /// Sum of the times of its slices and messages.
    pub length_ns: u64,
    /// Time from the begin of its first slice to the end of its last one.
    pub span_ns: u64,
    /// Slices on the path, by the name of the task type.
    pub tasks: BTreeMap<String, PathShare>,
    /// Messages on the path.
    pub messages: PathShare,
    /// Name of the task type, or `messages`, which has most of its time.
    pub most: String,
}

/// Part of the critical path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PathShare {
    /// Number of parts: of a task one for each time that another has made it ready.
    pub count: u64,
    /// Sum of their times.
    pub total_ns: u64,
}

/// Kind of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Time of a task with this type.
    Task(i64),
    Message,
}

/// Number of a link, from 1; 0 for none.
type LinkId = u32;

/// Part of a chain, behind another.
#[derive(Clone, Copy, Debug)]
struct Link {
    before: LinkId,
    part: Part,
    ns: u64,
}

/// Chain up to a link.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    length_ns: u64,
    begin_ns: Option<u64>,
    last: LinkId,
}

/// Longest chain that ends in a task.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// Chain that it has waited for.
    before: Chain,
    label: i64,
    /// Time in slices since then.
    own_ns: u64,
    /// Begin of the slice that it is in.
    runs_since: Option<u64>,
    /// End of its last slice.
    ended_ns: u64,
    /// Link for its own time, and that time.
    link: Option<(LinkId, u64)>,
}

/// Message whose receive completes at a time.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Times of the logical and of the physical receive, by which arrivals are compared.
    times_ns: (u64, u64),
    chain: Chain,
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.times_ns == other.times_ns
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.times_ns.cmp(&other.times_ns)
    }
}

/// Messages to one rank.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    /// Messages whose receive is not complete yet.
    open: BinaryHeap<Reverse<Arrival>>,
    /// Last message whose receive is complete.
    last: Option<Arrival>,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    rank: usize,
    task: i64,
    by: i64,
}

/// Search for the critical path in the records of a trace, in their order.
///
/// **Memory** is that of the tasks, about 120 bytes each, of the links, 24 bytes for each edge and message,
/// and of the messages under way. A trace without edges among its first [`MOST_WITHOUT`] tasks and messages
/// is taken for one that has none: nothing more is kept unless an edge comes.
#[derive(Debug, Default)]
pub(super) struct PathSearch {
    ranks_of_rows: Vec<u32>,
    has_edges: bool,
    /// `true` after so many tasks without an edge that none is expected.
    is_idle: bool,
    now_ns: u64,
    /// Task and type that each row shows, and since when.
    rows: Vec<(i64, i64, u64)>,
    tasks: HashMap<i64, Task>,
    links: Vec<Link>,
    arrivals: Vec<Arrivals>,
    /// Edges and messages of the present time.
    edges: Vec<Edge>,
    sent: Vec<Communication>,
    /// The longest chain so far, its last task, and the end.
    longest: Option<(Chain, Link, u64)>,
}

impl PathSearch {
    pub(super) fn new(reader: &Reader) -> Self {
        let ranks_of_rows = reader.ranks_of_rows().to_vec();
        Self {
            rows: vec![(0, 0, 0); ranks_of_rows.len()],
            arrivals: vec![Arrivals::default(); reader.ranks() as usize],
            ranks_of_rows,
            ..Self::default()
        }
    }

    pub(super) fn record(&mut self, record: &Record<'_>) {
        let time_ns = record.first_ns();
        if time_ns != self.now_ns {
            self.end_moment();
            self.now_ns = time_ns;
        }
        match record {
            Record::State { .. } => {}
            Record::Event { row, values, .. } => self.event(*row, values),
            // No task has sent a control message, nor waits for one alone.
            Record::Communication(message) if !self.is_idle && message.control().is_none() => {
                self.sent.push(*message);
            }
            Record::Communication(_) => {}
        }
    }

    fn event(&mut self, row: usize, values: &[(u32, i64)]) {
        let mut rest = values;
        while let [(kind, value), others @ ..] = rest {
            rest = others;
            match *kind {
                TASK_ID => self.show(row, *value),
                TASK_TYPE => self.name(row, *value),
                TASK_READY => {
                    let by = others.first().filter(|(kind, _)| *kind == READY_BY);
                    let by = by.map_or(0, |(_, by)| *by);
                    let rank = self.ranks_of_rows[row] as usize;
                    self.has_edges = true;
                    self.resume();
                    self.edges.push(Edge { rank, task: *value, by });
                }
                _ => {}
            }
        }
    }

    /// Stops to keep tasks if there are many without an edge.
    fn pause(&mut self) {
        if !self.has_edges && self.tasks.len().max(self.links.len()) > MOST_WITHOUT {
            let (rows, ranks_of_rows) =
                (mem::take(&mut self.rows), mem::take(&mut self.ranks_of_rows));
            let arrivals = vec![Arrivals::default(); self.arrivals.len()];
            let now_ns = self.now_ns;
            *self =
                Self { is_idle: true, now_ns, rows, ranks_of_rows, arrivals, ..Self::default() };
        }
    }

    /// Goes on to keep tasks: those that run have run since their slice began.
    fn resume(&mut self) {
        if !mem::replace(&mut self.is_idle, false) {
            return;
        }
        for &(task, label, since_ns) in self.rows.iter().filter(|(task, ..)| *task != 0) {
            let new = Task { label, runs_since: Some(since_ns), ..Task::default() };
            self.tasks.insert(task, Task { before: Chain::from(since_ns), ..new });
        }
    }

    /// Ends the slice that a row shows, and begins the next.
    fn show(&mut self, row: usize, task: i64) {
        let now_ns = self.now_ns;
        let (ended, ..) = mem::replace(&mut self.rows[row], (task, 0, now_ns));
        if self.is_idle {
            return;
        }
        if let Some(ended) = self.tasks.get_mut(&ended)
            && let Some(since_ns) = ended.runs_since.take()
        {
            ended.own_ns = ended.own_ns.saturating_add(now_ns.saturating_sub(since_ns));
            ended.ended_ns = now_ns;
            let length_ns = ended.before.length_ns.saturating_add(ended.own_ns);
            if self.longest.is_none_or(|(chain, last, _)| length_ns > chain.length_ns + last.ns) {
                let part = Part::Task(ended.label);
                let last = Link { before: ended.before.last, part, ns: ended.own_ns };
                self.longest = Some((ended.before, last, now_ns));
            }
        }
        if task != 0 {
            let begun = self.tasks.entry(task).or_default();
            begun.runs_since = Some(now_ns);
            begun.before.begin_ns.get_or_insert(now_ns);
        }
    }

    /// Notes the type of the task that a row shows.
    fn name(&mut self, row: usize, label: i64) {
        let (shown, label_of_row, _) = &mut self.rows[row];
        *label_of_row = label;
        if let Some(shown) = self.tasks.get_mut(shown) {
            shown.label = label;
        }
    }

    /// Follows the edges and messages of the time that ends.
    fn end_moment(&mut self) {
        let now_ns = self.now_ns;
        for arrivals in &mut self.arrivals {
            while let Some(Reverse(first)) = arrivals.open.peek()
                && first.times_ns.0 <= now_ns
            {
                arrivals.last = arrivals.open.pop().map(|Reverse(first)| first);
            }
        }
        let mut edges = mem::take(&mut self.edges);
        if edges.len() > 1 {
            edges = from_first_to_last(&edges);
        }
        for edge in edges.drain(..) {
            self.follow(edge);
        }
        self.edges = edges;
        let mut sent = mem::take(&mut self.sent);
        for message in sent.drain(..) {
            self.send(&message);
        }
        self.sent = sent;
        self.pause();
    }

    fn follow(&mut self, Edge { rank, task, by }: Edge) {
        // The one that has not run since, so that something beside tasks has made it go on.
        let waits = if by == 0 { task } else { by };
        self.receive(rank, waits);
        if by != 0 && by != task {
            let chain = self.chain_of(by);
            self.go_on_from(task, chain);
        }
    }

    /// Lets a task that is in no slice go on from the last message to its rank since its last one, if that
    /// makes its chain longer.
    fn receive(&mut self, rank: usize, task: i64) {
        let Some(Task { runs_since: None, ended_ns, .. }) = self.tasks.get(&task) else {
            return;
        };
        let last = self.arrivals[rank].last.filter(|last| last.times_ns.1 > *ended_ns);
        if let Some(last) = last {
            self.go_on_from(task, last.chain);
        }
    }

    /// Lets a task go on from a chain if its own is not longer.
    fn go_on_from(&mut self, task: i64, chain: Chain) {
        let now_ns = self.now_ns;
        let waits = self.tasks.entry(task).or_default();
        let own_ns = waits.own_ns.saturating_add(waits.running_ns(now_ns));
        if chain.length_ns < waits.before.length_ns.saturating_add(own_ns) {
            return;
        }
        let begin_ns = chain.begin_ns.or(waits.before.begin_ns);
        waits.before = Chain { begin_ns, ..chain };
        waits.own_ns = 0;
        waits.link = None;
        waits.runs_since = waits.runs_since.map(|_| now_ns);
    }

    /// Returns the chain of a task up to now.
    fn chain_of(&mut self, task: i64) -> Chain {
        let now_ns = self.now_ns;
        let Some(task) = self.tasks.get_mut(&task) else {
            return Chain::default();
        };
        let ns = task.own_ns.saturating_add(task.running_ns(now_ns));
        let last = match task.link {
            _ if ns == 0 => task.before.last,
            Some((link, known_ns)) if known_ns == ns => link,
            _ => {
                let part = Part::Task(task.label);
                add(&mut self.links, Link { before: task.before.last, part, ns })
            }
        };
        task.link = (ns > 0).then_some((last, ns));
        let length_ns = task.before.length_ns.saturating_add(ns);
        Chain { length_ns, begin_ns: task.before.begin_ns, last }
    }

    /// Notes a message with the chain of the task that its sender runs.
    fn send(&mut self, message: &Communication) {
        let (sender, ..) = self.rows[message.sender];
        let before = if sender == 0 { Chain::default() } else { self.chain_of(sender) };
        let ns = message.receive_ns.saturating_sub(message.logical_send_ns);
        let last = add(&mut self.links, Link { before: before.last, part: Part::Message, ns });
        let length_ns = before.length_ns.saturating_add(ns);
        let begin_ns = before.begin_ns.or(Some(message.logical_send_ns));
        let times_ns = (message.logical_receive_ns, message.receive_ns);
        let rank = self.ranks_of_rows[message.receiver] as usize;
        let chain = Chain { length_ns, begin_ns, last };
        self.arrivals[rank].open.push(Reverse(Arrival { times_ns, chain }));
    }

    /// Returns the path; `None` if the trace has no edges.
    pub(super) fn finish(mut self, reader: &Reader) -> Option<CriticalPath> {
        self.end_moment();
        self.now_ns = reader.duration_ns();
        (0..self.rows.len()).for_each(|row| self.show(row, 0));
        if !self.has_edges {
            return None;
        }
        let mut path = CriticalPath::default();
        let Some((chain, last, end_ns)) = self.longest else {
            return Some(path);
        };
        path.span_ns = end_ns.saturating_sub(chain.begin_ns.unwrap_or(end_ns));
        let mut next = Some(last);
        while let Some(Link { before, part, ns }) = next {
            let share = match part {
                Part::Message => &mut path.messages,
                Part::Task(label) => {
                    let name = reader.value_label(TASK_TYPE, label).into_owned();
                    path.tasks.entry(name).or_default()
                }
            };
            share.count += 1;
            share.total_ns = share.total_ns.saturating_add(ns);
            path.length_ns = path.length_ns.saturating_add(ns);
            next = (before as usize).checked_sub(1).map(|index| self.links[index]);
        }
        let most = path.tasks.iter().max_by_key(|(_, share)| share.total_ns);
        let most = most.filter(|(_, share)| share.total_ns >= path.messages.total_ns);
        path.most = most.map_or_else(|| MESSAGES.to_owned(), |(name, _)| name.clone());
        Some(path)
    }
}

impl Chain {
    /// Creates an empty chain that begins at a time.
    fn from(begin_ns: u64) -> Self {
        Self { begin_ns: Some(begin_ns), ..Self::default() }
    }
}

impl Task {
    /// Returns the time of the slice that it is in.
    fn running_ns(&self, now_ns: u64) -> u64 {
        self.runs_since.map_or(0, |since_ns| now_ns.saturating_sub(since_ns))
    }
}

/// Adds a link. Beyond the numbers that there are, chains have their lengths but lack parts.
fn add(links: &mut Vec<Link>, link: Link) -> LinkId {
    let Ok(number) = LinkId::try_from(links.len() + 1) else {
        return 0;
    };
    links.push(link);
    number
}

/// Returns edges of one time in an order in which those to a task come before those from it.
fn from_first_to_last(edges: &[Edge]) -> Vec<Edge> {
    let mut to: HashMap<i64, Vec<usize>> = HashMap::new();
    for (index, edge) in edges.iter().enumerate() {
        to.entry(edge.task).or_default().push(index);
    }
    let (mut ordered, mut is_begun) = (Vec::with_capacity(edges.len()), vec![false; edges.len()]);
    // Edges whose tasks are still to be reached, each with `true` once those before it are.
    let mut stack = Vec::new();
    for first in 0..edges.len() {
        stack.push((first, false));
        while let Some((index, is_reached)) = stack.pop() {
            if is_reached {
                ordered.push(edges[index]);
            } else if !mem::replace(&mut is_begun[index], true) {
                stack.push((index, true));
                let before = to.remove(&edges[index].by).unwrap_or_default();
                stack.extend(before.into_iter().map(|before| (before, false)));
            }
        }
    }
    ordered
}
