//! Ends of an operation, as a program names them.

use crate::slot_id::SlotId;

/// Far end of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Far {
    pub(crate) pid: u32,
    pub(crate) slot: SlotId,
    pub(crate) offset: usize,
}

/// Near end of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near {
    pub(crate) slot: SlotId,
    pub(crate) offset: usize,
}
