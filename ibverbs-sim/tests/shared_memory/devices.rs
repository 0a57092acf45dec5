//! Devices that share memory.

use std::sync::Arc;

use ibverbs_sim::*;

/// Creates a device for each process.
pub(crate) fn devices(processes: u32) -> Vec<Device> {
    let rails = ShmRail::mesh(processes, &ShmConfig::default()).unwrap();
    let on = |rail| Device::with_rail(DeviceConfig::default(), Arc::new(rail)).unwrap();
    rails.into_iter().map(on).collect()
}
