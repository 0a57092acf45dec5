//! Connected ends on two devices that a rail joins.

pub(crate) use crate::devices::devices;

use crate::common::{End, device};
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
        let device = device();
        let (a, b) = crate::common::pair_on(&device, connection);
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

/// Moves packets until none are left: what one side has sent can be received by the other at once, or soon.
pub(crate) fn settle(devices: &[Device]) {
    let moved = || devices.iter().map(|device| device.progress().unwrap()).sum::<usize>();
    while moved() > 0 || devices.iter().any(Device::has_unsent) || are_under_way(devices) {}
}

/// Returns `true` if packets between the devices, one of each process, have not arrived.
fn are_under_way(devices: &[Device]) -> bool {
    let processes = || (0..).zip(devices);
    let mut pairs = processes().flat_map(|from| processes().map(move |to| (from, to)));
    pairs.any(|((from, sender), (to, receiver))| {
        from != to && sender.traffic(to).0 != receiver.traffic(from).1
    })
}
