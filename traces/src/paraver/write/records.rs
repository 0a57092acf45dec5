//! Records of all workers, each with a number in 32 bits.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use crate::chunk::{CHUNK_RECORDS, Chunk};
use crate::error::{Error, Result};
use crate::event::Record;

/// Index of a record: its chunk, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordIndex(u32);

/// Bits of the place in a chunk.
const BITS: u32 = 11;

const _: () = assert!(CHUNK_RECORDS <= 1 << BITS, "a chunk has more records than a place can tell");

/// Largest number of chunks.
const MOST: usize = 1 << (u32::BITS - BITS);

/// Records of all workers.
#[derive(Debug)]
pub(super) struct Records<'a> {
    chunks: Vec<(u32, &'a Chunk)>,
    /// Chunks of each worker.
    of_workers: Vec<Range<usize>>,
}

impl<'a> Records<'a> {
    /// Numbers the records in the chunks of each worker.
    ///
    /// **Errors**: more chunks than have a number.
    pub(super) fn new(chunks_of: &[&'a [Arc<Chunk>]]) -> Result<Self> {
        let (mut chunks, mut of_workers) = (Vec::new(), Vec::new());
        for (worker, of_worker) in (0..).zip(chunks_of) {
            let first = chunks.len();
            chunks.extend(of_worker.iter().map(|chunk| (worker, &**chunk)));
            of_workers.push(first..chunks.len());
        }
        if chunks.len() > MOST {
            return Err(Error::TooManyChunks { chunks: chunks.len(), limit: MOST });
        }
        Ok(Self { chunks, of_workers })
    }

    /// Returns a record and its worker.
    pub(super) fn get(&self, RecordIndex(place): RecordIndex) -> (u32, &'a Record) {
        let (worker, chunk) = self.chunks[(place >> BITS) as usize];
        match chunk.get((place & ((1 << BITS) - 1)) as usize) {
            Some(record) => (worker, record),
            None => unreachable!("a place is that of a record"),
        }
    }

    /// Iterates over the records of a worker, as recorded.
    pub(super) fn of_worker(
        &self,
        worker: usize,
    ) -> impl Iterator<Item = (RecordIndex, &'a Record)> {
        let range = self.of_workers[worker].clone();
        self.in_chunks(range).map(|(place, _, record)| (place, record))
    }

    /// Returns the number of records of a worker.
    pub(super) fn count_of(&self, worker: usize) -> usize {
        self.chunks[self.of_workers[worker].clone()].iter().map(|(_, chunk)| chunk.len()).sum()
    }

    /// Iterates over the records of a worker, as recorded.
    pub(super) fn cursor_of(&self, worker: usize) -> AsRecorded<'_> {
        let mut chunks = self.chunks[self.of_workers[worker].clone()].iter();
        AsRecorded { chunk: chunks.next().map(|(_, chunk)| *chunk), chunks, next: 0 }
    }

    /// Iterates over all records with their workers, as recorded by each.
    pub(super) fn all(&self) -> impl Iterator<Item = (RecordIndex, u32, &'a Record)> {
        self.in_chunks(0..self.chunks.len())
    }

    fn in_chunks(
        &self,
        range: Range<usize>,
    ) -> impl Iterator<Item = (RecordIndex, u32, &'a Record)> {
        let first = range.start as u32;
        (first..).zip(&self.chunks[range]).flat_map(|(number, &(worker, chunk))| {
            let places = (number << BITS..).map(RecordIndex);
            places.zip(chunk.iter()).map(move |(place, record)| (place, worker, record))
        })
    }
}

/// Records of one worker, as recorded.
pub(super) struct AsRecorded<'a> {
    chunk: Option<&'a Chunk>,
    chunks: slice::Iter<'a, (u32, &'a Chunk)>,
    /// Place in the chunk.
    next: usize,
}

impl<'a> Iterator for AsRecorded<'a> {
    type Item = &'a Record;

    fn next(&mut self) -> Option<&'a Record> {
        loop {
            if let Some(record) = self.chunk?.get(self.next) {
                self.next += 1;
                return Some(record);
            }
            (self.chunk, self.next) = (self.chunks.next().map(|(_, chunk)| *chunk), 0);
        }
    }
}
