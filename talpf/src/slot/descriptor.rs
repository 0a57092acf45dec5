//! The description of a slot at one rank, which its peers get when it is registered.

use ibverbs_sim::RemoteKey;

/// The memory of a slot at one rank, as its peers need it: `rows x cols` elements, row after row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SlotDescriptor {
    pub(super) address: u64,
    pub(super) key: RemoteKey,
    pub(super) rows: u64,
    pub(super) cols: u64,
    pub(super) element_bytes: u64,
    pub(super) raw: bool,
}

impl SlotDescriptor {
    /// Returns the number of elements.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.rows * self.cols
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let SlotDescriptor { address, key, rows, cols, element_bytes, raw } = self;
        let mut bytes = Vec::new();
        for number in [address, rows, cols, element_bytes] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(key.to_u32().to_le_bytes());
        bytes.push(u8::from(raw));
        bytes
    }

    /// Decodes a descriptor. `None` if the bytes are not one, or one of more memory than there can
    /// be.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.split_at_checked(4 * 8)?;
        let (numbers, _) = numbers.as_chunks::<8>();
        let [address, rows, cols, element_bytes] = numbers.as_array::<4>()?;
        let [address, rows, cols, element_bytes] =
            [address, rows, cols, element_bytes].map(|number| u64::from_le_bytes(*number));
        let (key, raw) = rest.split_first_chunk()?;
        let raw = match raw {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let end = rows.checked_mul(cols)?.checked_mul(element_bytes)?.checked_add(address);
        let key = RemoteKey::from_u32(u32::from_le_bytes(*key));
        end.map(|_| SlotDescriptor { address, key, rows, cols, element_bytes, raw })
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_descriptor_comes_back(
            address in 0..1u64 << 47, key: u32, rows: u32, cols in 0..1u64 << 20,
            element_bytes in 0..64u64, raw: bool,
        ) {
            let key = RemoteKey::from_u32(key);
            let rows = u64::from(rows);
            let sent = SlotDescriptor { address, key, rows, cols, element_bytes, raw };
            prop_assert_eq!(SlotDescriptor::from_bytes(&sent.to_bytes()), Some(sent));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            let _ = SlotDescriptor::from_bytes(&bytes);
        }
    }

    #[test]
    fn more_elements_than_memory_has_bytes_are_refused() {
        let key = RemoteKey::from_u32(1);
        let (address, element_bytes, raw) = (0, 1, false);
        let of = |rows, cols| {
            let sent = SlotDescriptor { address, key, rows, cols, element_bytes, raw };
            SlotDescriptor::from_bytes(&sent.to_bytes())
        };
        assert!(of(u64::MAX, 1).is_some() && of(1 << 32, 1 << 32).is_none());
    }
}
