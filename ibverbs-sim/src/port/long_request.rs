//! Numbers of long requests, whose data the rail moves.

use crate::QueuePairNumber;

/// Request of a queue pair whose data the rail writes or reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongRequest {
    pub(crate) queue_pair: QueuePairNumber,
    /// Low bits of the number of the connection, which a reset changes.
    pub(crate) connection: u8,
    /// Sequence number of the request, of 24 bits.
    pub(crate) psn: u32,
}

impl LongRequest {
    /// Returns the number by which the rail names the request.
    pub(crate) fn number(self) -> u64 {
        let low = u32::from(self.connection) << 24 | self.psn;
        u64::from(self.queue_pair.0) << 32 | u64::from(low)
    }

    pub(super) fn from_number(number: u64) -> Self {
        let low = number as u32;
        Self {
            queue_pair: QueuePairNumber((number >> 32) as u32),
            connection: (low >> 24) as u8,
            psn: low & 0xff_ffff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_by_its_number() {
        for (queue_pair, connection, psn) in [(1, 0, 0), (u32::MAX, u8::MAX, 0xff_ffff), (7, 3, 9)]
        {
            let request = LongRequest { queue_pair: QueuePairNumber(queue_pair), connection, psn };
            assert_eq!(LongRequest::from_number(request.number()), request);
        }
    }
}
