//! Devices of a test: one, or two on the rails that `IBVERBS_SIM_TEST_RAIL` names: `packets`, `shm` or `ofi`.

use std::sync::Arc;

use ibverbs_sim::*;

use crate::common::Joined;

pub(crate) fn joined(config: &DeviceConfig) -> Joined {
    let Ok(name) = std::env::var("IBVERBS_SIM_TEST_RAIL") else {
        return Joined { devices: vec![Device::new(config.clone()).unwrap()], rails: Vec::new() };
    };
    let rails: Vec<Arc<dyn Rail>> = match &*name {
        "packets" => {
            let wires = SocketWire::mesh(2).unwrap().into_iter();
            wires.map(|wire| Arc::new(Packets::new(Arc::new(wire))) as _).collect()
        }
        "shm" => {
            let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
            rails.into_iter().map(|rail| Arc::new(rail) as _).collect()
        }
        "ofi" => {
            let rails = OfiRail::mesh(2, &OfiChoice::default()).unwrap();
            rails.into_iter().map(|rail| Arc::new(rail) as _).collect()
        }
        other => panic!("IBVERBS_SIM_TEST_RAIL is {other}, not packets, shm or ofi"),
    };
    Joined::on(rails, config)
}
