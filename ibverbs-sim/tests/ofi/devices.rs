//! Devices that libfabric joins, over TCP of this machine.

use std::sync::Arc;

use ibverbs_sim::*;

use crate::common::Joined;

/// Creates two devices for the ends of a test; over sockets where libfabric is not installed.
pub(crate) fn joined(config: &DeviceConfig) -> Joined {
    if OfiProviders::find().is_err() {
        let wires = SocketWire::mesh(2).unwrap().into_iter();
        let rails = wires.map(|wire| Arc::new(Packets::new(Arc::new(wire))) as _).collect();
        return Joined::on(rails, config);
    }
    let rails = OfiRail::mesh(2, &choice()).unwrap();
    Joined::on(rails.into_iter().map(|rail| Arc::new(rail) as _).collect(), config)
}

/// Creates a device for each process; over sockets where libfabric is not installed.
pub(crate) fn devices(processes: u32) -> Vec<Device> {
    if let Err(error) = OfiProviders::find() {
        eprintln!("over sockets: {error}");
        let wires = SocketWire::mesh(processes).unwrap();
        let on = |wire| Device::with_wire(DeviceConfig::default(), Arc::new(wire)).unwrap();
        return wires.into_iter().map(on).collect();
    }
    let rails = OfiRail::mesh(processes, &choice()).unwrap();
    let on = |rail| Device::with_rail(DeviceConfig::default(), Arc::new(rail)).unwrap();
    rails.into_iter().map(on).collect()
}

/// Returns the provider that the environment asks for, in `IBVERBS_SIM_TEST_OFI`, or else that which is chosen
/// unasked.
pub(crate) fn choice() -> OfiChoice {
    let asked = std::env::var("IBVERBS_SIM_TEST_OFI");
    asked.map_or_else(|_| OfiChoice::default(), |choice| choice.parse().unwrap())
}
