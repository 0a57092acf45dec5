//! Communicators of MPI by context id.
//!
//! Each context of this crate is a communicator of MPI: tags of the program use all the tag bits
//! that every MPI has, so a context cannot be encoded in the tag, and a receive of any tag could
//! not separate contexts. Creating one blocks until all members take part, so a blocking-call
//! thread does it. Operations that are started meanwhile are parked and start, in order, when the
//! communicator exists.
//!
//! Other ranks may still send to a communicator that the program has dropped here, and their sends
//! end only when the messages are received. A dropped communicator is therefore kept for a while,
//! until the end of most runs, and drained before MPI frees it.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;
use std::sync::{Arc, OnceLock, Weak, mpsc};

use parking_lot::RwLock;
use talpf_primitives::Mutex;

use super::transport::MpiTransport;
use super::{RawCommunicator, Refused};
use crate::error::Error;
use crate::transport::{ContextId, Members};

/// Function that is called with the communicator once it exists.
pub(super) type Parked = Box<dyn FnOnce(Result<RawCommunicator, Refused>) + Send>;

/// Communicator of one context, or the operations that wait for it.
#[derive(Default)]
pub(super) struct Slot {
    made: OnceLock<Result<RawCommunicator, Refused>>,
    /// Operations that wait for the communicator; `None` once it exists.
    parked: Mutex<Option<Vec<Parked>>>,
}

impl Slot {
    fn awaited() -> Arc<Self> {
        Arc::new(Slot { made: OnceLock::new(), parked: Mutex::new(Some(Vec::new())) })
    }

    /// Creates a slot with a communicator.
    fn of(communicator: RawCommunicator) -> Arc<Self> {
        Arc::new(Slot { made: OnceLock::from(Ok(communicator)), parked: Mutex::new(None) })
    }

    /// Returns the communicator, if it exists already.
    #[inline]
    pub(super) fn get(&self) -> Option<&Result<RawCommunicator, Refused>> {
        self.made.get()
    }

    /// Calls `what` with the communicator: at once if it exists, otherwise when it is created.
    pub(super) fn with(&self, what: Parked) {
        let mut parked = self.parked.lock();
        match &mut *parked {
            Some(parked) => parked.push(what),
            None => {
                drop(parked);
                let made = self.made.get().cloned();
                what(made.unwrap_or_else(|| unreachable!("set before nothing can be parked")));
            }
        }
    }

    /// Sets the communicator. Parked operations start before any other can.
    fn set(&self, made: Result<RawCommunicator, Refused>) {
        loop {
            let mut parked = self.parked.lock();
            let batch = parked.as_mut().map(std::mem::take).unwrap_or_default();
            if batch.is_empty() {
                let _ = self.made.set(made);
                *parked = None;
                return;
            }
            drop(parked);
            batch.into_iter().for_each(|what| what(made.clone()));
        }
    }
}

/// Communicators of all contexts of this process.
pub(super) struct Contexts {
    /// Contexts of the world, without a search in the map.
    world: [Arc<Slot>; 2],
    others: RwLock<HashMap<ContextId, Arc<Slot>>>,
    /// Contexts that the program has dropped, oldest first.
    retired: Mutex<VecDeque<Arc<Slot>>>,
    /// Communicator that others are created from. No operation receives in it: Open MPI creates
    /// communicators by messages that a receive of any tag would take.
    parent: RawCommunicator,
}

impl Contexts {
    /// Creates the table with the contexts 0 and 1, those of the world.
    pub(super) fn new(world: [RawCommunicator; 2], parent: RawCommunicator) -> Self {
        let (others, retired) = (RwLock::default(), Mutex::default());
        Contexts { world: world.map(Slot::of), others, retired, parent }
    }

    /// Returns the communicator of a context of the world.
    #[inline]
    pub(super) fn of_world(&self, context: ContextId) -> Option<RawCommunicator> {
        self.world.get(context.0 as usize)?.get()?.as_ref().ok().copied()
    }

    /// Returns the slot of a context.
    ///
    /// **Errors**: the context does not exist.
    pub(super) fn find(&self, context: ContextId) -> Result<Arc<Slot>, Refused> {
        match self.world.get(context.0 as usize) {
            Some(slot) => Ok(Arc::clone(slot)),
            None => self.others.read().get(&context).cloned().ok_or_else(|| Refused {
                call: "a message",
                code: 0,
                reason: "its communicator has been freed".to_owned(),
            }),
        }
    }

    /// Adds the two contexts of a communicator that is being created.
    pub(super) fn add(&self, first: ContextId) -> [Arc<Slot>; 2] {
        let slots = [Slot::awaited(), Slot::awaited()];
        let mut others = self.others.write();
        others.insert(first, Arc::clone(&slots[0]));
        others.insert(ContextId(first.0 + 1), Arc::clone(&slots[1]));
        slots
    }

    /// Sets the two communicators, or the error of their creation.
    pub(super) fn resolve(slots: &[Arc<Slot>; 2], made: Result<[RawCommunicator; 2], Refused>) {
        let [messages, collectives] = match made {
            Ok(made) => made.map(Ok),
            Err(refused) => [Err(refused.clone()), Err(refused)],
        };
        slots[0].set(messages);
        slots[1].set(collectives);
    }

    /// Removes and frees all communicators.
    pub(super) fn free_all(&self) {
        for communicator in self.all() {
            // A communicator that cannot be freed stays until MPI ends.
            let _ = communicator.free();
        }
        let _ = self.parent.free();
        self.others.write().clear();
        self.retired.lock().clear();
    }

    /// Retires the two contexts of a communicator. Returns those that were retired long ago.
    fn retire(&self, first: ContextId) -> Vec<Arc<Slot>> {
        /// Number of retired contexts that are kept: few of those that an MPI can have (MPICH:
        /// 2048).
        const KEPT: usize = 128;
        let mut others = self.others.write();
        let mut retired = self.retired.lock();
        let both = [first, ContextId(first.0 + 1)];
        retired.extend(both.iter().filter_map(|context| others.remove(context)));
        let beyond = retired.len().saturating_sub(KEPT);
        retired.drain(..beyond).collect()
    }

    /// Returns all communicators that exist.
    pub(super) fn all(&self) -> Vec<RawCommunicator> {
        let (others, retired) = (self.others.read(), self.retired.lock());
        let slots = self.world.iter().chain(others.values()).chain(retired.iter());
        slots.filter_map(|slot| slot.get()?.as_ref().ok().copied()).collect()
    }
}

impl MpiTransport {
    /// Starts to create the two communicators of MPI for a new communicator of this crate.
    ///
    /// **Errors**: the system cannot start a thread.
    pub(super) fn create(&self, first: ContextId, members: &Members) -> Result<(), Error> {
        if (first.0 as usize) < self.contexts.world.len() {
            return Ok(());
        }
        let slots = self.contexts.add(first);
        let ranks: Vec<c_int> = members.iter().map(|world| world.0 as c_int).collect();
        let parent = self.contexts.parent;
        let tag = first.0 % (self.library.max_tag() + 1);
        self.spawn_blocking(move |_| {
            let made = parent.of_some(&ranks, tag).and_then(|messages| {
                let collectives = messages.duplicate()?;
                Ok([messages, collectives])
            });
            Contexts::resolve(&slots, made);
        })
    }

    /// Retires the two communicators of a communicator that the program does not use any more.
    pub(super) fn retire(&self, first: ContextId) {
        for slot in self.contexts.retire(first) {
            let me = Weak::clone(&self.me);
            slot.with(Box::new(move |made| {
                if let (Some(me), Ok(communicator)) = (me.upgrade(), made) {
                    me.drain(communicator);
                    // A communicator that cannot be freed stays until MPI ends.
                    let _ = communicator.free();
                }
            }));
        }
    }

    /// Waits for the communicator of a context, on a thread that may block.
    pub(super) fn communicator(&self, context: ContextId) -> Result<RawCommunicator, Refused> {
        let slot = self.contexts.find(context)?;
        if let Some(made) = slot.get() {
            return made.clone();
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        slot.with(Box::new(move |made| drop(sender.send(made))));
        receiver.recv().unwrap_or_else(|_| unreachable!("parked functions are always called"))
    }
}
