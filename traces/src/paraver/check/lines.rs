//! Lines of a file of any content, one at a time.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::report::Log;
use super::rule::Rule;
use crate::error::{Error, Result};

/// Longest line that is read into memory. A header of 65,535 tasks fills less than a megabyte.
const LINE_LIMIT: u64 = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// First bytes of a file that gzip has compressed.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Reader of a file, line by line, compressed or not. Ends of lines are stripped; byte order marks, carriage returns
/// and overlong lines are reported.
pub(super) struct Lines {
    path: PathBuf,
    reader: BufReader<Box<dyn Read>>,
    buffer: Vec<u8>,
    number: u64,
    /// Rule for carriage returns in this file; `None` after a report.
    carriage_return: Option<Rule>,
    /// `true` if the last line had no end.
    pub(super) cut_short: bool,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("path", &self.path).field("number", &self.number).finish()
    }
}

impl Lines {
    pub(super) fn open(path: &Path, carriage_return: Rule) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path))?;
        let mut file = BufReader::new(file);
        let is_compressed = file.fill_buf().map_err(Error::io(path))?.starts_with(GZIP);
        let file: Box<dyn Read> =
            if is_compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(1 << 16, file),
            buffer: Vec::new(),
            number: 0,
            carriage_return: Some(carriage_return),
            cut_short: false,
        })
    }

    /// Opens a file like [`open`](Self::open); `None` if it does not exist.
    pub(super) fn open_if_present(path: &Path, carriage_return: Rule) -> Result<Option<Self>> {
        match Self::open(path, carriage_return) {
            Ok(lines) => Ok(Some(lines)),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the next line and its number, from 1; `None` at the end of the file.
    pub(super) fn next(&mut self, log: &mut Log<'_>) -> Result<Option<(u64, &[u8])>> {
        loop {
            self.buffer.clear();
            let mut limited = self.reader.by_ref().take(LINE_LIMIT);
            let read =
                limited.read_until(b'\n', &mut self.buffer).map_err(Error::io(&self.path))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.cut_short = self.buffer.pop_if(|byte| *byte == b'\n').is_none();
            if !self.cut_short || (read as u64) < LINE_LIMIT {
                break;
            }
            let text = format_args!("the line is longer than {LINE_LIMIT} bytes");
            log.add(Rule::OverlongLine, self.number, text);
            self.skip_line().map_err(Error::io(&self.path))?;
        }
        if self.buffer.pop_if(|byte| *byte == b'\r').is_some()
            && let Some(rule) = self.carriage_return.take()
        {
            log.add(rule, self.number, "lines end in a carriage return and a newline");
        }
        let mut line = self.buffer.as_slice();
        if self.number == 1
            && let Some(rest) = line.strip_prefix(BYTE_ORDER_MARK)
        {
            log.add(Rule::ByteOrderMark, 1, "the file starts with a byte order mark");
            line = rest;
        }
        Ok(Some((self.number, line)))
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let available = self.reader.fill_buf()?;
            let newline = available.iter().position(|byte| *byte == b'\n');
            let used = newline.map_or(available.len(), |at| at + 1);
            self.reader.consume(used);
            if newline.is_some() || used == 0 {
                return Ok(());
            }
        }
    }
}
