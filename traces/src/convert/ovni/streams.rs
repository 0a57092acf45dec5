//! Files of streams, of which any number grow at once, with few of them open.
//!
//! A stream is the word `ovni`, its version, and events: flags with the size of the payload, model, category
//! and value, clock, payload. Numbers have the byte order of the machine.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::metadata::Location;
use crate::error::{Error, Result};

const VERSION: u32 = 1;

/// Flag of an event whose payload is the size of the data behind it, with the size of that size.
const JUMBO: u8 = 0x13;

/// Memory of all streams together, and the most and the least that one has.
const MEMORY: usize = 32 << 20;
const MOST: usize = 1 << 16;
const LEAST: usize = 1 << 9;

/// Streams of all rows.
pub(super) struct Streams {
    streams: Vec<Stream>,
    /// Size of a stream in memory beyond which it goes to its file.
    limit: usize,
}

struct Stream {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Streams {
    /// Creates the folders of the streams in `folder`, and their metadata.
    pub(super) fn create(
        folder: &Path,
        locations: &[Location],
        metadata: impl Fn(&Location) -> String,
    ) -> Result<Self> {
        let mut streams = Vec::with_capacity(locations.len());
        for location in locations {
            let folder = folder.join(location.folder());
            fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
            let path = folder.join("stream.json");
            fs::write(&path, metadata(location)).map_err(Error::io(&path))?;
            let mut bytes = b"ovni".to_vec();
            bytes.extend(VERSION.to_ne_bytes());
            let path = folder.join("stream.obs");
            File::create_new(&path).map_err(Error::io(&path))?;
            streams.push(Stream { path, bytes });
        }
        Ok(Self { streams, limit: (MEMORY / locations.len().max(1)).clamp(LEAST, MOST) })
    }

    /// Adds an event with a payload of at most 16 bytes, but not 1.
    pub(super) fn event(
        &mut self,
        row: usize,
        name: &[u8; 3],
        clock: u64,
        payload: &[u8],
    ) -> Result<()> {
        let flags = payload.len().saturating_sub(1) as u8;
        self.add(row, &[&[flags], name, &clock.to_ne_bytes(), payload])
    }

    /// Adds an event with data of any size.
    pub(super) fn jumbo(
        &mut self,
        row: usize,
        name: &[u8; 3],
        clock: u64,
        data: &[u8],
    ) -> Result<()> {
        let size = (data.len() as u32).to_ne_bytes();
        self.add(row, &[&[JUMBO], name, &clock.to_ne_bytes(), &size, data])
    }

    fn add(&mut self, row: usize, parts: &[&[u8]]) -> Result<()> {
        let stream = &mut self.streams[row];
        parts.iter().for_each(|part| stream.bytes.extend_from_slice(part));
        if stream.bytes.len() < self.limit { Ok(()) } else { stream.flush() }
    }

    /// Writes what is left.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.streams.iter_mut().try_for_each(Stream::flush)
    }
}

impl Stream {
    fn flush(&mut self) -> Result<()> {
        let file = OpenOptions::new().append(true).open(&self.path);
        let written = file.and_then(|mut file| file.write_all(&self.bytes));
        self.bytes.clear();
        written.map_err(Error::io(&self.path))
    }
}
