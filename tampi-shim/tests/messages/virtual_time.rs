//! Messages in virtual time: those of real runs, and times of the link model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ibverbs_sim::{DeviceConfig, LinkModel};
use talpf_runtime::VirtualTime;
use tampi_shim::{Communicator, Config, Error, Rank, Tag};

use crate::common::{pattern, run, with_protocols};

fn simulated(ranks: u32, link: &str) -> Config {
    let mut config = with_protocols(Config { ranks, ..Config::default() }, 200, 0);
    let costs = Arc::new(BTreeMap::new());
    config.runtime.virtual_time = Some(VirtualTime { cores: 2, task_overhead_ns: 0, costs });
    let link = Some(LinkModel::parse(link).unwrap());
    config.device = DeviceConfig { link, ..DeviceConfig::default() };
    config
}

/// Sends a message of `bytes` there and back five times. Returns the time of the last round.
async fn ping_pong(world: Communicator, bytes: usize) -> Result<u64, Error> {
    let other = Rank(1 - world.rank().0);
    let (mut message, mut round_ns) = (pattern(7, bytes), 0);
    for _ in 0..5 {
        let start_ns = world.group().clock().now_ns();
        if world.rank() == Rank(0) {
            world.send(message, other, Tag(0)).await?;
            message = world.recv(vec![0; bytes], other, Tag(0)).await?.0;
        } else {
            message = world.recv(vec![0; bytes], other, Tag(0)).await?.0;
            message = world.send(message, other, Tag(0)).await?;
        }
        assert!(message == pattern(7, bytes) || world.rank() == Rank(1));
        round_ns = world.group().clock().now_ns() - start_ns;
    }
    Ok(round_ns)
}

#[test]
fn a_short_message_takes_the_latency_and_its_cell() {
    for link in ["ideal", "latency=1us", "latency=3us,bandwidth=1GB/s"] {
        let round = |config| run(config, |world| ping_pong(world, 8)).unwrap()[0];
        // A cell of 64 bytes.
        let expected = match link {
            "ideal" => 0,
            "latency=1us" => 2 * 1_000,
            _ => 2 * (3_000 + 64),
        };
        assert_eq!(round(simulated(2, link)), expected, "{link}");
    }
}

#[test]
fn a_long_message_takes_its_bytes_and_its_handshake() {
    let config = simulated(2, "latency=1us,bandwidth=1GB/s");
    let round_ns = run(config, |world| ping_pong(world, 100_000)).unwrap()[0];
    assert!((202_000..220_000).contains(&round_ns), "{round_ns}");
}

#[test]
fn polls_are_at_multiples_of_the_period() {
    let config = Config { polling: Some(Duration::from_micros(10)), ..simulated(2, "latency=1us") };
    let round_ns = run(config, |world| ping_pong(world, 8)).unwrap()[0];
    assert_eq!(round_ns, 20_000);
}

/// Everybody sends to everybody, in short and in long messages, before it receives any.
async fn all_to_all(world: Communicator) -> Result<u64, Error> {
    let length = |message: u32| [0, 8, 100, 700, 5000][message as usize % 5];
    let mut sends = Vec::new();
    for message in 0..12 {
        for to in 0..world.size() {
            let bytes = pattern(world.rank().0 * 1000 + message, length(message));
            sends.push(world.isend(bytes, Rank(to), Tag(message)));
        }
    }
    for message in (0..12).rev() {
        for from in 0..world.size() {
            let buffer = vec![0u8; length(message)];
            let (bytes, _) = world.recv(buffer, Rank(from), Tag(message)).await?;
            assert!(bytes == pattern(from * 1000 + message, length(message)));
        }
    }
    for send in sends {
        send.await?;
    }
    world.barrier().await?;
    Ok(world.group().clock().now_ns())
}

#[test]
fn everybody_sends_before_anybody_receives_and_two_runs_are_alike() {
    for ranks in [1, 2, 8] {
        let once = || run(simulated(ranks, "kunpeng-4x4"), all_to_all).unwrap();
        let times = once();
        assert!(times[0] > 0 || ranks == 1);
        assert_eq!(times, once(), "{ranks} ranks");
    }
}

#[test]
fn a_receive_without_a_send_is_a_hang() {
    let error = run(simulated(2, "latency=1us"), async |world| {
        if world.rank() == Rank(0) {
            world.recv(vec![0_u8; 8], Rank(1), Tag(0)).await?;
        }
        Ok(())
    });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("a message to arrive") || error.contains("hang"), "{error}");
}

#[test]
fn in_real_time_messages_take_at_least_as_long() {
    for (workers, bytes) in [(1, 8), (2, 8), (1, 100_000), (2, 100_000)] {
        let mut config = simulated(2, "latency=300us,bandwidth=1GB/s");
        config.runtime.virtual_time = None;
        config.runtime.workers = workers;
        let least_ns = 2 * (300_000 + bytes as u64);
        for round_ns in run(config, move |world| ping_pong(world, bytes)).unwrap() {
            assert!(round_ns >= least_ns, "{bytes} bytes: {round_ns} ns, at least {least_ns}");
        }
    }
}
