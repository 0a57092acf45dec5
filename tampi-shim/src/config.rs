//! Settings of [`exec`](crate::exec()).

use std::time::Duration;

use crate::error::Error;
use crate::protocols::Protocols;
use crate::transport::verbs;

/// The settings of [`exec`](crate::exec()).
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of ranks, 1 to 1024.
    pub ranks: u32,
    /// Settings of the runtime that all ranks share. Its sets of workers are divided among the ranks: with as
    /// many sets as ranks, each rank has workers of its own.
    pub runtime: talpf_runtime::Config,
    /// Settings of the device that carries the messages. In virtual time messages arrive
    /// exactly when a link model says, in real time no earlier.
    pub device: ibverbs_sim::DeviceConfig,
    /// Thresholds between the protocols of messages; `None` for [`Protocols::measured`].
    pub protocols: Option<Protocols>,
    /// Period of the polling tasks in virtual time; `None` if they find at once what arrives. In real
    /// time they adapt.
    pub polling: Option<Duration>,
    /// Bytes of unexpected short messages that a rank keeps until they are received, for all peers
    /// together. Messages beyond that stay with their senders.
    pub unexpected_limit: usize,
    /// Bytes of messages that a rank copies so that their sends end without waiting for the
    /// receiver.
    pub buffer_limit: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            ranks: 1,
            runtime: talpf_runtime::Config::default(),
            device: ibverbs_sim::DeviceConfig::default(),
            protocols: None,
            polling: None,
            unexpected_limit: 16 << 20,
            buffer_limit: 64 << 20,
        }
    }
}

/// Maximum number of ranks in one process.
const MAX_RANKS: u32 = 1024;

impl Config {
    /// Estimates the memory of the connections of all ranks in this process, in bytes, if each rank
    /// has exchanged messages with `peers` others.
    pub fn connections_bytes(&self, peers: u32) -> u64 {
        verbs::connections_bytes(self.ranks, peers.min(self.ranks))
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        limit("number of ranks", u64::from(self.ranks), 1, u64::from(MAX_RANKS))
    }
}

fn limit(what: &'static str, value: u64, least: u64, most: u64) -> Result<(), Error> {
    if value < least {
        Err(Error::Limit { what, value, limit: least })
    } else if value > most {
        Err(Error::Limit { what, value, limit: most })
    } else {
        Ok(())
    }
}
