//! Contents of a spill file.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::block::{HEAD, Head, Kind, MAGIC, MARK, VERSION};
use super::fields::Fields;
use super::records;
use crate::chunk::{CHUNK_RECORDS, ChunkWriter};
use crate::error::{Error, Result};
use crate::event::Record;
use crate::paraver::TraceInfo;
use crate::processes::{ClockReading, RunProcess, RunProcesses};
use crate::recorder::{FlushedRecords, Run};

/// Name in place of one that is lost.
const LOST: &str = "(lost)";

/// Contents of a spill file.
#[derive(Debug, Default)]
pub(crate) struct SpillFile {
    /// Description of the run, if it is not damaged.
    pub(super) info: Option<TraceInfo>,
    pub(super) names: Vec<Arc<str>>,
    pub(crate) records: FlushedRecords,
    pub(super) extent: Option<Range<u64>>,
    pub(super) run: Run,
    /// Number of places with damage.
    pub(super) damaged: u64,
}

impl SpillFile {
    /// Reads a file, without what is damaged. An end inside a block is that of a run that was killed.
    ///
    /// **Errors**: those of the file system; another file, or another version.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path))?;
        let len = file.metadata().map_err(Error::io(path))?.len();
        let mut input = Input { reader: BufReader::with_capacity(1 << 18, file), at: 0, len };
        let magic = input.take::<8>().map_err(Error::io(path))?;
        let version = input.take::<4>().map_err(Error::io(path))?;
        let (Some(MAGIC), Some(version)) = (magic, version) else {
            return Err(Error::NotSpill { path: path.to_owned() });
        };
        let version = u32::from_le_bytes(version);
        if version != VERSION {
            let path = path.to_owned();
            return Err(Error::SpillVersion { path, version, expected: VERSION });
        }
        let mut this = Self::default();
        this.blocks(&mut input).map_err(Error::io(path))?;
        Ok(this)
    }

    fn blocks(&mut self, input: &mut Input) -> io::Result<()> {
        let mut content = Vec::new();
        let mut was_whole = true;
        loop {
            let begin = input.at;
            let Some(head) = input.take::<HEAD>()? else { return Ok(()) };
            let head = Head::of(&head);
            if head.is_some_and(|head| u64::from(head.len) > input.len - input.at) && was_whole {
                // Either the last block, which is not complete, or one with a damaged length.
                if !input.has_mark_after(begin + 1)? {
                    return Ok(());
                }
            }
            let is_whole = match head.filter(|head| u64::from(head.len) <= input.len - input.at) {
                Some(head) => {
                    content.resize(head.len as usize, 0);
                    input.fill(&mut content)?;
                    head.kind(&content).is_some_and(|kind| self.block(kind, &content))
                }
                None => false,
            };
            if !is_whole {
                self.damaged += u64::from(was_whole);
                if !input.has_mark_after(begin + 1)? {
                    return Ok(());
                }
            }
            was_whole = is_whole;
        }
    }

    /// Adds a block. Returns `false` if its content is not of its kind.
    fn block(&mut self, kind: Kind, content: &[u8]) -> bool {
        let mut fields = Fields::new(content);
        let added = match kind {
            Kind::Run => run(&mut fields).map(|info| self.info = Some(info)),
            Kind::Labels => self.labels(&mut fields),
            Kind::Records => self.chunk(&mut fields),
            Kind::Loss => self.loss(&mut fields),
            Kind::Extent => extent(&mut fields).map(|extent| self.extent = Some(extent)),
            Kind::Processes => processes(&mut fields).map(|all| self.run.processes = Some(all)),
            Kind::Clock => clock(&mut fields).map(|reading| self.run.clock.push(reading)),
        };
        added.is_some() && fields.is_empty()
    }

    fn labels(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let first = fields.u32()? as usize;
        let mut names: Vec<Arc<str>> = Vec::new();
        while !fields.is_empty() {
            names.push(fields.text()?.into());
        }
        // More can be lost only in a file that was forged.
        if (self.names.len()..=self.names.len() + (1 << 16)).contains(&first) {
            self.names.resize(first, LOST.into());
            self.names.extend(names);
        }
        Some(())
    }

    fn chunk(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let worker = fields.u32()?;
        let mut records: Vec<Record> = Vec::with_capacity(CHUNK_RECORDS);
        while !fields.is_empty() {
            records.push(records::get(fields)?);
        }
        let mut chunk = ChunkWriter::new(records.len());
        records.into_iter().for_each(|record| _ = chunk.push(record));
        self.records.workers.entry(worker).or_default().chunks.push(chunk.finish());
        Some(())
    }

    fn loss(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let (worker, dropped, last_ns) = (fields.u32()?, fields.u64()?, fields.u64()?);
        let records = self.records.workers.entry(worker).or_default();
        (records.dropped, records.last_ns) = (dropped, last_ns);
        Some(())
    }
}

fn run(fields: &mut Fields<'_>) -> Option<TraceInfo> {
    let (ranks, workers, own_workers) = (fields.u32()?, fields.u32()?, fields.bool()?);
    let started = fields.text()?;
    let mut comments = Vec::new();
    while !fields.is_empty() {
        comments.push(fields.text()?);
    }
    Some(TraceInfo { ranks, workers, own_workers, end_ns: 0, started, comments })
}

fn extent(fields: &mut Fields<'_>) -> Option<Range<u64>> {
    Some(fields.u64()?..fields.u64()?)
}

fn processes(fields: &mut Fields<'_>) -> Option<RunProcesses> {
    let (own, ranks_each) = (fields.u32()?, fields.u32()?);
    let mut all = Vec::new();
    while !fields.is_empty() {
        all.push(RunProcess { machine: fields.u32()?, workers: fields.u32()? });
    }
    ((own as usize) < all.len()).then_some(RunProcesses { own, ranks_each, all })
}

fn clock(fields: &mut Fields<'_>) -> Option<ClockReading> {
    let (here_ns, there_ns, error_ns) = (fields.u64()?, fields.u64()?, fields.u64()?);
    Some(ClockReading { here_ns, there_ns, error_ns })
}

/// File with the place that is read next.
struct Input {
    reader: BufReader<File>,
    at: u64,
    len: u64,
}

impl Input {
    /// Reads so many bytes; `None` if the file has no more.
    fn take<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        if self.len - self.at < N as u64 {
            return Ok(None);
        }
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.reader.read_exact(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn seek(&mut self, at: u64) -> io::Result<()> {
        self.reader.seek(SeekFrom::Start(at))?;
        self.at = at;
        Ok(())
    }

    /// Goes on at the next mark of a block from `at` on; returns `false` at the end of the file.
    fn has_mark_after(&mut self, at: u64) -> io::Result<bool> {
        self.seek(at)?;
        let mut last = [0; MARK.len()];
        let mut seen = 0;
        while self.at < self.len {
            let mut byte = [0];
            self.fill(&mut byte)?;
            last.rotate_left(1);
            last[MARK.len() - 1] = byte[0];
            seen += 1;
            if seen >= MARK.len() && last == MARK {
                self.seek(self.at - MARK.len() as u64)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
