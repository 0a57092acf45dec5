//! Messages that a process has queued in a superstep, in chains by the process at their other end.
//!
//! A process carries out what writes into its own memory: its gets, and the puts of others to it. So the writes
//! to one process have an order, and the puts of a superstep overlap as if one came after the other. For this the
//! others read the outbox during a sync, each its own chain.

use crate::error::{Error, Result};
use crate::memory::{Address, TINY};
use crate::reduction::Snapshot;
use crate::slot_id::SlotId;

/// End of a chain.
const NONE: u32 = u32::MAX;

/// Put or get. Its near end lies with the process that has queued it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    next: u32,
    /// Queued by the program itself, so that its memory is checked for conflicts, and not by a collective.
    pub(crate) is_checked: bool,
    pub(crate) size: usize,
    /// Near end.
    pub(crate) near: Address,
    /// Slot of the far end.
    pub(crate) slot: SlotId,
    /// Offset in that slot.
    pub(crate) offset: usize,
    /// Bytes of a put of up to [`TINY`], from the start of the sync on.
    pub(crate) bytes: [u8; TINY],
}

impl Message {
    pub(crate) fn new(near: Address, slot: SlotId, offset: usize, size: usize) -> Self {
        Message { next: NONE, is_checked: true, size, near, slot, offset, bytes: [0; TINY] }
    }
}

/// Messages to or from one process.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
    /// Number of messages that the program itself has queued.
    count: u32,
}

impl Chain {
    const EMPTY: Chain = Chain { first: NONE, last: NONE, count: 0 };
}

/// Queued messages of one kind, puts or gets.
pub(crate) struct Queue {
    messages: Vec<Message>,
    chains: Box<[Chain]>,
}

impl Queue {
    fn new(processes: usize) -> Self {
        Queue { messages: Vec::new(), chains: vec![Chain::EMPTY; processes].into() }
    }

    /// Makes room for `limit` messages.
    fn reserve(&mut self, limit: usize) -> Result<()> {
        let fits = limit < NONE as usize && self.messages.try_reserve_exact(limit).is_ok();
        if fits { Ok(()) } else { Err(Error::OutOfMemory) }
    }

    /// Appends a message to the chain of a process.
    #[inline]
    pub(crate) fn push(&mut self, process: usize, message: Message) {
        let index = self.messages.len() as u32;
        let chain = &mut self.chains[process];
        chain.count += u32::from(message.is_checked);
        match chain.first {
            NONE => chain.first = index,
            _ => self.messages[chain.last as usize].next = index,
        }
        chain.last = index;
        self.messages.push(message);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the number of messages to or from a process that the program has queued itself.
    #[inline]
    pub(crate) fn count(&self, process: usize) -> usize {
        self.chains[process].count as usize
    }

    /// Returns all messages, in the order in which they were queued.
    pub(crate) fn all(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn all_mut(&mut self) -> &mut [Message] {
        &mut self.messages
    }

    /// Returns the messages to or from one process, in the order in which they were queued.
    #[inline]
    pub(crate) fn chain(&self, process: usize) -> impl Iterator<Item = &Message> {
        let mut next = self.chains[process].first;
        std::iter::from_fn(move || {
            let message = self.messages.get(next as usize)?;
            next = message.next;
            Some(message)
        })
    }

    fn clear(&mut self) {
        if !self.messages.is_empty() {
            self.messages.clear();
            self.chains.fill(Chain::EMPTY);
        }
    }
}

/// Everything that a process has queued in a superstep.
pub(crate) struct Outbox {
    pub(crate) puts: Queue,
    pub(crate) gets: Queue,
    /// What it contributes to reductions.
    pub(crate) snapshots: Vec<Snapshot>,
}

impl Outbox {
    pub(crate) fn new(processes: usize) -> Self {
        let (puts, gets) = (Queue::new(processes), Queue::new(processes));
        Outbox { puts, gets, snapshots: Vec::new() }
    }

    /// Makes an outbox with room for `limit` messages, of either kind.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub(crate) fn with_room(processes: usize, limit: usize) -> Result<Self> {
        let mut outbox = Outbox::new(processes);
        outbox.puts.reserve(limit)?;
        outbox.gets.reserve(limit)?;
        Ok(outbox)
    }

    pub(crate) fn clear(&mut self) {
        self.puts.clear();
        self.gets.clear();
        self.snapshots.clear();
    }
}
