//! Keys of messages and selections of receives.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::rank::Rank;
use crate::select::Select;
use crate::status::Status;
use crate::tag::Tag;
use crate::transport::ContextId;

/// Key by which a message is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) context: ContextId,
    pub(crate) source: Rank,
    pub(crate) tag: Tag,
}

/// Stands for any source or tag: larger than every rank and every tag.
const ANY: u32 = u32::MAX;

/// Keys that a receive or probe accepts: one source or any, one tag or any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// Source (high half) and tag.
    from: u64,
    context: u32,
}

impl Selection {
    #[inline]
    pub(crate) fn new(context: ContextId, source: Select<Rank>, tag: Select<Tag>) -> Self {
        let source = match source {
            Select::Any => ANY,
            Select::Only(Rank(source)) => source,
        };
        let tag = match tag {
            Select::Any => ANY,
            Select::Only(Tag(tag)) => tag,
        };
        Selection { from: joined(source, tag), context: context.0 }
    }

    /// Hashes the selection to one of `places`, a power of two; neighbours in source or tag get
    /// different places.
    #[inline]
    pub(crate) fn place(&self, places: usize) -> usize {
        let mixed = self.from.wrapping_add((self.from >> 32) * 5).wrapping_add(self.context.into());
        mixed as usize & (places - 1)
    }

    #[inline]
    pub(crate) fn has_wildcard(&self) -> bool {
        self.from as u32 == ANY || (self.from >> 32) as u32 == ANY
    }
}

impl Key {
    /// Returns the status of a message of so many bytes.
    #[inline]
    pub(crate) fn status(&self, bytes: u64) -> Status {
        Status::new(self.source, self.tag, bytes)
    }

    /// Returns the selection of this source and tag only.
    #[inline]
    pub(crate) fn exact(&self) -> Selection {
        Selection { from: joined(self.source.0, self.tag.0), context: self.context.0 }
    }

    /// Returns the selections with a wildcard that accept this key.
    #[inline]
    pub(crate) fn wild(&self) -> [Selection; 3] {
        let Key { context, source: Rank(source), tag: Tag(tag) } = *self;
        [(source, ANY), (ANY, tag), (ANY, ANY)]
            .map(|(source, tag)| Selection { from: joined(source, tag), context: context.0 })
    }
}

#[inline]
fn joined(source: u32, tag: u32) -> u64 {
    u64::from(source) << 32 | u64::from(tag)
}

impl Hash for Selection {
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.from);
        hasher.write_u32(self.context);
    }
}

/// Hasher that multiplies and folds. Keys come from the program itself, so it need not resist
/// attacks.
#[derive(Default)]
pub(crate) struct Fold(u64);

pub(crate) type BuildFold = BuildHasherDefault<Fold>;

impl Hasher for Fold {
    #[inline]
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
