//! Settings of a run.

use crate::error::Error;
use crate::protocols::Protocols;
use crate::transport::verbs;

/// The settings of [`exec`](crate::exec).
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of ranks, 1 to 1024.
    pub ranks: u32,
    /// The runtime that all ranks share.
    pub runtime: talpf_runtime::Config,
    /// The device that carries the messages.
    pub device: ibverbs_sim::DeviceConfig,
    /// Which protocol carries a message; `None` for what fits the measured costs and the
    /// environment.
    pub protocols: Option<Protocols>,
    /// Bytes of short messages that a rank keeps until they are received, for all peers together.
    /// What comes beyond that stays with its sender.
    pub unexpected_limit: usize,
    /// Bytes of messages that a rank copies so that their sends need not wait.
    pub buffer_limit: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            ranks: 1,
            runtime: talpf_runtime::Config::default(),
            device: ibverbs_sim::DeviceConfig::default(),
            protocols: None,
            unexpected_limit: 16 << 20,
            buffer_limit: 64 << 20,
        }
    }
}

/// Most ranks in one process.
const MAX_RANKS: u32 = 1024;

impl Config {
    /// Bytes that ranks in one process need for their connections, about, if each has exchanged
    /// messages with `peers` others.
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
