//! Connected ends on two devices that a rail joins.

pub(crate) use crate::devices::devices;

pub(crate) use crate::common::settle;

use crate::common::{End, connect};
use ibverbs_sim::*;

/// Two connected ends with their devices.
pub(crate) struct ConnectedPair {
    pub(crate) a: End,
    pub(crate) b: End,
    devices: Vec<Device>,
}

impl ConnectedPair {
    /// Creates two ends in different processes.
    pub(crate) fn new() -> Self {
        Self::with(&Connection::default(), |_| {})
    }

    pub(crate) fn with(connection: &Connection, adjust: impl Fn(&mut QueuePairInit)) -> Self {
        Self::on(devices(2), connection, adjust)
    }

    /// Creates two ends on two devices.
    pub(crate) fn on(
        devices: Vec<Device>,
        connection: &Connection,
        adjust: impl Fn(&mut QueuePairInit),
    ) -> Self {
        let (a, b) = (End::new(&devices[0], &adjust), End::new(&devices[1], &adjust));
        a.queue_pair.connect_to(1, b.queue_pair.number(), connection).unwrap();
        b.queue_pair.connect_to(0, a.queue_pair.number(), connection).unwrap();
        Self { a, b, devices }
    }

    /// Creates two ends in one process, for comparison.
    pub(crate) fn in_one_process(connection: &Connection) -> Self {
        let device = Device::new(DeviceConfig::default()).unwrap();
        let (a, b) = (End::new(&device, |_| {}), End::new(&device, |_| {}));
        connect(&a, &b, connection);
        Self { a, b, devices: vec![device] }
    }

    pub(crate) fn device(&self, process: usize) -> &Device {
        &self.devices[process]
    }

    /// Moves packets until none are left.
    pub(crate) fn settle(&self) {
        settle(&self.devices);
    }
}
