//! Records of all workers in one order.
//!
//! The order is by time, then by worker, then as recorded.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap};
use std::iter::{self, Peekable};
use std::ops::Range;

use super::entry::Entry;
use super::in_order::{InOrder, OfWorker};
use super::layout::{Layout, check_time};
use super::records::Records;
use crate::error::{Error, Result};
use crate::event::Record;
use crate::recorder::{FlushedRecords, MAIN_STREAM};
use crate::{Event, LabelId};

/// All records of the trace, checked against the layout, and their order.
#[derive(Debug)]
pub(super) struct Timeline<'a> {
    records: Records<'a>,
    workers: Vec<InOrder>,
    layout: Layout,
    /// Times of which each worker has records.
    recorded: Vec<Range<u64>>,
    counters: BTreeSet<LabelId>,
    has_control: bool,
}

impl<'a> Timeline<'a> {
    /// Finds the order of the records.
    ///
    /// **Errors**: a record whose worker, rank or time the layout does not have.
    pub(super) fn new(
        flushed: &'a FlushedRecords,
        mut layout: Layout,
        kept: Option<Range<u64>>,
    ) -> Result<Self> {
        // All traces of a run of several processes have the same rows, whatever is recorded.
        let mains = flushed.workers.get(&MAIN_STREAM).filter(|_| layout.process().is_none());
        if let Some(records) = mains {
            let ranks = records.records().filter_map(|record| record.event.group());
            layout.add_mains(ranks.max().unwrap_or(0))?;
        }
        let streams = layout.streams() as usize;
        let mut recorded = vec![kept.unwrap_or(0..u64::MAX); streams];
        let mut chunks = vec![Default::default(); streams];
        for (&stream, records) in &flushed.workers {
            if stream == MAIN_STREAM && mains.is_none() {
                continue;
            }
            let worker = if stream == MAIN_STREAM { layout.workers } else { stream };
            if worker >= layout.streams() || (stream != MAIN_STREAM && layout.is_main(stream)) {
                return Err(Error::WorkerOutOfRange { worker, workers: layout.workers });
            }
            layout.end_ns = layout.end_ns.max(records.last_ns);
            let from_ns = &mut recorded[worker as usize].start;
            *from_ns = (*from_ns).max(records.from_ns);
            chunks[worker as usize] = records.chunks.as_slice();
        }
        let records = Records::new(&chunks)?;
        let (mut counters, mut has_control) = (BTreeSet::new(), false);
        for (_, worker, record) in records.all() {
            match record.event {
                Event::Counter { label, .. } => _ = counters.insert(label),
                Event::Send { kind, .. } => has_control |= kind.is_control(),
                Event::ReceiveControl { .. } => has_control = true,
                _ => {}
            }
            check_ranks(worker, record, &layout)?;
            check_time(record.time_ns)?;
            layout.end_ns = layout.end_ns.max(record.time_ns);
        }
        let workers = (0..streams).map(|worker| InOrder::new(&records, worker)).collect();
        Ok(Self { records, workers, layout, recorded, counters, has_control })
    }

    /// Returns the times of which a worker has records, if it was there.
    pub(super) fn recorded(&self, worker: u32) -> Range<u64> {
        let Range { start, end } = self.recorded[worker as usize].clone();
        start.min(self.layout.end_ns)..end.min(self.layout.end_ns)
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout.clone()
    }

    pub(super) fn records(&self) -> &Records<'a> {
        &self.records
    }

    /// Returns the names of the numbers of the program.
    pub(super) fn counters(&self) -> &BTreeSet<LabelId> {
        &self.counters
    }

    /// Returns `true` if there are control messages.
    pub(super) fn has_control(&self) -> bool {
        self.has_control
    }

    /// Returns the number of entries of a worker.
    pub(super) fn entry_count(&self, worker: u32) -> usize {
        self.records.count_of(worker as usize) + self.workers[worker as usize].begins.len()
    }

    /// Iterates over the entries of a worker.
    pub(super) fn entries_of(&self, worker: u32) -> OfWorker<'_> {
        OfWorker::new(&self.records, worker, &self.workers[worker as usize])
    }

    /// Iterates over the slices of a worker, by their begin.
    pub(super) fn slices_of(&self, worker: u32) -> impl Iterator<Item = &'a Record> {
        let begins = self.workers[worker as usize].begins.iter();
        begins.map(|begin| self.records.get(*begin).1)
    }

    /// Iterates over the entries of all workers, by time, worker, and as recorded.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut workers: Vec<_> =
            (0..self.layout.streams()).map(|worker| self.entries_of(worker).peekable()).collect();
        let time_ns = |worker: &mut Peekable<OfWorker<'_>>| worker.peek().map(|e| e.time_ns());
        let first = (0u32..).zip(&mut workers);
        let mut heads: BinaryHeap<_> = first
            .filter_map(|(number, worker)| Some(Reverse((time_ns(worker)?, number))))
            .collect();
        iter::from_fn(move || {
            let mut head = heads.peek_mut()?;
            let worker = &mut workers[head.0.1 as usize];
            let entry = worker.next();
            match time_ns(worker) {
                Some(time_ns) => head.0.0 = time_ns,
                None => _ = PeekMut::pop(head),
            }
            entry
        })
    }
}

fn check_ranks(worker: u32, record: &Record, layout: &Layout) -> Result<()> {
    let (time_ns, ranks) = (record.time_ns, layout.ranks);
    let mut all = record.event.ranks().into_iter().flatten();
    if let Some(rank) = all.find(|&rank| rank >= ranks) {
        return Err(Error::RankOutOfRange { rank, ranks, worker, time_ns });
    }
    match (record.event, record.event.group()) {
        // Data that a rank gets from another process.
        (Event::Send { peer, .. }, _) if layout.is_here(peer) => Ok(()),
        (_, Some(rank)) if !layout.is_here(rank) => {
            Err(Error::RankOfOtherProcess { rank, worker, time_ns })
        }
        _ => Ok(()),
    }
}
