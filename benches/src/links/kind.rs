//! Rails that are measured.

use std::str::FromStr;

use ibverbs_sim::OfiChoice;

/// A rail, and the provider of libfabric for it if it is on that.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The rail.
    pub kind: Kind,
    /// Provider of libfabric.
    pub choice: OfiChoice,
}

/// Rails that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Shared memory.
    Shm,
    /// Packets over sockets.
    Packets,
    /// A provider of libfabric.
    Ofi,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Shm, Self::Packets, Self::Ofi];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Packets => "packets",
            Self::Ofi => "ofi",
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("no rail is called `{name}`"))
    }
}
