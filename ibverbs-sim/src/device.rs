//! The adapter: everything that its contexts share.

use std::{
    collections::HashMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Weak},
};

use talpf_primitives::{AtomicU32, Mutex, Ordering};

use crate::{
    Context, DeviceAttributes, Error, FaultPlan, MAX_PACKET, QueuePairNumber, Result, Wire,
    attributes::within,
    key_table::KeyTable,
    link::Link,
    queue_pair::{QueuePairCore, SendSlots},
    wire::{MAX_HEADER, Packet, Port},
};

/// Longest message over a wire: it is copied whole, and nothing overtakes it.
const MAX_MESSAGE_OVER_WIRE: u32 = 4 << 20;

/// How to make a [`Device`].
#[derive(Clone, Debug, Default)]
pub struct DeviceConfig {
    /// What the device is called.
    pub name: String,
    /// Its limits.
    pub attributes: DeviceAttributes,
    /// What goes wrong on its link; `None` for a link that just works.
    pub fault: Option<FaultPlan>,
}

/// A simulated adapter. Clones are the same device, and all its contexts reach each other.
#[derive(Clone)]
pub struct Device {
    core: Arc<DeviceCore>,
}

pub(crate) struct DeviceCore {
    name: String,
    pub(crate) attributes: DeviceAttributes,
    pub(crate) link: Link,
    /// Leads to the other processes, if there are any.
    pub(crate) port: Option<Port>,
    pub(crate) keys: KeyTable,
    pub(crate) send_slots: SendSlots,
    contexts: AtomicU32,
    domains: AtomicU32,
    queue_pairs: Mutex<HashMap<QueuePairNumber, Weak<QueuePairCore>>>,
}

impl Device {
    /// A device with no contexts.
    ///
    /// **Errors**: an attribute is over what any device can do.
    pub fn new(config: DeviceConfig) -> Result<Self> {
        Self::create(config, None)
    }

    /// The device of this process, whose queue pairs can be connected to those of the devices of
    /// other processes by [`QueuePair::connect_to`](crate::QueuePair::connect_to). A message has at
    /// most 4 MiB. What the fault plan says happens between queue pairs of this process only.
    ///
    /// The caller sees to it that [`progress`](Self::progress) is called again and again: nobody
    /// else looks at the wire.
    ///
    /// **Errors**: as [`Device::new`].
    pub fn with_wire(mut config: DeviceConfig, wire: Arc<dyn Wire>) -> Result<Self> {
        let longest = &mut config.attributes.max_message_size;
        *longest = MAX_MESSAGE_OVER_WIRE.min(*longest);
        Self::create(config, Some(Port::new(wire)))
    }

    fn create(config: DeviceConfig, port: Option<Port>) -> Result<Self> {
        config.attributes.validate()?;
        let core = DeviceCore {
            name: config.name,
            link: Link::new(config.fault),
            port,
            keys: KeyTable::new(config.attributes.max_mr),
            send_slots: SendSlots::new(config.attributes.max_qp),
            attributes: config.attributes,
            contexts: AtomicU32::new(0),
            domains: AtomicU32::new(0),
            queue_pairs: Mutex::new(HashMap::new()),
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// The name it was made with.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// A new context, as a process would open one.
    pub fn open(&self) -> Context {
        Context::new(Arc::clone(&self.core), self.core.contexts.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Without a wire there is nothing to do, and nobody to send to.
impl Device {
    /// Takes in what has come over the wire, answers it, and moves what could not leave before.
    /// Returns how many packets came; none while another thread is at it.
    ///
    /// **Errors**: a peer has sent something that is no packet, and the others are taken in; a peer
    /// does not take in what is sent to it; datagrams that nobody receives.
    pub fn progress(&self) -> Result<usize> {
        self.core.port.as_ref().map_or(Ok(0), |port| port.progress(&self.core))
    }

    /// Sends bytes to whoever receives the datagrams of another process. They keep their order,
    /// and come before the requests that are sent after them.
    ///
    /// **Errors**: no such process; more bytes than [`MAX_PACKET`](crate::MAX_PACKET) allows; the
    /// process does not take in what was sent before.
    pub fn send_datagram(&self, process: u32, bytes: &[u8]) -> Result<()> {
        self.core.check_process(process)?;
        within("datagram", bytes.len() as u64, MAX_PACKET as u64 - 1)?;
        match &self.core.port {
            Some(port) => port.send(&self.core, process, Packet::Datagram(bytes).to_bytes()),
            None => Ok(()),
        }
    }

    /// The oldest datagram that [`progress`](Self::progress) has taken in, with its sender.
    pub fn receive_datagram(&self) -> Option<(u32, Vec<u8>)> {
        self.core.port.as_ref()?.receive_datagram()
    }

    /// Whether something waits to leave this process.
    pub fn has_unsent(&self) -> bool {
        self.core.port.as_ref().is_some_and(Port::has_unsent)
    }

    /// Whether nothing comes from a process any more. Requests to it fail with
    /// [`RetryExceeded`](crate::CompletionStatus::RetryExceeded).
    pub fn is_lost(&self, process: u32) -> bool {
        self.core.port.as_ref().is_some_and(|port| port.is_lost(process))
    }
}

impl DeviceCore {
    /// The number of this process.
    pub(crate) fn process(&self) -> u32 {
        self.port.as_ref().map_or(0, Port::process)
    }

    /// **Errors**: there is no such process.
    pub(crate) fn check_process(&self, process: u32) -> Result<()> {
        let processes = self.port.as_ref().map_or(1, Port::processes);
        let known = process < processes;
        if known { Ok(()) } else { Err(Error::NoSuchProcess { process, processes }) }
    }

    /// Returns once a delivery that is under way has ended.
    pub(crate) fn wait_for_delivery(&self) {
        self.port.iter().for_each(Port::wait_for_holder);
    }

    /// A number that no other domain of the device has or had. A number that came back would let
    /// the queue pairs of one domain reach the memory of another.
    pub(crate) fn next_domain(&self) -> NonZeroU32 {
        let next = |last: u32| last.checked_add(1);
        let last = self.domains.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        last.ok().and_then(next).and_then(NonZeroU32::new).unwrap_or_else(|| std::process::abort())
    }

    pub(crate) fn insert(&self, queue_pair: &Arc<QueuePairCore>) {
        self.queue_pairs.lock().insert(queue_pair.number, Arc::downgrade(queue_pair));
    }

    pub(crate) fn remove(&self, number: QueuePairNumber) {
        self.queue_pairs.lock().remove(&number);
    }

    pub(crate) fn find(&self, number: QueuePairNumber) -> Option<Arc<QueuePairCore>> {
        self.queue_pairs.lock().get(&number)?.upgrade()
    }

    /// Bytes that the queue pairs which are connected to a process may have sent and not yet had
    /// taken in there: of each a request and an answer.
    pub(crate) fn max_outstanding_to(&self, process: u32) -> u64 {
        let most = 2 * (u64::from(self.attributes.max_message_size) + MAX_HEADER);
        let connected = |qp: &Arc<QueuePairCore>| qp.remote_peer.process() == Some(process);
        self.all().into_iter().filter(connected).count() as u64 * most
    }

    /// Every queue pair there is.
    pub(crate) fn all(&self) -> Vec<Arc<QueuePairCore>> {
        self.queue_pairs.lock().values().filter_map(Weak::upgrade).collect()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.core.name).finish_non_exhaustive()
    }
}
