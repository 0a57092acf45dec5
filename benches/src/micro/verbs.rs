//! Cost of one request on the device: post, execution, and polling at both ends.
#![allow(unsafe_code, reason = "registers a buffer of its own with the device")]

use std::ptr::NonNull;
use std::time::Instant;

use ibverbs_sim::{
    Access, Connection, Device, DeviceConfig, Operation, Payload, QueuePairInit,
    ReceiveWorkRequest, SendFlags, SendWorkRequest, WorkCompletion,
};

use super::Result;
use crate::measure::Report;

const REQUESTS: usize = 100_000;

/// Measures 8-byte writes with immediate, signalled, in one thread that polls both completion
/// queues and posts the receive again.
pub(super) fn measure(report: &mut Report) -> Result<()> {
    if !report.wants("verbs.post_poll_ns") {
        return Ok(());
    }
    let mut memory = [0u64; 1];
    let device = Device::new(DeviceConfig::default())?;
    let (here, there) = (device.open(), device.open());
    let domain = there.allocate_protection_domain();
    let start = NonNull::from(&mut memory).cast();
    // SAFETY: `memory` outlives `region`, and nothing else uses it until that is dropped.
    let region = unsafe { domain.register(start, 8, Access::ALL)? };
    let (sent, arrived) =
        (here.create_completion_queue(64, None)?, there.create_completion_queue(64, None)?);
    let a =
        here.allocate_protection_domain().create_queue_pair(&QueuePairInit::new(&sent, &sent))?;
    let b = domain.create_queue_pair(&QueuePairInit::new(&arrived, &arrived))?;
    a.connect(b.number(), &Connection::default())?;
    b.connect(a.number(), &Connection::default())?;
    let receive = [ReceiveWorkRequest { wr_id: 0, scatter: &[] }];
    b.post_receive(&receive).map_err(|error| error.reason)?;
    let mut samples = Vec::new();
    for _ in 0..=crate::measure::REPETITIONS {
        let mut completions = [WorkCompletion::default(); 8];
        let start = Instant::now();
        for number in 0..REQUESTS as u64 {
            let operation = Operation::WriteWithImmediate { remote: region.at(0), immediate: 1 };
            let payload = number.to_ne_bytes();
            a.post_send(&[SendWorkRequest {
                wr_id: number,
                operation,
                payload: Payload::Inline(&payload),
                flags: SendFlags::SIGNALLED,
            }])
            .map_err(|error| error.reason)?;
            let taken = sent.poll(&mut completions) + arrived.poll(&mut completions);
            assert_eq!(taken, 2);
            b.post_receive(&receive).map_err(|error| error.reason)?;
        }
        samples.push(start.elapsed().as_nanos() as f64 / REQUESTS as f64);
    }
    samples.remove(0);
    report.add("verbs.post_poll_ns", "ns", samples);
    drop(region);
    Ok(())
}
