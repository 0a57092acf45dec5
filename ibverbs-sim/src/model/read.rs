//! Link models from text.

use super::document::{self, Entry};
use super::error::LinkModelError;
use super::keys;
use super::link_model::LinkModel;
use super::profiles;
use super::quantity::Span;

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

    /// Returns the keys of another table of a profile, for those who have figures there.
    ///
    /// **Errors**: the text is no TOML, or has something else of that name.
    pub fn table(text: &str, name: &str) -> Result<Vec<Entry>, LinkModelError> {
        document::read_table(text, name)
    }

    /// Reads a time from 0ns to 3600s, such as `1.5us`. **Units**: picoseconds.
    pub fn parse_time(text: &str) -> Option<u64> {
        Span::parse(text, None).map(Span::ps)
    }
}
