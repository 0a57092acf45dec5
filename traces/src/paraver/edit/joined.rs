//! Messages between processes, joined of the halves in their traces.
//!
//! Memory while traces are merged: 80 bytes a half, and 240 a message.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::halves::{Content, Half, Key};
use super::pieces::Piece;
use crate::MessageKind;
use crate::paraver::{Communication, EventKind};

/// Message whose halves were found, and the event where it arrives.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) time_ns: u64,
    pub(super) row: usize,
    pub(super) cpu: u32,
    pub(super) values: Vec<(u32, i64)>,
}

/// Messages of several pieces.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// Messages by logical send.
    pub(super) messages: Vec<Communication>,
    /// Arrivals of the messages, by time.
    pub(super) arrivals: Vec<Arrival>,
    /// Keys of the halves whose other half is in none of the pieces.
    pub(super) unjoined: HashSet<Key>,
    pub(super) sends_alone: u64,
    pub(super) receives_alone: u64,
    /// Number of receives that preceded the call of their send.
    pub(super) moved: u64,
    /// Largest time by which one did.
    pub(super) most_moved_ns: u64,
}

impl Joined {
    /// Joins the halves that are in the pieces, on the clock of the new trace.
    pub(super) fn of(pieces: &[Piece]) -> Self {
        let of_piece = |piece: usize| pieces[piece].halves.iter().map(move |half| (piece, half));
        let mut halves: Vec<(usize, &Half)> = (0..pieces.len()).flat_map(of_piece).collect();
        halves.sort_by_key(|(_, half)| (half.key, half.time_ns));
        let mut joined = Self::default();
        for of_key in halves.chunk_by(|(_, a), (_, b)| a.key == b.key) {
            let (sends, receives): (Vec<_>, Vec<_>) =
                of_key.iter().copied().partition(|(_, half)| half.is_send());
            for (send, receive) in sends.iter().zip(&receives) {
                joined.add(pieces, *send, *receive);
            }
            let key = of_key[0].1.key;
            match sends.len().cmp(&receives.len()) {
                Ordering::Greater => joined.sends_alone += (sends.len() - receives.len()) as u64,
                Ordering::Less => joined.receives_alone += (receives.len() - sends.len()) as u64,
                Ordering::Equal => continue,
            }
            joined.unjoined.insert(key);
        }
        joined.messages.sort_by_key(|message| message.logical_send_ns);
        joined.arrivals.sort_by_key(|arrival| arrival.time_ns);
        joined
    }

    fn add(
        &mut self,
        pieces: &[Piece],
        (from, send): (usize, &Half),
        (to, receive): (usize, &Half),
    ) {
        let Content::Sent { bytes, kind, waited_ns } = send.content else { return };
        let Content::Received { tag, lane, complete_ns } = receive.content else { return };
        let (from, to) = (&pieces[from], &pieces[to]);
        let sent_ns = from.clock.time(send.time_ns);
        let called_ns = from.clock.time(send.time_ns.saturating_sub(waited_ns));
        let arrived_ns = to.clock.time(receive.time_ns);
        let is_early = arrived_ns < called_ns;
        if is_early {
            self.moved += 1;
            self.most_moved_ns = self.most_moved_ns.max(called_ns - arrived_ns);
        }
        // An arrival between call and send shows that the sender has read its clock late.
        let send_ns = if is_early { sent_ns } else { sent_ns.min(arrived_ns) };
        let receive_ns = arrived_ns.max(send_ns);
        let complete_ns = to.clock.time(receive.time_ns.saturating_add(complete_ns));
        let cpu_of = |piece: &Piece, row: usize| piece.rows[row].map_or(0, |extent| extent.cpu);
        let receiver_cpu = cpu_of(to, receive.row);
        self.messages.push(Communication {
            sender: send.row,
            sender_cpu: cpu_of(from, send.row),
            receiver: receive.row,
            receiver_cpu,
            logical_send_ns: called_ns,
            send_ns,
            receive_ns,
            logical_receive_ns: complete_ns.max(receive_ns),
            bytes: bytes.cast_unsigned(),
            tag,
        });
        let mut values = vec![(EventKind::MessageKind.number(), kind)];
        if lane > 0 {
            values.push((EventKind::MessageLane.number(), lane));
        }
        if kind == MessageKind::Put.number() {
            let [latency, wait] = [receive_ns - send_ns, send_ns - called_ns].map(|ns| ns as i64);
            values.push((EventKind::PutLatency.number(), latency));
            values.push((EventKind::WindowWait.number(), wait));
        }
        // The row need not show its worker then, and an event on no cpu is always right.
        self.arrivals.push(Arrival { time_ns: receive_ns, row: receive.row, cpu: 0, values });
    }
}
