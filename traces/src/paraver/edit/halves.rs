//! Halves of messages between processes, each in the trace of one.
//!
//! A half is an event with five values, all on one line. Both halves have the same number, which is one
//! of their sender and receiver.

use std::collections::HashSet;

use crate::MessageKind;
use crate::paraver::EventKind;

const SENT: [u32; 5] = numbers(EventKind::SENT);
const RECEIVED: [u32; 5] = numbers(EventKind::RECEIVED);

const fn numbers(kinds: [EventKind; 5]) -> [u32; 5] {
    let [a, b, c, d, e] = kinds;
    [a.number(), b.number(), c.number(), d.number(), e.number()]
}

/// Sender, receiver, `true` for a control message, and number of a message.
pub(super) type Key = (u32, u32, bool, i64);

/// Half of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Half {
    pub(super) key: Key,
    pub(super) row: usize,
    /// Time at which data leaves, or arrives.
    pub(super) time_ns: u64,
    pub(super) content: Content,
}

/// Values of a half.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Sent { bytes: i64, kind: i64, waited_ns: u64 },
    Received { tag: i64, lane: i64, complete_ns: u64 },
}

impl Half {
    /// Returns the half that begins the values of an event on a row of `rank`, if one does.
    pub(super) fn of(values: &[(u32, i64)], rank: u32, row: usize, time_ns: u64) -> Option<Self> {
        let values: &[(u32, i64); 5] = values.first_chunk()?;
        let [peer, number, third, fourth, fifth] = values.map(|(_, value)| value);
        let peer = u32::try_from(peer.checked_sub(1)?).ok()?;
        let ns = u64::try_from(fifth).ok()?;
        let (key, content) = match values.map(|(kind, _)| kind) {
            SENT => {
                let content = Content::Sent { bytes: third, kind: fourth, waited_ns: ns };
                let is_control = MessageKind::of(fourth).is_some_and(MessageKind::is_control);
                ((rank, peer, is_control, number), content)
            }
            RECEIVED => {
                let content = Content::Received { tag: third, lane: fourth, complete_ns: ns };
                let is_control = MessageKind::of_tag(third).is_some();
                ((peer, rank, is_control, number), content)
            }
            _ => return None,
        };
        Some(Self { key, row, time_ns, content })
    }

    pub(super) fn is_send(&self) -> bool {
        matches!(self.content, Content::Sent { .. })
    }
}

/// Removes the halves from the values of an event on a row of `rank`, except those whose keys are
/// in `kept`.
pub(super) fn remove(values: &mut Vec<(u32, i64)>, rank: u32, kept: &HashSet<Key>) {
    let mut at = 0;
    while at < values.len() {
        match Half::of(&values[at..], rank, 0, 0) {
            Some(half) if kept.contains(&half.key) => at += SENT.len(),
            Some(_) => drop(values.drain(at..at + SENT.len())),
            None => at += 1,
        }
    }
}
