//! Messages that a process has queued in a superstep, in chains by the process at their other end.
//!
//! Messages are as small as they can be, as most of what a short put costs is that its message goes from the cache of
//! one core to that of another.
//!
//! A process carries out what writes into its own memory: its gets, and the puts of others to it. So the writes
//! to one process have an order, and the puts of a superstep overlap as if one came after the other. For this the
//! others read the queue during a sync, each its own chain.

use crate::ends::Far;
use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::memory::{Address, TINY};
use crate::reduction::Snapshot;

/// No run.
const NONE: u32 = u32::MAX;

/// Put or get, between two addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// Address at the process at the other end.
    pub(crate) far: Address,
    /// Address at the process that has queued the message. From the start of the sync on, the bytes of a put of
    /// up to [`TINY`].
    near: [u8; TINY],
    pub(crate) size: usize,
}

impl Message {
    pub(crate) fn new(near: Address, far: Address, size: usize) -> Self {
        Message { far, near: near.0.to_ne_bytes(), size }
    }

    /// Returns the near address, unless bytes have taken its place.
    #[inline]
    pub(crate) fn near(&self) -> Address {
        Address(usize::from_ne_bytes(self.near))
    }

    /// Puts the bytes of the message into the place of their address.
    #[inline]
    pub(crate) fn set_bytes(&mut self, bytes: [u8; TINY]) {
        self.near = bytes;
    }

    /// Returns the bytes of a message that carries them.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8; TINY] {
        &self.near
    }
}

/// Messages to or from one process that were queued one after the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Index of the first one.
    first: u32,
    count: u32,
    /// Next run of the process.
    next: u32,
}

/// Messages to or from one process.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first_run: u32,
    last_run: u32,
    /// Number of messages, without those of the run that is open.
    count: u32,
}

impl Chain {
    const EMPTY: Chain = Chain { first_run: NONE, last_run: NONE, count: 0 };
}

/// Queued messages of one kind, puts or gets.
pub(crate) struct Chained {
    messages: Vec<Message>,
    /// The last one is open.
    runs: Vec<Run>,
    /// Process of the open run.
    open: usize,
    chains: Box<[Chain]>,
}

impl Chained {
    fn new(processes: usize) -> Self {
        let chains = vec![Chain::EMPTY; processes].into();
        Chained { messages: Vec::new(), runs: Vec::new(), open: 0, chains }
    }

    /// Makes room for `limit` messages.
    fn reserve(&mut self, limit: usize) -> Result<()> {
        let fits = limit < NONE as usize
            && self.messages.try_reserve_exact(limit).is_ok()
            && self.runs.try_reserve_exact(limit).is_ok();
        if fits { Ok(()) } else { Err(Error::OutOfMemory) }
    }

    /// Appends a message to the chain of a process.
    #[inline]
    pub(crate) fn push(&mut self, process: usize, message: Message) {
        match self.runs.last_mut() {
            Some(run) if self.open == process => run.count += 1,
            _ => self.begin_run(process),
        }
        self.messages.push(message);
    }

    /// Begins a run with the next message.
    fn begin_run(&mut self, process: usize) {
        if let Some(run) = self.runs.last() {
            self.chains[self.open].count += run.count;
        }
        let index = self.runs.len() as u32;
        let chain = &mut self.chains[process];
        let last = std::mem::replace(&mut chain.last_run, index);
        match self.runs.get_mut(last as usize) {
            Some(last) => last.next = index,
            None => chain.first_run = index,
        }
        self.runs.push(Run { first: self.messages.len() as u32, count: 1, next: NONE });
        self.open = process;
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns the number of messages to or from a process.
    #[inline]
    pub(crate) fn count(&self, process: usize) -> usize {
        let open = self.runs.last().filter(|_| self.open == process);
        (self.chains[process].count + open.map_or(0, |run| run.count)) as usize
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
        let mut next = self.chains[process].first_run;
        let runs = std::iter::from_fn(move || {
            let run = self.runs.get(next as usize)?;
            next = run.next;
            self.messages.get(run.first as usize..)?.get(..run.count as usize)
        });
        runs.flatten()
    }

    fn clear(&mut self) {
        if !self.messages.is_empty() {
            self.messages.clear();
            self.runs.clear();
            self.chains.fill(Chain::EMPTY);
        }
    }
}

/// Operation of a collective, whose far end may become active with the sync itself, so that its address is found
/// then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unresolved {
    pub(crate) is_put: bool,
    pub(crate) near: Address,
    pub(crate) far: Far,
    pub(crate) size: usize,
}

/// Everything that a process has queued in a superstep.
pub(crate) struct MessageQueue {
    pub(crate) puts: Chained,
    pub(crate) gets: Chained,
    pub(crate) unresolved: Vec<Unresolved>,
    /// Contributions of the process to reductions.
    pub(crate) snapshots: Vec<Snapshot>,
    /// Record of a layer above, for those of other processes.
    pub(crate) published: Option<Arc<dyn Any + Send + Sync>>,
}

impl MessageQueue {
    pub(crate) fn new(processes: usize) -> Self {
        let (puts, gets) = (Chained::new(processes), Chained::new(processes));
        MessageQueue { puts, gets, unresolved: Vec::new(), snapshots: Vec::new(), published: None }
    }

    /// Makes a queue with room for `limit` messages, of either kind.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub(crate) fn with_room(processes: usize, limit: usize) -> Result<Self> {
        let mut queue = MessageQueue::new(processes);
        queue.puts.reserve(limit)?;
        queue.gets.reserve(limit)?;
        Ok(queue)
    }

    /// Returns the number of messages from the process of this queue.
    pub(crate) fn sent(&self) -> usize {
        self.puts.len() + self.gets.len()
    }

    /// Returns the number of messages from the process of this queue to or from another one.
    #[inline]
    pub(crate) fn sent_to(&self, process: usize) -> usize {
        self.puts.count(process) + self.gets.count(process)
    }

    pub(crate) fn clear(&mut self) {
        self.puts.clear();
        self.gets.clear();
        self.unresolved.clear();
        self.snapshots.clear();
        self.published = None;
    }
}
