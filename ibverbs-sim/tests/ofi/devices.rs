//! Devices that libfabric joins, over TCP of this machine.

use std::sync::Arc;

use ibverbs_sim::*;

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
