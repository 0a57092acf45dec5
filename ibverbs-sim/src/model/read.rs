//! Link models from text.

use super::document;
use super::error::LinkModelError;
use super::keys;
use super::link_model::LinkModel;
use super::profiles;

impl LinkModel {
    /// Reads a list such as `latency=2us,bandwidth=10GB/s`, or the name of a profile, which further
    /// keys may follow: `hdr-infiniband,latency=5us`. Figures that are not given cost nothing.
    ///
    /// **Errors**: a key or a value that is not allowed, with the allowed ones.
    pub fn parse(text: &str) -> Result<Self, LinkModelError> {
        let (name, entries) = document::read_list(text)?;
        let base = name.map_or(Ok(LinkModel::IDEAL), Self::profile)?;
        keys::build(base, &entries)
    }

    /// Reads the table `link` of a profile in TOML. Other tables are left to others.
    ///
    /// **Errors**: a key or a value that is not allowed, with its line and the allowed ones.
    pub fn from_toml(text: &str) -> Result<Self, LinkModelError> {
        keys::build(LinkModel::IDEAL, &document::read_document(text)?)
    }

    /// Returns a profile that comes with the crate.
    ///
    /// **Errors**: no such profile.
    pub fn profile(name: &str) -> Result<Self, LinkModelError> {
        Self::from_toml(Self::profile_text(name)?)
    }

    /// Returns the text of a profile that comes with the crate.
    ///
    /// **Errors**: no such profile.
    pub fn profile_text(name: &str) -> Result<&'static str, LinkModelError> {
        profiles::text(name)
    }

    /// Returns the names of the profiles that come with the crate.
    pub fn profiles() -> impl Iterator<Item = &'static str> {
        profiles::names()
    }
}
