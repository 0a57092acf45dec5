//! Numbers and texts of a block.

/// Appends a number in 32 bits.
pub(super) fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends a number in 64 bits.
pub(super) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends a text, cut where it exceeds what a block holds.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(1 << 16)];
    put_u32(out, text.len() as u32);
    out.extend_from_slice(text.as_bytes());
}

/// Reader of the fields of a block, each `None` once nothing is left that can be it.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.bytes().map(u8::from_le_bytes)
    }

    pub(super) fn bool(&mut self) -> Option<bool> {
        self.u8().and_then(|byte| [false, true].get(usize::from(byte)).copied())
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let len = self.u32()? as usize;
        let (text, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}
