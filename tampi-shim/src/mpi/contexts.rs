//! Communicators of MPI by the numbers of our contexts.
//!
//! Each of our contexts is a communicator of MPI: tags of the program take all the tag bits that
//! an MPI must have, so a context cannot travel in the tag, and a receive of any tag could not
//! tell contexts apart. Making one blocks until all members take part, so it is done aside; what
//! is started meanwhile is parked and starts, in its order, when the communicator is there.
//!
//! Others may still send to a communicator that the program has let go of here, and their sends end
//! when somebody takes the messages. So it is kept for a while, until the end of most runs, and
//! drained before MPI frees it.

use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;
use std::sync::{Arc, OnceLock, Weak, mpsc};

use parking_lot::RwLock;
use talpf_primitives::Mutex;

use super::transport::MpiTransport;
use super::{RawCommunicator, Refused};
use crate::error::Error;
use crate::transport::{ContextId, Members};

/// What is done with the communicator when it is there.
pub(super) type Parked = Box<dyn FnOnce(Result<RawCommunicator, Refused>) + Send>;

/// One context.
#[derive(Default)]
pub(super) struct Slot {
    made: OnceLock<Result<RawCommunicator, Refused>>,
    /// `None` once the communicator is there.
    parked: Mutex<Option<Vec<Parked>>>,
}

impl Slot {
    fn awaited() -> Arc<Self> {
        Arc::new(Slot { made: OnceLock::new(), parked: Mutex::new(Some(Vec::new())) })
    }

    /// A slot with a communicator.
    fn of(communicator: RawCommunicator) -> Arc<Self> {
        Arc::new(Slot { made: OnceLock::from(Ok(communicator)), parked: Mutex::new(None) })
    }

    /// The communicator, if it is there.
    #[inline]
    pub(super) fn get(&self) -> Option<&Result<RawCommunicator, Refused>> {
        self.made.get()
    }

    /// Does `what` with the communicator: at once if it is there, else when it is.
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

    /// The communicator is there. What is parked starts before anything else can.
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

/// The contexts of this process.
pub(super) struct Contexts {
    /// Those of the world, which every message would look up.
    world: [Arc<Slot>; 2],
    others: RwLock<HashMap<ContextId, Arc<Slot>>>,
    /// Those that the program has let go of, the last one behind.
    retired: Mutex<VecDeque<Arc<Slot>>>,
    /// What others are made from. Nobody receives in it: Open MPI makes communicators by messages
    /// that a receive of any tag would take.
    parent: RawCommunicator,
}

impl Contexts {
    /// The contexts 0 and 1 are those of the world.
    pub(super) fn new(world: [RawCommunicator; 2], parent: RawCommunicator) -> Self {
        let (others, retired) = (RwLock::default(), Mutex::default());
        Contexts { world: world.map(Slot::of), others, retired, parent }
    }

    /// The communicator of a context of the world.
    #[inline]
    pub(super) fn of_world(&self, context: ContextId) -> Option<RawCommunicator> {
        self.world.get(context.0 as usize)?.get()?.as_ref().ok().copied()
    }

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

    /// Adds the two contexts of a communicator that is being made.
    pub(super) fn add(&self, first: ContextId) -> [Arc<Slot>; 2] {
        let slots = [Slot::awaited(), Slot::awaited()];
        let mut others = self.others.write();
        others.insert(first, Arc::clone(&slots[0]));
        others.insert(ContextId(first.0 + 1), Arc::clone(&slots[1]));
        slots
    }

    /// The two communicators are there, or cannot be made.
    pub(super) fn settle(slots: &[Arc<Slot>; 2], made: Result<[RawCommunicator; 2], Refused>) {
        let [messages, collectives] = match made {
            Ok(made) => made.map(Ok),
            Err(refused) => [Err(refused.clone()), Err(refused)],
        };
        slots[0].set(messages);
        slots[1].set(collectives);
    }

    /// Takes all communicators out and gives them back to MPI.
    pub(super) fn free_all(&self) {
        for communicator in self.all() {
            // What MPI refuses to free stays until it ends.
            let _ = communicator.free();
        }
        let _ = self.parent.free();
        self.others.write().clear();
        self.retired.lock().clear();
    }

    /// Takes the two contexts of a communicator out of use. Returns those that were retired long
    /// ago.
    fn retire(&self, first: ContextId) -> Vec<Arc<Slot>> {
        /// Few of what an MPI can have: MPICH has 2048.
        const KEPT: usize = 128;
        let mut others = self.others.write();
        let mut retired = self.retired.lock();
        let both = [first, ContextId(first.0 + 1)];
        retired.extend(both.iter().filter_map(|context| others.remove(context)));
        let beyond = retired.len().saturating_sub(KEPT);
        retired.drain(..beyond).collect()
    }

    /// Every communicator that is there.
    pub(super) fn all(&self) -> Vec<RawCommunicator> {
        let (others, retired) = (self.others.read(), self.retired.lock());
        let slots = self.world.iter().chain(others.values()).chain(retired.iter());
        slots.filter_map(|slot| slot.get()?.as_ref().ok().copied()).collect()
    }
}

impl MpiTransport {
    /// Begins to make the two communicators of a new one of ours.
    ///
    /// **Errors**: the system refuses a thread.
    pub(super) fn create(&self, first: ContextId, members: &Members) -> Result<(), Error> {
        if (first.0 as usize) < self.contexts.world.len() {
            return Ok(());
        }
        let slots = self.contexts.add(first);
        let ranks: Vec<c_int> = members.iter().map(|world| world.0 as c_int).collect();
        let parent = self.contexts.parent;
        let tag = first.0 % (self.library.max_tag() + 1);
        self.aside(move |_| {
            let made = parent.of_some(&ranks, tag).and_then(|messages| {
                let collectives = messages.duplicate()?;
                Ok([messages, collectives])
            });
            Contexts::settle(&slots, made);
        })
    }

    /// Lets go of the two communicators of one of ours that the program does not use any more.
    pub(super) fn retire(&self, first: ContextId) {
        let old = self.contexts.retire(first);
        if old.is_empty() {
            return;
        }
        self.where_allowed(move |this| {
            for slot in old {
                let me = Weak::clone(&this.me);
                slot.with(Box::new(move |made| {
                    if let (Some(me), Ok(communicator)) = (me.upgrade(), made) {
                        me.drain(communicator);
                        // What MPI refuses to free stays until it ends.
                        let _ = communicator.free();
                    }
                }));
            }
        });
    }

    /// The communicator of a context, on a thread that may wait for it.
    pub(super) fn communicator(&self, context: ContextId) -> Result<RawCommunicator, Refused> {
        let slot = self.contexts.find(context)?;
        if let Some(made) = slot.get() {
            return made.clone();
        }
        let (tell, told) = mpsc::sync_channel(1);
        slot.with(Box::new(move |made| drop(tell.send(made))));
        told.recv().unwrap_or_else(|_| unreachable!("what is parked is carried out"))
    }
}
