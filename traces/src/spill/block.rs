//! Blocks of a spill file.
//!
//! | bytes | of the head of the file |
//! |---|---|
//! | 8 | `TALPFSPL` |
//! | 4 | version of the format |
//!
//! | bytes | of each block |
//! |---|---|
//! | 8 | mark, by which the next block is found behind a damaged one |
//! | 4 | kind |
//! | 4 | length of the content |
//! | 4 | CRC-32 of kind, length and content |
//! | length | content |
//!
//! All numbers are little endian.

use flate2::Crc;

use super::fields::put_u32;

/// First bytes of a spill file.
pub(super) const MAGIC: [u8; 8] = *b"TALPFSPL";

/// Version of the format that is written and read.
pub(super) const VERSION: u32 = 2;

/// First bytes of a block, which no text has.
pub(super) const MARK: [u8; 8] = *b"\xffTALPFB\n";

/// Length of what is before the content of a block.
pub(super) const HEAD: usize = MARK.len() + 12;

/// Largest length of a content.
pub(super) const MOST: u32 = 1 << 20;

/// Kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// Description of the run.
    Run = 1,
    /// Names of tasks, with the number of the first.
    Labels,
    /// Records of a worker, in order.
    Records,
    /// Number of records that a worker has dropped, and the last of their times.
    Loss,
    /// Times that are kept.
    Extent,
    /// Processes of the run, of which the recorder has one.
    Processes,
    /// Reading of the clock of process 0.
    Clock,
}

impl Kind {
    /// All kinds, by increasing number.
    const ALL: [Self; 7] = [
        Self::Run,
        Self::Labels,
        Self::Records,
        Self::Loss,
        Self::Extent,
        Self::Processes,
        Self::Clock,
    ];
}

/// Appends a block with what `content` appends.
pub(super) fn put_block(out: &mut Vec<u8>, kind: Kind, content: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&MARK);
    put_u32(out, kind as u32);
    out.extend_from_slice(&[0; 8]);
    content(out);
    let len = (out.len() - begin - HEAD) as u32;
    out[begin + 12..begin + 16].copy_from_slice(&len.to_le_bytes());
    let checksum = checksum(&out[begin + 8..begin + 16], &out[begin + HEAD..]);
    out[begin + 16..begin + HEAD].copy_from_slice(&checksum.to_le_bytes());
}

/// Head of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    numbers: [u8; 8],
    pub(super) len: u32,
    checksum: u32,
}

impl Head {
    /// Reads the head of a block; `None` if it is none.
    pub(super) fn of(bytes: &[u8; HEAD]) -> Option<Self> {
        let (mark, rest) = bytes.split_first_chunk::<8>()?;
        let (numbers, checksum) = rest.split_first_chunk::<8>()?;
        let [.., a, b, c, d] = *numbers;
        let len = u32::from_le_bytes([a, b, c, d]);
        let checksum = u32::from_le_bytes(*checksum.first_chunk()?);
        (*mark == MARK && len <= MOST).then_some(Self { numbers: *numbers, len, checksum })
    }

    /// Returns the kind of a block with this content; `None` if it is damaged, or of a kind that is not
    /// known.
    pub(super) fn kind(&self, content: &[u8]) -> Option<Kind> {
        let [a, b, c, d, ..] = self.numbers;
        let kind = u32::from_le_bytes([a, b, c, d]);
        let is_whole = checksum(&self.numbers, content) == self.checksum;
        Kind::ALL.into_iter().find(|known| is_whole && *known as u32 == kind)
    }
}

fn checksum(numbers: &[u8], content: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(numbers);
    crc.update(content);
    crc.sum()
}
