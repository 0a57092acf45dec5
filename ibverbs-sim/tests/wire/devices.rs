//! Devices that a wire of sockets joins.

use std::sync::Arc;

use ibverbs_sim::*;

use crate::common::Joined;

/// Creates two devices for the ends of a test.
pub(crate) fn joined(config: &DeviceConfig) -> Joined {
    let wires = SocketWire::mesh(2).unwrap().into_iter();
    let rails = wires.map(|wire| Arc::new(Packets::new(Arc::new(wire))) as _).collect();
    Joined::on(rails, config)
}

/// Creates a device for each process.
pub(crate) fn devices(processes: u32) -> Vec<Device> {
    let wires = SocketWire::mesh(processes).unwrap();
    let on = |wire| Device::with_wire(DeviceConfig::default(), Arc::new(wire)).unwrap();
    wires.into_iter().map(on).collect()
}
