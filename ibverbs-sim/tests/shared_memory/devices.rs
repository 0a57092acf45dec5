//! Devices that share memory.

use std::sync::Arc;

use ibverbs_sim::*;

use crate::common::Joined;

/// Creates two devices for the ends of a test.
pub(crate) fn joined(config: &DeviceConfig) -> Joined {
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    Joined::on(rails.into_iter().map(|rail| Arc::new(rail) as _).collect(), config)
}

/// Creates a device for each process.
pub(crate) fn devices(processes: u32) -> Vec<Device> {
    with_rails(processes).1
}

/// Creates a device for each process, and returns the rails under them, too.
pub(crate) fn with_rails(processes: u32) -> (Vec<Arc<ShmRail>>, Vec<Device>) {
    let rails = ShmRail::mesh(processes, &ShmConfig::default()).unwrap();
    let rails: Vec<_> = rails.into_iter().map(Arc::new).collect();
    let on = |rail: &Arc<ShmRail>| {
        Device::with_rail(DeviceConfig::default(), Arc::clone(rail) as _).unwrap()
    };
    let devices = rails.iter().map(on).collect();
    (rails, devices)
}
