//! MPI as a wire: packets arrive whole, in order, and from whom they say.

use std::sync::Arc;
use std::thread;

use ibverbs_sim::{Device, DeviceConfig};
use tampi_shim::mpi::{Library, MpiWire};

use crate::harness::{ALL, Case};

pub(crate) const CASES: &[Case] =
    &[Case::new("datagrams_over_a_wire_keep_their_order", ALL, datagrams)];

/// Short ones, long ones, and some that MPI does not take before they are received.
const LENGTHS: [usize; 6] = [0, 1, 500, 100_000, 3, 3_000_000];

fn datagrams() {
    let wire = Arc::new(MpiWire::new(Library::initialize().unwrap()));
    let device = Device::with_wire(DeviceConfig::default(), Arc::clone(&wire) as _).unwrap();
    let (here, all) = (ibverbs_sim::Wire::process(&*wire), ibverbs_sim::Wire::processes(&*wire));
    let others: Vec<u32> = (0..all).filter(|other| *other != here).collect();
    let datagram = |from: u32, length: usize| vec![from as u8 + 1; length];
    for length in LENGTHS {
        for other in &others {
            device.send_datagram(*other, &[&datagram(here, length)]).unwrap();
        }
    }
    let mut come = vec![0; all as usize];
    while others.iter().any(|other| come[*other as usize] < LENGTHS.len()) || device.has_unsent() {
        let taken = device.progress_and(|from, bytes| {
            let nth = &mut come[from as usize];
            assert!(bytes == datagram(from, LENGTHS[*nth]), "datagram {nth} from {from}");
            *nth += 1;
        });
        taken.unwrap();
        thread::yield_now();
    }
}
