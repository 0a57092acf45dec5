use ibverbs_sim::FaultPlan;
use tampi_shim::{Communicator, Error, Rank, Tag};

use crate::common::{config, nothing_is_left, pattern, run, run_well, with_protocols};

async fn around(world: Communicator) -> Result<(), Error> {
    let (rank, size) = (world.rank().0, world.size());
    let (left, right) = (Rank((rank + size - 1) % size), Rank((rank + 1) % size));
    for (number, length) in [1usize, 30, 100, 1000, 20_000].into_iter().cycle().take(40).enumerate()
    {
        let number = number as u32;
        let send = world.isend(pattern(number, length), right, Tag(0));
        let (bytes, _) = world.recv(vec![0u8; length], left, Tag(0)).await?;
        assert!(bytes == pattern(number, length));
        send.await?;
    }
    nothing_is_left(&world).await;
    Ok(())
}

fn with(fault: FaultPlan) {
    for workers in [1, 2] {
        let mut config = with_protocols(config(2, workers), 200, 1000);
        config.device.fault = Some(fault.clone());
        run_well(config, around);
    }
}

#[test]
fn what_arrives_twice_counts_once() {
    with(FaultPlan { seed: 1, duplicate_ppm: 300_000, ..FaultPlan::default() });
}

#[test]
fn what_is_lost_or_late_arrives_in_order() {
    with(FaultPlan {
        seed: 2,
        drop_request_ppm: 20_000,
        drop_response_ppm: 20_000,
        delay_ppm: 100_000,
        max_delay_ns: 20_000,
        ..FaultPlan::default()
    });
}

#[test]
fn a_link_that_is_cut_fails_the_run() {
    let mut config = config(2, 2);
    let drop_request_ppm = 1_000_000;
    config.device.fault = Some(FaultPlan { seed: 3, drop_request_ppm, ..FaultPlan::default() });
    let error = run(config, around).expect_err("nothing arrives");
    assert!(matches!(error, Error::WorkRequest { .. }), "{error}");
}
