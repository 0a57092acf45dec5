//! Devices: the state that all contexts of an adapter share.

use std::{
    collections::HashMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Weak},
};

use talpf_primitives::{AtomicU32, Mutex, Ordering};

use crate::{
    Armed, Context, DeviceAttributes, Error, FaultPlan, LinkModel, MAX_PACKET, QueuePairNumber,
    Rail, Result,
    attributes::within,
    key_table::KeyTable,
    link::{Link, PricedLink},
    port::{MAX_HEAD, Port},
    queue_pair::{QueuePairCore, SendSlots},
};

/// Longest message over a rail. No packet to the same process overtakes it.
const MAX_MESSAGE_OVER_RAIL: u32 = 4 << 20;

/// Configuration of a [`Device`].
#[derive(Clone, Debug, Default)]
pub struct DeviceConfig {
    /// Name of the device.
    pub name: String,
    /// Limits of the device.
    pub attributes: DeviceAttributes,
    /// Faults of requests that the device's queue pairs post; `None` for a link without faults.
    pub fault: Option<FaultPlan>,
    /// Time that messages take between the contexts of the device, each of which stands for a
    /// process; `None` for none. The user of the device moves the time, by
    /// [`Device::advance_link`].
    pub link: Option<LinkModel>,
    /// `true` if registered memory has no contents: data of requests is not copied unless it is inline,
    /// while all claims are checked. Ignored without a link model.
    pub phantom: bool,
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
    /// Port to other processes; `None` without a rail.
    pub(crate) port: Option<Port>,
    pub(crate) keys: KeyTable,
    pub(crate) send_slots: SendSlots,
    contexts: AtomicU32,
    domains: AtomicU32,
    queue_pairs: Mutex<HashMap<QueuePairNumber, Weak<QueuePairCore>>>,
}

impl Device {
    /// Creates a device without a rail.
    ///
    /// **Errors**: an attribute is above the limit of any device; both faults and a link model.
    pub fn new(config: DeviceConfig) -> Result<Self> {
        Self::create(config, None)
    }

    /// Creates the device of this process, whose queue pairs can be connected to those of the
    /// devices of other processes by [`QueuePair::connect_to`](crate::QueuePair::connect_to). A
    /// message has at most 4 MiB. The fault plan applies to requests that queue pairs of this device post, also to
    /// those of other processes, whose data is then never copied at once. It does not apply to datagrams.
    ///
    /// The caller must call [`progress`](Self::progress) again and again: no other function polls
    /// the rail, and no thread does.
    ///
    /// **Errors**: as [`Device::new`].
    pub fn with_rail(mut config: DeviceConfig, rail: Arc<dyn Rail>) -> Result<Self> {
        let longest = &mut config.attributes.max_message_size;
        *longest = MAX_MESSAGE_OVER_RAIL.min(*longest);
        Self::create(config, Some(Port::new(rail)))
    }

    fn create(config: DeviceConfig, port: Option<Port>) -> Result<Self> {
        config.attributes.validate()?;
        if config.fault.is_some() && config.link.is_some() {
            return Err(Error::FaultsAndPrice);
        }
        let core = DeviceCore {
            name: config.name,
            link: Link::new(config.fault, config.link, config.phantom),
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

    /// Returns the name of the device.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Opens a new context, as a process would.
    pub fn open(&self) -> Context {
        Context::new(Arc::clone(&self.core), self.core.contexts.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Time of a link with a model. Without one these functions do nothing.
impl Device {
    /// Moves the time of the link forward, and carries out the requests whose messages arrive until
    /// then. Requests that are posted later are posted at that time.
    ///
    /// **Units**: nanoseconds.
    pub fn advance_link(&self, now_ns: u64) {
        self.advance_link_and(now_ns, |_, _| {});
    }

    /// Gives the link a clock, unless it has one: requests are then posted at its time, not at that
    /// of the last [`advance_link`](Self::advance_link), to which the time of the same clock is given.
    ///
    /// **Units**: nanoseconds.
    pub fn set_link_clock(&self, clock: impl Fn() -> u64 + Send + Sync + 'static) {
        if let Some(priced) = self.core.link.priced() {
            priced.follow(Box::new(clock));
        }
    }

    /// As [`Device::advance_link`]. Calls `carried_out` with the numbers of the requesting and of the
    /// responding context, by the order in which they were opened, for each queue pair whose
    /// requests may have been carried out, some of them twice.
    pub fn advance_link_and(&self, now_ns: u64, carried_out: impl FnMut(u32, u32)) {
        if let Some(priced) = self.core.link.priced() {
            priced.carry_out(now_ns, carried_out);
        }
    }

    /// Returns the time at which something happens next on the link, if nothing is posted before.
    ///
    /// **Units**: nanoseconds.
    pub fn next_on_link_ns(&self) -> Option<u64> {
        self.core.link.priced().and_then(PricedLink::next_ns)
    }
}

/// Communication with other processes. Without a rail these functions do nothing.
impl Device {
    /// Receives what has arrived by the rail, responds to it, and sends what could not be sent
    /// before. Returns the number of events of the rail, and of parts of operations that have ended; 0 while
    /// another thread makes progress.
    /// Datagrams are dropped.
    ///
    /// **Errors**: a peer has sent a malformed packet (the other packets are received all the
    /// same); a peer does not receive what is sent to it.
    pub fn progress(&self) -> Result<usize> {
        self.progress_and(|_, _| {})
    }

    /// As [`Device::progress`]. Calls `on_datagram` with each datagram and the process that has sent
    /// it, once the requests that have arrived with it were carried out. Nothing else arrives
    /// meanwhile; `on_datagram` may post requests and send datagrams.
    pub fn progress_and(&self, mut on_datagram: impl FnMut(u32, &[u8])) -> Result<usize> {
        let Some(port) = &self.core.port else { return Ok(0) };
        port.progress(&self.core, &mut on_datagram)
    }

    /// Sends a datagram to another process, whose [`progress_and`](Self::progress_and) passes it on: the bytes of
    /// `pieces`, one behind the other. Datagrams keep their order, and arrive no later than the requests that are sent
    /// after them.
    ///
    /// **Errors**: no such process, or this one; more bytes than [`MAX_PACKET`] allows; the
    /// process does not receive what was sent before.
    pub fn send_datagram(&self, process: u32, pieces: &[&[u8]]) -> Result<()> {
        self.core.check_process(process)?;
        if process == self.core.process() {
            return Err(Error::OwnProcess { process });
        }
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        within("datagram", bytes as u64, MAX_PACKET as u64 - 1)?;
        match &self.core.port {
            Some(port) => port.send_datagram(&self.core, process, pieces),
            None => Ok(()),
        }
    }

    /// Returns `true` if writes to a process, and reads, usually end in their post: the memory of both is
    /// mapped, and the link has no faults.
    pub fn maps_memory_of(&self, process: u32) -> bool {
        let is_mapped = self.core.port.as_ref().is_some_and(|port| port.maps(process));
        is_mapped && !self.core.link.has_faults()
    }

    /// Returns `true` if packets are queued that have not left this process.
    pub fn has_unsent(&self) -> bool {
        self.core.port.as_ref().is_some_and(Port::has_unsent)
    }

    /// Returns `true` if nothing arrives from a process any more. Requests to it fail with
    /// [`RetryExceeded`](crate::CompletionStatus::RetryExceeded).
    pub fn is_lost(&self, process: u32) -> bool {
        self.core.port.as_ref().is_some_and(|port| port.is_lost(process))
    }

    /// Returns the number of processes that are [lost](Self::is_lost), for callers that would ask for each of them
    /// again and again.
    #[inline]
    pub fn losses(&self) -> u32 {
        self.core.port.as_ref().map_or(0, Port::losses)
    }

    /// Returns `true` if a process is lost because it showed no life.
    pub fn is_silent(&self, process: u32) -> bool {
        self.core.port.as_ref().is_some_and(|port| port.is_silent(process))
    }

    /// Returns `true` if [`arm`](Self::arm) returns an object to sleep on, unless something waits for
    /// room that nothing announces.
    pub fn has_event(&self) -> bool {
        self.core.port.as_ref().is_some_and(Port::has_event)
    }

    /// Announces that the caller is about to sleep until something arrives from another process or
    /// can be sent, and says what it may sleep on. The next [`progress`](Self::progress), of any
    /// thread, takes the announcement back. What is sent meanwhile and finds no room is announced by
    /// [`call_if_unsent`](Self::call_if_unsent), if by nothing else.
    pub fn arm(&self) -> Armed<'_> {
        self.core.port.as_ref().map_or(Armed::Nothing, Port::arm)
    }

    /// Has `call` called, by the thread that sends, whenever something that is sent after
    /// [`arm`](Self::arm) finds no room at its receiver: what `arm` has returned does not announce that
    /// there is some again. Only the first `call` stays.
    pub fn call_if_unsent(&self, call: impl Fn() + Send + Sync + 'static) {
        if let Some(port) = &self.core.port {
            port.call_if_unsent(Box::new(call));
        }
    }

    /// Returns the number of packets ever sent to another process, and received from it: requests,
    /// responses and datagrams. A packet counts as sent while it waits to leave this process.
    pub fn traffic(&self, process: u32) -> (u64, u64) {
        self.core.port.as_ref().map_or((0, 0), |port| port.traffic(process))
    }
}

impl DeviceCore {
    /// Returns the number of this process.
    pub(crate) fn process(&self) -> u32 {
        self.port.as_ref().map_or(0, Port::process)
    }

    /// Returns an error if the rail has no such process.
    pub(crate) fn check_process(&self, process: u32) -> Result<()> {
        let processes = self.port.as_ref().map_or(1, Port::processes);
        let known = process < processes;
        if known { Ok(()) } else { Err(Error::NoSuchProcess { process, processes }) }
    }

    /// Returns once a delivery that is under way has ended.
    pub(crate) fn wait_for_delivery(&self) {
        self.port.iter().for_each(Port::wait_for_holder);
    }

    /// Returns a number that no other domain of the device has or had. A number that was used again
    /// would let the queue pairs of one domain reach the memory of another.
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

    /// Returns the most bytes that the queue pairs connected to a process may have sent and the
    /// process not yet received: requests of this end, and responses to those of the other.
    pub(crate) fn max_outstanding_to(&self, process: u32) -> u64 {
        let most = 2 * (u64::from(self.attributes.max_message_size) + MAX_HEAD as u64);
        let connected = |qp: &Arc<QueuePairCore>| qp.remote_peer.process() == Some(process);
        self.all().into_iter().filter(connected).count() as u64 * most
    }

    /// Returns all queue pairs of the device.
    pub(crate) fn all(&self) -> Vec<Arc<QueuePairCore>> {
        self.queue_pairs.lock().values().filter_map(Weak::upgrade).collect()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.core.name).finish_non_exhaustive()
    }
}
