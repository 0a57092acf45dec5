//! Ready-to-receive messages (RTR) of a peer, kept at the sender until their messages are sent.
//!
//! An RTR names the receive that the *next* message of its context and tag is for, as the peer knew
//! when it had taken a number of cells. It is void if a message of that context and tag was sent
//! after those cells: the peer will match that message to the receive in the usual way. An RTR also
//! names the receive before its own; it is valid only if the RTR of that one is in the table, so
//! that the two are taken in the right order. The numbers of the last messages are kept by a hash
//! of context and tag. Two envelopes in one bucket make RTRs void, which costs time only.
//!
//! Every message takes the oldest RTR of its context and tag, even if it cannot use it.

use std::collections::VecDeque;

use super::cell::RemoteLayout;
use crate::matching::Key;
use crate::tag::Tag;
use crate::transport::ContextId;

/// Buckets of the hash of context and tag.
const BUCKETS: usize = 64;

/// Context and tag of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContextTag {
    pub(super) context: ContextId,
    pub(super) tag: Tag,
}

/// Ready-to-receive message: a receive and the layout of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rtr {
    pub(super) context_tag: ContextTag,
    pub(super) remote: RemoteLayout,
    /// Number that the peer gives the receive.
    pub(super) receive: u64,
    /// Slot of the receive of the same context and tag before it, if there is one.
    pub(super) previous: Option<u32>,
    /// Number of cells that the peer had taken, wrapping.
    pub(super) taken: u32,
}

/// Table of the valid RTRs of a peer.
pub(super) struct RtrTable {
    held: VecDeque<Rtr>,
    /// Number of the cell after the last message, by bucket, wrapping.
    last: [u32; BUCKETS],
}

impl Default for RtrTable {
    fn default() -> Self {
        RtrTable { held: VecDeque::new(), last: [0; BUCKETS] }
    }
}

impl ContextTag {
    #[inline]
    pub(super) fn of(key: &Key) -> Self {
        ContextTag { context: key.context, tag: key.tag }
    }

    #[inline]
    fn bucket(&self) -> usize {
        let mixed = (self.tag.0 ^ self.context.0.rotate_left(16)).wrapping_mul(0x9e37_79b9);
        (mixed >> 26) as usize % BUCKETS
    }
}

impl RtrTable {
    /// Inserts an RTR if it is still valid.
    pub(super) fn insert(&mut self, rtr: Rtr) {
        let last = self.last[rtr.context_tag.bucket()];
        let is_late = last.wrapping_sub(rtr.taken) as i32 > 0;
        let follows = match rtr.previous {
            None => true,
            Some(slot) => {
                let previous =
                    self.held.iter().rev().find(|held| held.context_tag == rtr.context_tag);
                previous.is_some_and(|held| held.receive as u32 == slot)
            }
        };
        if !is_late && follows {
            self.held.push_back(rtr);
        }
    }

    /// Takes the RTR for a message that is being sent; `tail` is the number of the cell after it.
    #[inline]
    pub(super) fn take(&mut self, context_tag: ContextTag, tail: u64) -> Option<Rtr> {
        self.last[context_tag.bucket()] = tail as u32;
        if self.held.is_empty() {
            return None;
        }
        let index = self.held.iter().position(|held| held.context_tag == context_tag)?;
        self.held.remove(index)
    }

    /// Removes the RTR of a receive that is to be cancelled.
    pub(super) fn cancel(&mut self, receive: u64) {
        self.held.retain(|held| held.receive != receive);
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn context_tag(tag: u32) -> ContextTag {
        ContextTag { context: ContextId(0), tag: Tag(tag) }
    }

    fn rtr(tag: u32, receive: u64, previous: Option<u32>, taken: u32) -> Rtr {
        let remote = RemoteLayout { address: 0, key: 0, rows: 1, row_bytes: 1, stride_bytes: 0 };
        Rtr { context_tag: context_tag(tag), remote, receive, previous, taken }
    }

    fn taken(rtrs: &mut RtrTable, tag: u32, cell: u64) -> Option<u64> {
        rtrs.take(context_tag(tag), cell + 1).map(|rtr| rtr.receive)
    }

    #[test]
    fn rtrs_are_taken_in_order_by_context_and_tag() {
        let mut rtrs = RtrTable::default();
        rtrs.insert(rtr(1, 10, None, 0));
        rtrs.insert(rtr(2, 20, None, 0));
        rtrs.insert(rtr(1, 11, Some(10), 0));
        assert_eq!(taken(&mut rtrs, 1, 0), Some(10));
        assert_eq!(taken(&mut rtrs, 1, 1), Some(11));
        assert_eq!(taken(&mut rtrs, 1, 2), None);
        assert_eq!(taken(&mut rtrs, 2, 3), Some(20));
    }

    #[test]
    fn a_message_that_crossed_the_rtr_makes_it_void() {
        let mut rtrs = RtrTable::default();
        assert_eq!(taken(&mut rtrs, 1, 5), None);
        rtrs.insert(rtr(1, 10, None, 5));
        assert_eq!(taken(&mut rtrs, 1, 6), None, "cell 5 was not taken yet");
        rtrs.insert(rtr(1, 11, None, 7));
        assert_eq!(taken(&mut rtrs, 1, 7), Some(11));
    }

    #[test]
    fn an_rtr_behind_a_void_one_is_void() {
        let mut rtrs = RtrTable::default();
        assert_eq!(taken(&mut rtrs, 1, 5), None);
        rtrs.insert(rtr(1, 10, None, 5));
        rtrs.insert(rtr(1, 11, Some(10), 6));
        assert_eq!(taken(&mut rtrs, 1, 6), None);
    }

    #[test]
    fn counts_go_round() {
        let mut rtrs = RtrTable::default();
        let cell = u64::from(u32::MAX);
        assert_eq!(taken(&mut rtrs, 1, cell), None);
        rtrs.insert(rtr(1, 10, None, u32::MAX));
        assert_eq!(taken(&mut rtrs, 1, cell + 1), None);
        rtrs.insert(rtr(1, 11, None, 1));
        assert_eq!(taken(&mut rtrs, 1, cell + 2), Some(11));
    }

    #[test]
    fn a_cancelled_rtr_is_gone() {
        let mut rtrs = RtrTable::default();
        rtrs.insert(rtr(1, 10, None, 0));
        rtrs.cancel(10);
        assert_eq!(taken(&mut rtrs, 1, 0), None);
    }
}
