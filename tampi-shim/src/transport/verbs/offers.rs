//! Buffers that the peer has offered before their messages were sent.
//!
//! An offer says which receive the *next* message of its context and tag is for, as the peer knew
//! it when it had taken a number of cells. It holds unless a message was sent after that: the peer
//! will match that one to the receive in the usual way. It also names the receive before it; only
//! if that one's offer is held too, the two are taken in the right order. The numbers of the last
//! messages are kept by a hash of context and tag: two that share a place make offers fail, which
//! costs time only.
//!
//! Every message takes the oldest offer of its context and tag, whether it can use it or not.

use std::collections::VecDeque;

use super::cell::Place;
use crate::matching::Key;
use crate::tag::Tag;
use crate::transport::ContextId;

const PLACES: usize = 64;

/// What an offer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) context: ContextId,
    pub(super) tag: Tag,
}

/// A receive and where its bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) subject: Subject,
    pub(super) place: Place,
    /// The peer's number of the receive.
    pub(super) receive: u64,
    /// Slot of the receive of this subject before it, if one waits.
    pub(super) before: Option<u32>,
    /// Cells that the peer had taken, wrapping.
    pub(super) taken: u32,
}

/// See the module text.
pub(super) struct Offers {
    held: VecDeque<Offer>,
    /// One past the cell of the last message, wrapping.
    last: [u32; PLACES],
}

impl Default for Offers {
    fn default() -> Self {
        Offers { held: VecDeque::new(), last: [0; PLACES] }
    }
}

impl Subject {
    #[inline]
    pub(super) fn of(key: &Key) -> Self {
        Subject { context: key.context, tag: key.tag }
    }

    #[inline]
    fn place(&self) -> usize {
        let mixed = (self.tag.0 ^ self.context.0.rotate_left(16)).wrapping_mul(0x9e37_79b9);
        (mixed >> 26) as usize % PLACES
    }
}

impl Offers {
    /// Holds an offer if it is still good.
    pub(super) fn hold(&mut self, offer: Offer) {
        let last = self.last[offer.subject.place()];
        let is_late = last.wrapping_sub(offer.taken) as i32 > 0;
        let follows = match offer.before {
            None => true,
            Some(slot) => {
                let before = self.held.iter().rev().find(|held| held.subject == offer.subject);
                before.is_some_and(|held| held.receive as u32 == slot)
            }
        };
        if !is_late && follows {
            self.held.push_back(offer);
        }
    }

    /// A message is sent, and `tail` is the cell behind it: takes the offer that is for it.
    #[inline]
    pub(super) fn pass(&mut self, subject: Subject, tail: u64) -> Option<Offer> {
        self.last[subject.place()] = tail as u32;
        if self.held.is_empty() {
            return None;
        }
        let index = self.held.iter().position(|held| held.subject == subject)?;
        self.held.remove(index)
    }

    /// Forgets the offer of a receive that is to be cancelled.
    pub(super) fn withdraw(&mut self, receive: u64) {
        self.held.retain(|held| held.receive != receive);
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    fn subject(tag: u32) -> Subject {
        Subject { context: ContextId(0), tag: Tag(tag) }
    }

    fn offer(tag: u32, receive: u64, before: Option<u32>, taken: u32) -> Offer {
        let place = Place { address: 0, key: 0, rows: 1, row_bytes: 1, stride_bytes: 0 };
        Offer { subject: subject(tag), place, receive, before, taken }
    }

    fn taken(offers: &mut Offers, tag: u32, cell: u64) -> Option<u64> {
        offers.pass(subject(tag), cell + 1).map(|offer| offer.receive)
    }

    #[test]
    fn offers_are_taken_in_order_by_their_subject() {
        let mut offers = Offers::default();
        offers.hold(offer(1, 10, None, 0));
        offers.hold(offer(2, 20, None, 0));
        offers.hold(offer(1, 11, Some(10), 0));
        assert_eq!(taken(&mut offers, 1, 0), Some(10));
        assert_eq!(taken(&mut offers, 1, 1), Some(11));
        assert_eq!(taken(&mut offers, 1, 2), None);
        assert_eq!(taken(&mut offers, 2, 3), Some(20));
    }

    #[test]
    fn a_message_that_crossed_the_offer_makes_it_void() {
        let mut offers = Offers::default();
        assert_eq!(taken(&mut offers, 1, 5), None);
        offers.hold(offer(1, 10, None, 5));
        assert_eq!(taken(&mut offers, 1, 6), None, "cell 5 was not taken yet");
        offers.hold(offer(1, 11, None, 7));
        assert_eq!(taken(&mut offers, 1, 7), Some(11));
    }

    #[test]
    fn an_offer_behind_one_that_failed_fails() {
        let mut offers = Offers::default();
        assert_eq!(taken(&mut offers, 1, 5), None);
        offers.hold(offer(1, 10, None, 5));
        offers.hold(offer(1, 11, Some(10), 6));
        assert_eq!(taken(&mut offers, 1, 6), None);
    }

    #[test]
    fn counts_go_round() {
        let mut offers = Offers::default();
        let cell = u64::from(u32::MAX);
        assert_eq!(taken(&mut offers, 1, cell), None);
        offers.hold(offer(1, 10, None, u32::MAX));
        assert_eq!(taken(&mut offers, 1, cell + 1), None);
        offers.hold(offer(1, 11, None, 1));
        assert_eq!(taken(&mut offers, 1, cell + 2), Some(11));
    }

    #[test]
    fn a_withdrawn_offer_is_gone() {
        let mut offers = Offers::default();
        offers.hold(offer(1, 10, None, 0));
        offers.withdraw(10);
        assert_eq!(taken(&mut offers, 1, 0), None);
    }
}
