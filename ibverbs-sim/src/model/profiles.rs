//! The profiles that come with the crate.

use super::error::LinkModelError;

/// Names and texts.
const PROFILES: [(&str, &str); 10] = [
    ("ideal", include_str!("../../profiles/ideal.toml")),
    ("kunpeng-4x4", include_str!("../../profiles/kunpeng-4x4.toml")),
    ("hdr-infiniband", include_str!("../../profiles/hdr-infiniband.toml")),
    ("ethernet-25g", include_str!("../../profiles/ethernet-25g.toml")),
    ("mppa-cc", include_str!("../../profiles/mppa-cc.toml")),
    ("mppa-cc-dma", include_str!("../../profiles/mppa-cc-dma.toml")),
    ("mppa-io", include_str!("../../profiles/mppa-io.toml")),
    ("raw-gdn-v1", include_str!("../../profiles/raw-gdn-v1.toml")),
    ("raw-gdn-v2", include_str!("../../profiles/raw-gdn-v2.toml")),
    ("raw-gdn-v3", include_str!("../../profiles/raw-gdn-v3.toml")),
];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}

pub(super) fn text(name: &str) -> Result<&'static str, LinkModelError> {
    let found = PROFILES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| LinkModelError::UnknownProfile {
        name: name.to_owned(),
        known: names().collect::<Vec<_>>().join(", "),
    })
}
