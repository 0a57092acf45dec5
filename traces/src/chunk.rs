//! Pieces of the memory of a stream.

use crate::Event;
use crate::event::Record;

/// Records in the order of recording, in an allocation that never grows.
pub(crate) type Chunk = Vec<Record>;

/// Number of records of a chunk of 64 KiB.
pub(crate) const CHUNK_RECORDS: usize = (64 << 10) / size_of::<Record>();

/// Allocates an empty chunk whose memory is touched.
pub(crate) fn touched(records: usize) -> Chunk {
    const BLANK: Record = Record { time_ns: 0, event: Event::RecordingStopped };
    let mut chunk = Chunk::with_capacity(records);
    chunk.resize(records, BLANK);
    chunk.clear();
    chunk
}
