//! Attributes and limits of a device and its port. Every limit here is enforced.

use crate::{Error, Result, slab::MAX_SLOTS};

/// The longest scatter/gather list that any device of this crate supports.
pub(crate) const MAX_SGE: usize = 16;
const MAX_ENTRIES: u32 = 1 << 24;

/// Limits of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceAttributes {
    /// Queue pairs at one time.
    pub max_qp: u32,
    /// Outstanding requests of one send or receive queue.
    pub max_qp_wr: u32,
    /// Outstanding requests of one shared receive queue.
    pub max_srq_wr: u32,
    /// Entries of one scatter/gather list.
    pub max_sge: u32,
    /// Bytes of an inline payload.
    pub max_inline_data: u32,
    /// Entries of one completion queue.
    pub max_cqe: u32,
    /// Memory regions at one time.
    pub max_mr: u32,
    /// Bytes of one memory region.
    pub max_mr_size: u64,
    /// Bytes of one message.
    pub max_message_size: u32,
    /// READs and atomics that one queue pair may have outstanding, on either side.
    pub max_rd_atomic: u8,
}

impl Default for DeviceAttributes {
    fn default() -> Self {
        Self {
            max_qp: 1 << 18,
            max_qp_wr: 1 << 15,
            max_srq_wr: 1 << 20,
            max_sge: MAX_SGE as u32,
            max_inline_data: 512,
            max_cqe: 1 << 22,
            max_mr: 1 << 19,
            max_mr_size: 1 << 46,
            max_message_size: 1 << 30,
            max_rd_atomic: 16,
        }
    }
}

impl DeviceAttributes {
    /// Returns an error unless a device can be made with these limits.
    pub(crate) fn validate(&self) -> Result<()> {
        within("max_qp", self.max_qp, MAX_SLOTS)?;
        within("max_mr", self.max_mr, MAX_SLOTS)?;
        within("max_qp_wr", self.max_qp_wr, MAX_ENTRIES)?;
        within("max_srq_wr", self.max_srq_wr, MAX_ENTRIES)?;
        within("max_cqe", self.max_cqe, MAX_ENTRIES)?;
        within("max_sge", self.max_sge, MAX_SGE as u32)?;
        within("max_inline_data", self.max_inline_data, 1 << 20)?;
        within("max_message_size", self.max_message_size, 1 << 31)?;
        within("max_mr_size", self.max_mr_size, isize::MAX as u64)
    }
}

/// Returns an error if `requested` is above `limit`.
pub(crate) fn within<N: Into<u64>>(what: &'static str, requested: N, limit: N) -> Result<()> {
    let (requested, limit) = (requested.into(), limit.into());
    if requested > limit {
        return Err(Error::LimitExceeded { what, requested, limit });
    }
    Ok(())
}

/// Returns an error if `requested` is 0 or above `limit`.
pub(crate) fn within_nonzero(what: &'static str, requested: u32, limit: u32) -> Result<()> {
    if requested == 0 {
        return Err(Error::Zero { what });
    }
    within(what, requested, limit)
}

/// State of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortState {
    /// The port carries messages.
    Active,
    /// The port carries no messages: its context was killed.
    Down,
}

/// The port of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortAttributes {
    /// State of the port.
    pub state: PortState,
    /// Bytes of one message.
    pub max_message_size: u32,
    /// Number of the port, different from the ports of the device's other contexts.
    pub local_identifier: u32,
}
