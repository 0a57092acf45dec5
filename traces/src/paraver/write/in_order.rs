//! Order of the records of one worker.

use std::iter::Peekable;
use std::slice;

use super::entry::{Edge, Entry};
use super::records::{AsRecorded, RecordIndex, Records};
use crate::event::Record;

/// Order of the records of one worker. A slice is recorded at its end, after all that is inside it,
/// and so has two places in the order.
#[derive(Debug)]
pub(super) struct InOrder {
    /// Records by time, if they were not recorded in that order.
    sorted: Option<Vec<RecordIndex>>,
    /// Slices by begin; of those that begin together, the one that ends last.
    pub(super) begins: Vec<RecordIndex>,
}

impl InOrder {
    pub(super) fn new(records: &Records<'_>, worker: usize) -> Self {
        let time_ns = |place: &RecordIndex| records.get(*place).1.time_ns;
        let all = || records.of_worker(worker);
        let sorted = (!all().is_sorted_by_key(|(_, record)| record.time_ns)).then(|| {
            let mut sorted: Vec<RecordIndex> = all().map(|(place, _)| place).collect();
            sorted.sort_by_key(time_ns);
            sorted
        });
        let is_slice = |record: &Record| record.event.began_ns().is_some();
        let slices = all().filter(|(_, record)| is_slice(record)).count();
        let mut begins = Vec::with_capacity(slices);
        match &sorted {
            None => all().for_each(|(place, record)| add(&mut begins, records, place, record)),
            Some(sorted) => {
                let sorted = sorted.iter().map(|place| (*place, records.get(*place).1));
                sorted.for_each(|(place, record)| add(&mut begins, records, place, record));
            }
        }
        Self { sorted, begins }
    }
}

/// Adds a record that is not before the others, if it is a slice.
fn add(begins: &mut Vec<RecordIndex>, records: &Records<'_>, place: RecordIndex, record: &Record) {
    if record.event.began_ns().is_none() {
        return;
    }
    let began_ns = began(record);
    let is_before = |place: &RecordIndex| began(records.get(*place).1) < began_ns;
    if begins.last().is_none_or(is_before) {
        begins.push(place);
    } else {
        begins.insert(begins.partition_point(is_before), place);
    }
}

/// Returns the begin of a slice.
fn began(record: &Record) -> u64 {
    record.event.began_ns().unwrap_or(record.time_ns).min(record.time_ns)
}

/// Entries of one worker in their order: by time, begins first.
pub(super) struct OfWorker<'a> {
    worker: u32,
    begins: Peekable<Begins<'a>>,
    ends: Peekable<Ends<'a>>,
}

/// Slices with their begins.
struct Begins<'a> {
    records: &'a Records<'a>,
    places: slice::Iter<'a, RecordIndex>,
}

impl<'a> Iterator for Begins<'a> {
    type Item = (u64, &'a Record);

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.get(*self.places.next()?).1;
        Some((began(record), record))
    }
}

/// Records by time.
enum Ends<'a> {
    AsRecorded(AsRecorded<'a>),
    Sorted(&'a Records<'a>, slice::Iter<'a, RecordIndex>),
}

impl<'a> Iterator for Ends<'a> {
    type Item = &'a Record;

    fn next(&mut self) -> Option<&'a Record> {
        match self {
            Self::AsRecorded(records) => records.next(),
            Self::Sorted(records, places) => Some(records.get(*places.next()?).1),
        }
    }
}

impl<'a> OfWorker<'a> {
    pub(super) fn new(records: &'a Records<'a>, worker: u32, order: &'a InOrder) -> Self {
        let begins = Begins { records, places: order.begins.iter() }.peekable();
        let ends = match &order.sorted {
            None => Ends::AsRecorded(records.cursor_of(worker as usize)),
            Some(sorted) => Ends::Sorted(records, sorted.iter()),
        };
        Self { worker, begins, ends: ends.peekable() }
    }
}

impl<'a> Iterator for OfWorker<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let worker = self.worker;
        // No slice begins after the last record.
        let end_ns = self.ends.peek()?.time_ns;
        if let Some((_, record)) = self.begins.next_if(|(began_ns, _)| *began_ns <= end_ns) {
            return Some(Entry { worker, edge: Edge::Begin, record });
        }
        let record = self.ends.next()?;
        let is_slice = record.event.began_ns().is_some();
        let edge = if is_slice { Edge::End } else { Edge::Moment };
        Some(Entry { worker, edge, record })
    }
}
