//! The adapter: everything that its contexts share.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{
    Context, DeviceAttributes, FaultPlan, QueuePairNumber, Result,
    key_table::KeyTable,
    link::Link,
    queue_pair::{QueuePairCore, SendSlots},
};

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
        config.attributes.validate()?;
        let core = DeviceCore {
            name: config.name,
            link: Link::new(config.fault),
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

impl DeviceCore {
    pub(crate) fn next_domain(&self) -> u32 {
        self.domains.fetch_add(1, Ordering::Relaxed)
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

    /// Every queue pair there is.
    pub(crate) fn all(&self) -> Vec<Arc<QueuePairCore>> {
        self.queue_pairs.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Returns once every request that is being carried out now has ended. What the caller made
    /// unusable before is then used by nobody.
    pub(crate) fn wait_for_holders(&self) {
        for queue_pair in self.all() {
            queue_pair.wait_for_holder();
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.core.name).finish_non_exhaustive()
    }
}
