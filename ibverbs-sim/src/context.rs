//! One user of a device, as a process would be.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Weak},
};

use talpf_primitives::{AtomicBool, Mutex, Ordering};

use crate::{
    AsyncEvent, CompletionChannel, CompletionQueue, DeviceAttributes, Error, PortAttributes,
    PortState, ProtectionDomain, Result, deferred::Deferred, device::DeviceCore, timers::Timers,
};

const PORTS: u8 = 1;
/// Events beyond this are dropped, oldest first: they repeat what the objects' states say.
const MAX_EVENTS: usize = 1024;

/// An opened device: the root of one user's objects. Clones are the same context.
#[derive(Clone)]
pub struct Context {
    core: Arc<ContextCore>,
}

pub(crate) struct ContextCore {
    pub(crate) device: Arc<DeviceCore>,
    pub(crate) timers: Timers,
    identifier: u32,
    killed: AtomicBool,
    events: Mutex<VecDeque<AsyncEvent>>,
}

impl Context {
    pub(crate) fn new(device: Arc<DeviceCore>, identifier: u32) -> Self {
        let core = ContextCore {
            device,
            timers: Timers::default(),
            identifier,
            killed: AtomicBool::new(false),
            events: Mutex::new(VecDeque::new()),
        };
        Self { core: Arc::new(core) }
    }

    /// The device's limits.
    pub fn query_device(&self) -> DeviceAttributes {
        self.core.device.attributes.clone()
    }

    /// A port of the device as this context sees it. The only port is 1.
    ///
    /// **Errors**: there is no such port.
    pub fn query_port(&self, port: u8) -> Result<PortAttributes> {
        check_port(port)?;
        let state = if self.core.is_killed() { PortState::Down } else { PortState::Active };
        Ok(PortAttributes {
            state,
            max_message_size: self.core.device.attributes.max_message_size,
            local_identifier: self.core.identifier,
        })
    }

    /// A protection domain of its own.
    pub fn allocate_protection_domain(&self) -> ProtectionDomain {
        ProtectionDomain::new(Arc::clone(&self.core), self.core.device.next_domain())
    }

    /// A queue for at least `entries` completions, which notifies `channel` if there is one.
    ///
    /// **Errors**: none, or more than the device's `max_cqe`.
    pub fn create_completion_queue(
        &self,
        entries: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<CompletionQueue> {
        CompletionQueue::create(&self.core, entries, channel)
    }

    /// Says what time it is, and takes up the requests of this context whose time has come:
    /// retries after no answer or no receive, and messages that the link has held. Any unit and
    /// origin that all the context's callers agree on; earlier times than before are ignored.
    ///
    /// **Units**: nanoseconds.
    pub fn advance(&self, now_ns: u64) {
        let mut deferred = Deferred::default();
        for queue_pair in self.core.timers.advance(now_ns).iter().filter_map(Weak::upgrade) {
            queue_pair.resume(&mut deferred);
        }
        deferred.run();
    }

    /// When [`advance`](Self::advance) next has something to do, if nothing else comes first.
    ///
    /// **Units**: nanoseconds.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.core.timers.next_deadline_ns()
    }

    /// The oldest event not yet taken.
    pub fn poll_async_event(&self) -> Option<AsyncEvent> {
        self.core.events.lock().pop_front()
    }

    /// Cuts this context off, as if its process had died: none of its queue pairs answers, and
    /// nothing that they send arrives. There is no way back.
    pub fn kill(&self) {
        self.core.killed.store(true, Ordering::SeqCst);
        for queue_pair in self.core.device.all() {
            if Arc::ptr_eq(&queue_pair.context, &self.core) {
                queue_pair.cut_off();
            }
        }
    }
}

impl ContextCore {
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }

    #[cold]
    pub(crate) fn raise(&self, event: AsyncEvent) {
        let mut events = self.events.lock();
        if events.len() == MAX_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
    }
}

pub(crate) fn check_port(port: u8) -> Result<()> {
    if (1..=PORTS).contains(&port) { Ok(()) } else { Err(Error::NoSuchPort { port, ports: PORTS }) }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("identifier", &self.core.identifier).finish_non_exhaustive()
    }
}
