//! Contexts: an opened device, as a process would have it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Weak},
};

use talpf_primitives::{AtomicBool, Mutex, Ordering};

use crate::control_plane;
use crate::{
    AsyncEvent, CompletionChannel, CompletionQueue, DeviceAttributes, Error, PortAttributes,
    PortState, ProtectionDomain, Result, deferred::Deferred, device::DeviceCore, timers::Timers,
};

const PORTS: u8 = 1;
/// Most events that are kept. Beyond, the oldest are dropped: they repeat the states of the
/// objects.
const MAX_EVENTS: usize = 1024;

/// An opened device, which owns the objects of one user. Clones are the same context.
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

    /// Returns the limits of the device.
    pub fn query_device(&self) -> DeviceAttributes {
        self.core.device.attributes.clone()
    }

    /// Returns the attributes of a port as this context sees it. The only port is 1.
    ///
    /// **Errors**: no such port.
    pub fn query_port(&self, port: u8) -> Result<PortAttributes> {
        check_port(port)?;
        let state = if self.core.is_killed() { PortState::Down } else { PortState::Active };
        Ok(PortAttributes {
            state,
            max_message_size: self.core.device.attributes.max_message_size,
            local_identifier: self.core.identifier,
        })
    }

    /// Returns `true` if the link of the device has a [`LinkModel`](crate::LinkModel).
    pub fn has_priced_link(&self) -> bool {
        self.core.device.link.priced().is_some()
    }

    /// Creates a protection domain.
    pub fn allocate_protection_domain(&self) -> ProtectionDomain {
        ProtectionDomain::new(Arc::clone(&self.core), self.core.device.next_domain())
    }

    /// Creates a queue for at least `entries` completions, which notifies `channel` if one is
    /// given.
    ///
    /// **Errors**: `entries` is 0 or above the device's `max_cqe`.
    pub fn create_completion_queue(
        &self,
        entries: u32,
        channel: Option<&CompletionChannel>,
    ) -> Result<CompletionQueue> {
        CompletionQueue::create(&self.core, entries, channel)
    }

    /// Sets the time, and resumes the requests of this context whose deadlines it reaches: retries
    /// after no response or no receive, and messages that the link has delayed. The callers agree
    /// on an origin; times before the current one are ignored. A link with a clock moves to its time, too
    /// ([`Device::set_link_clock`](crate::Device::set_link_clock)).
    ///
    /// **Units**: nanoseconds.
    pub fn advance(&self, now_ns: u64) {
        let mut deferred = Deferred::default();
        for queue_pair in self.core.timers.advance(now_ns).iter().filter_map(Weak::upgrade) {
            queue_pair.resume(&mut deferred);
        }
        deferred.run();
        if let Some(priced) = self.core.device.link.priced() {
            priced.advance_in_real_time();
        }
    }

    /// Returns the time at which [`advance`](Self::advance) next resumes a request, if nothing else
    /// does before.
    ///
    /// **Units**: nanoseconds.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.core.timers.next_deadline_ns()
    }

    /// Takes the oldest asynchronous event.
    pub fn poll_async_event(&self) -> Option<AsyncEvent> {
        self.core.events.lock().pop_front()
    }

    /// Cuts this context off, as if its process had died: none of its queue pairs responds, and no
    /// message that they send arrives. A killed context stays killed.
    pub fn kill(&self) {
        self.core.killed.store(true, Ordering::SeqCst);
        for queue_pair in self.core.device.all() {
            if Arc::ptr_eq(&queue_pair.context, &self.core) {
                queue_pair.cut_off();
                queue_pair.close_permit();
            }
        }
    }
}

impl ContextCore {
    /// Returns the number of the process that the context stands for, from 0 in the order in which
    /// they were opened.
    pub(crate) fn process(&self) -> u32 {
        self.identifier - 1
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::SeqCst)
    }

    #[cold]
    pub(crate) fn raise(&self, event: AsyncEvent) {
        control_plane::raises(self.process(), &event);
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
