//! Devices that a wire of sockets joins.

use std::sync::Arc;

use ibverbs_sim::*;

/// Creates a device for each process.
pub(crate) fn devices(processes: u32) -> Vec<Device> {
    let wires = SocketWire::mesh(processes).unwrap();
    let on = |wire| Device::with_wire(DeviceConfig::default(), Arc::new(wire)).unwrap();
    wires.into_iter().map(on).collect()
}
