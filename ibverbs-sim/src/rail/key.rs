//! Keys of registered memory, as peers exchange them.

/// Key of memory that was registered with a rail. Its bytes are opaque to everybody but the rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RailKey {
    bytes: [u8; Self::MAX_BYTES],
    length: u8,
}

impl RailKey {
    /// Most bytes of a key.
    pub const MAX_BYTES: usize = 32;

    /// Makes a key of bytes that a peer has sent. Returns `None` if no key is that long.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut key = Self { bytes: [0; Self::MAX_BYTES], length: bytes.len() as u8 };
        key.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(key)
    }

    /// Returns the bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub(super) fn from_number(number: u64) -> Self {
        let mut bytes = [0; Self::MAX_BYTES];
        bytes[..size_of::<u64>()].copy_from_slice(&number.to_le_bytes());
        Self { bytes, length: size_of::<u64>() as u8 }
    }

    /// Returns the number that the key was made of; 0, which is no key, for one of other bytes.
    pub(super) fn number(&self) -> u64 {
        self.as_bytes().try_into().map_or(0, u64::from_le_bytes)
    }
}

/// Address in the memory of a peer: a key, and the offset from the start of what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RailAddress {
    /// Key of the memory.
    pub key: RailKey,
    /// Offset from the start of the memory.
    pub offset: u64,
}
