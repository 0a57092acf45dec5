//! Several pieces of one run as one trace.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::iter::Peekable;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::vec;

use super::begin::{begin_comment, begin_of};
use super::halves::{self, Key};
use super::joined::{Arrival, Joined};
use super::merged_labels::MergedLabels;
use super::new_trace::NewTrace;
use super::piece_clock::PieceClock;
use super::pieces::{BATCHES, Extent, Line, Piece, send};
use super::prv_file::PrvFile;
use crate::State;
use crate::error::{Error, Result};
use crate::paraver::clock_comment::reading_of;
use crate::paraver::partial::Partial;
use crate::paraver::{Communication, EXACT_LIMIT, EventKind, Reader, Record, TraceFiles};

const NOT_CREATED: u32 = State::NotCreated.number();
const NOT_RECORDED: u32 = State::NotRecorded.number();
/// Event types of an edge of the graph.
const EDGE: [u32; 2] = [EventKind::TaskReady.number(), EventKind::ReadyBy.number()];

/// End of the comments that count halves of messages: it is not true of a later merge.
const ALONE: &str = " in none of these traces";

/// Writes the traces at `prvs`, pieces of one run, as the trace `out`, whose name ends in `.prv`, with the
/// names of the first and the labels of all.
///
/// Each piece has other rows, such as those of its process, or other times, such as what
/// [`cut`](super::cut()) has made. The times of processes are corrected by their readings of the clock of
/// process 0, and halves of messages joined: a receive that would still precede its send is moved to it.
/// Comments have the largest error of the clocks, the number of such receives, and that of halves without
/// another, which stay events. A row that no piece shows at a time is `Not recorded` between two
/// pieces, and `Not created` before the first and after the last.
///
/// **Errors**: those of the files, and [`BadRecord`](Error::BadRecord) at the first line that Paraver
/// would refuse or misread. [`NoPieces`](Error::NoPieces) without a trace. [`OtherObjects`](Error::OtherObjects) and [`RowInTwo`](Error::RowInTwo) for
/// traces that are not pieces of one run, [`TimeOutOfRange`](Error::TimeOutOfRange) for one that
/// is too long. [`SameFile`](Error::SameFile) and [`NotPrv`](Error::NotPrv) for a name that `out`
/// cannot have. An earlier trace of that name then stays.
pub fn merge(prvs: &[impl AsRef<Path>], out: impl AsRef<Path>) -> Result<TraceFiles> {
    let prvs: Vec<&Path> = prvs.iter().map(AsRef::as_ref).collect();
    let first = *prvs.first().ok_or(Error::NoPieces)?;
    let new = NewTrace::new(out.as_ref(), &prvs)?;
    let mut pieces = prvs.iter().map(|prv| survey(first, prv)).collect::<Result<Vec<Piece>>>()?;
    let base_ns = pieces.iter().map(|piece| piece.clock.of_run(0)).min().unwrap_or_default();
    pieces.iter_mut().for_each(|piece| piece.clock.set_base(base_ns));
    let ends = pieces.iter().map(|piece| piece.clock.time(piece.duration_ns));
    let duration_ns = ends.max().unwrap_or_default();
    if duration_ns > EXACT_LIMIT {
        return Err(Error::TimeOutOfRange { time_ns: duration_ns, limit: EXACT_LIMIT });
    }
    let like = Reader::open(first)?;
    let rows = Rows::of(&pieces, duration_ns, &like)?;
    let labels = MergedLabels::of(&prvs)?;
    let joined = Joined::of(&pieces);
    let path = new.prv();
    let records = Partial::fill(path.clone(), |out| {
        let mut out = PrvFile::begin(out, &like, duration_ns).map_err(Error::io(&path))?;
        if let Ok(base_ns @ 1..) = u64::try_from(base_ns) {
            out.comment(begin_comment(base_ns).as_bytes()).map_err(Error::io(&path))?;
        }
        for comment in comments(&pieces, &joined) {
            out.comment(comment.as_bytes()).map_err(Error::io(&path))?;
        }
        let mut merge = Merge {
            rows,
            ranks: like.ranks_of_rows(),
            levels: like.levels(),
            labels: &labels,
            values: HashMap::new(),
            messages: joined.messages.into_iter().peekable(),
            arrivals: joined.arrivals.into_iter().peekable(),
            unjoined: joined.unjoined,
            of_processes: pieces.iter().any(|piece| piece.clock.error_ns().is_some()),
            written: HashSet::new(),
            out,
            path: &path,
        };
        thread::scope(|scope| {
            let source = |(index, piece): (usize, &Piece)| {
                let (sender, batches) = mpsc::sync_channel(BATCHES);
                let prv = piece.path.clone();
                scope.spawn(move || send(&prv, sender));
                Source { index, clock: piece.clock, batches, batch: Vec::new().into_iter() }
            };
            merge.run(pieces.iter().enumerate().map(source).collect())
        })
    })?;
    new.publish(records, &like, labels.text())
}

/// Returns comments about the clocks of the pieces, and about messages between them.
fn comments(pieces: &[Piece], joined: &Joined) -> Vec<String> {
    let mut comments = Vec::new();
    let errors: Vec<u64> = pieces.iter().filter_map(|piece| piece.clock.error_ns()).collect();
    if let Some(most_ns) = errors.iter().max() {
        comments.push(format!("clocks of all processes corrected, within {most_ns} ns"));
        let unread = pieces.len() - errors.len();
        if unread > 0 {
            comments.push(format!(
                "{unread} traces have no reading of the clock, and are as they were"
            ));
        }
    }
    let &Joined { sends_alone, receives_alone, moved, most_moved_ns, .. } = joined;
    if moved > 0 {
        comments.push(format!(
            "{moved} receives preceded their send, by {most_moved_ns} ns at most, and were moved to it"
        ));
    }
    let alone = [(sends_alone, "sends", "receive"), (receives_alone, "receives", "send")];
    for (count, halves, other) in alone.into_iter().filter(|(count, ..)| *count > 0) {
        comments.push(format!("{count} {halves} have their {other}{ALONE}"));
    }
    comments
}

/// Reads a piece once.
fn survey(first: &Path, prv: &Path) -> Result<Piece> {
    let expected = Reader::open(first)?;
    let mut reader = Reader::open(prv)?;
    if reader.objects_text() != expected.objects_text() {
        return Err(Error::OtherObjects {
            first: first.to_owned(),
            expected: expected.objects_text().to_owned(),
            path: prv.to_owned(),
            found: reader.objects_text().to_owned(),
        });
    }
    Piece::survey(&mut reader)
}

/// Pieces that show each row, and states of the times that none shows.
struct Rows {
    /// Piece and row of each pair whose states are kept.
    kept: HashSet<(usize, usize)>,
    /// States to be added, the last first.
    missing: Vec<Record<'static>>,
}

impl Rows {
    fn of(pieces: &[Piece], duration_ns: u64, like: &Reader) -> Result<Self> {
        let mut rows = Self { kept: HashSet::new(), missing: Vec::new() };
        for row in 0..like.ranks_of_rows().len() {
            let shifted = |(index, piece): (usize, &Piece)| {
                let extent = piece.rows[row]?;
                let [begin_ns, end_ns] =
                    [extent.begin_ns, extent.end_ns].map(|time| piece.clock.time(time));
                Some((index, Extent { begin_ns, end_ns, ..extent }))
            };
            let shown: Vec<_> = pieces.iter().enumerate().filter_map(shifted).collect();
            rows.add(row, shown, duration_ns, pieces, like)?;
        }
        let begin = |state: &Record<'_>| match state {
            Record::State { begin_ns, .. } => *begin_ns,
            _ => 0,
        };
        rows.missing.sort_by_key(|state| std::cmp::Reverse(begin(state)));
        Ok(rows)
    }

    fn add(
        &mut self,
        row: usize,
        shown: Vec<(usize, Extent)>,
        duration_ns: u64,
        pieces: &[Piece],
        like: &Reader,
    ) -> Result<()> {
        let Some((_, any)) = shown.first().copied() else { return Ok(()) };
        let (mut shown, unused): (Vec<_>, Vec<_>) =
            shown.into_iter().partition(|(_, extent)| extent.is_used);
        for (index, extent) in unused {
            let overlaps = |(_, other): &(usize, Extent)| {
                extent.begin_ns < other.end_ns && other.begin_ns < extent.end_ns
            };
            if !shown.iter().any(overlaps) {
                shown.push((index, extent));
            }
        }
        shown.sort_by_key(|(index, extent)| (extent.begin_ns, extent.end_ns, *index));
        let mut reached = (0, NOT_CREATED, any.cpu, 0);
        for (index, extent) in shown {
            let Extent { begin_ns, end_ns, cpu, .. } = extent;
            let (until_ns, state, before_cpu, before) = reached;
            if begin_ns < until_ns {
                let [first, second] = [before, index].map(|index| pieces[index].path.clone());
                let row = like.row_name(row);
                return Err(Error::RowInTwo { first, until_ns, second, from_ns: begin_ns, row });
            }
            let cpu_of_hole = if until_ns == 0 { cpu } else { before_cpu };
            self.fill(row, cpu_of_hole, (until_ns, begin_ns), state);
            self.kept.insert((index, row));
            reached = (end_ns, NOT_RECORDED, cpu, index);
        }
        let (until_ns, _, cpu, _) = reached;
        self.fill(row, cpu, (until_ns, duration_ns), NOT_CREATED);
        Ok(())
    }

    fn fill(&mut self, row: usize, cpu: u32, (begin_ns, end_ns): (u64, u64), state: u32) {
        if begin_ns < end_ns {
            self.missing.push(Record::State { row, cpu, begin_ns, end_ns, state });
        }
    }
}

/// Lines of a piece that are still to come.
struct Source {
    index: usize,
    clock: PieceClock,
    batches: Receiver<Result<Vec<Line>>>,
    batch: vec::IntoIter<Line>,
}

impl Source {
    fn next(&mut self) -> Result<Option<Line>> {
        loop {
            if let Some(line) = self.batch.next() {
                return Ok(Some(line));
            }
            match self.batches.recv() {
                Ok(batch) => self.batch = batch?.into_iter(),
                Err(_) => return Ok(None),
            }
        }
    }
}

struct Merge<'a, W> {
    rows: Rows,
    /// Rank of each row.
    ranks: &'a [u32],
    levels: HashSet<u32>,
    labels: &'a MergedLabels,
    /// Value that each row has, of each event type that lasts.
    values: HashMap<(usize, u32), i64>,
    /// Messages between pieces, and their arrivals, that are still to come.
    messages: Peekable<vec::IntoIter<Communication>>,
    arrivals: Peekable<vec::IntoIter<Arrival>>,
    /// Keys of the halves of messages that stay.
    unjoined: HashSet<Key>,
    /// `true` if pieces are of several processes, each of which numbers its tasks.
    of_processes: bool,
    /// Comments that were written.
    written: HashSet<Vec<u8>>,
    out: PrvFile<W>,
    path: &'a Path,
}

impl<W: Write> Merge<'_, W> {
    /// Writes the lines of all sources by their first time.
    fn run(&mut self, mut sources: Vec<Source>) -> Result<()> {
        let mut heads = Vec::new();
        for source in &mut sources {
            heads.push(self.advance(source)?);
        }
        loop {
            let times = heads
                .iter()
                .enumerate()
                .filter_map(|(index, head)| head.as_ref().map(|head| (first_time(head), index)));
            let next = times.min();
            let next_ns = next.map_or(u64::MAX, |(time, _)| time);
            self.joined_before(next_ns)?;
            self.missing_before(next_ns)?;
            let Some((_, index)) = next else { return Ok(()) };
            let head = self.advance(&mut sources[index])?;
            let Some(line) = std::mem::replace(&mut heads[index], head) else { continue };
            self.take(&sources[index], line)?;
        }
    }

    /// Writes the messages between pieces, and their arrivals, up to before a time.
    fn joined_before(&mut self, time_ns: u64) -> Result<()> {
        loop {
            let arrival_ns = self.arrivals.peek().map_or(u64::MAX, |arrival| arrival.time_ns);
            let message_ns =
                self.messages.peek().map_or(u64::MAX, |message| message.logical_send_ns);
            let now = arrival_ns.min(message_ns);
            if now >= time_ns {
                return Ok(());
            }
            self.missing_before(now)?;
            if let Some(arrival) = self.arrivals.next_if(|arrival| arrival.time_ns == now) {
                let Arrival { time_ns, row, cpu, values } = arrival;
                let event = Record::Event { row, cpu, time_ns, values: &values };
                self.out.record(&event).map_err(Error::io(self.path))?;
            } else if let Some(message) = self.messages.next() {
                let record = Record::Communication(message);
                self.out.record(&record).map_err(Error::io(self.path))?;
            }
        }
    }

    /// Writes the states that no piece has and that begin up to a time.
    fn missing_before(&mut self, time_ns: u64) -> Result<()> {
        while let Some(state @ Record::State { begin_ns, .. }) = self.rows.missing.last()
            && *begin_ns <= time_ns
        {
            self.out.record(state).map_err(Error::io(self.path))?;
            self.rows.missing.pop();
        }
        Ok(())
    }

    /// Returns the next record of a source on the clock of the new trace, past lines without a time.
    fn advance(&mut self, source: &mut Source) -> Result<Option<Line>> {
        loop {
            let written = match source.next()? {
                None => return Ok(None),
                Some(Line::Comment(text)) if is_of_piece(&text) => Ok(()),
                // Pieces of one run describe it alike.
                Some(Line::Comment(text)) if self.written.contains(&text) => Ok(()),
                Some(Line::Comment(text)) => {
                    let written = self.out.comment(&text);
                    self.written.insert(text);
                    written
                }
                // All pieces declare the same ones.
                Some(Line::Communicator(line)) if source.index == 0 => self.out.line(&line),
                Some(Line::Communicator(_)) => Ok(()),
                Some(line) => return Ok(Some(shifted(line, source.clock))),
            };
            written.map_err(Error::io(self.path))?;
        }
    }

    fn take(&mut self, source: &Source, line: Line) -> Result<()> {
        let written = match line {
            Line::Event { row, cpu, time_ns, mut values } => {
                let is_first = time_ns == source.clock.time(0) && time_ns > 0;
                halves::remove(&mut values, self.ranks[row], &self.unjoined);
                if self.of_processes {
                    // They would lead from the tasks of one process to those of another.
                    values.retain(|(kind, _)| !EDGE.contains(kind));
                }
                self.labels.apply(source.index, &mut values);
                values.retain(|(kind, value)| {
                    // A piece sets the values again that last from before it.
                    let is_level = self.levels.contains(kind);
                    let before = is_level.then(|| self.values.insert((row, *kind), *value));
                    !(is_first && before == Some(Some(*value)))
                });
                self.out.record(&Record::Event { row, cpu, time_ns, values: &values })
            }
            Line::Record(Record::State { row, .. })
                if !self.rows.kept.contains(&(source.index, row)) =>
            {
                Ok(())
            }
            // Nothing of it is left on another clock.
            Line::Record(Record::State { begin_ns, end_ns, .. }) if begin_ns == end_ns => Ok(()),
            Line::Record(record) => self.out.record(&record),
            Line::Comment(_) | Line::Communicator(_) => Ok(()),
        };
        written.map_err(Error::io(self.path))
    }
}

fn first_time(line: &Line) -> u64 {
    match line {
        Line::Event { time_ns, .. } => *time_ns,
        Line::Record(record) => record.first_ns(),
        Line::Comment(_) | Line::Communicator(_) => 0,
    }
}

/// Returns `true` for a comment about a piece, which is not true of the new trace.
fn is_of_piece(comment: &[u8]) -> bool {
    let is_of_halves = comment.ends_with(ALONE.as_bytes());
    begin_of(comment).is_some() || reading_of(comment).is_some() || is_of_halves
}

fn shifted(mut line: Line, clock: PieceClock) -> Line {
    match &mut line {
        Line::Event { time_ns, .. } => *time_ns = clock.time(*time_ns),
        Line::Record(record) => record.map_times(|time| clock.time(time)),
        Line::Comment(_) | Line::Communicator(_) => {}
    }
    line
}
