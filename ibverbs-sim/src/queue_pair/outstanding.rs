//! Outstanding requests of a queue pair whose peer is in another process: those that were sent, or whose
//! data the rail moves, and that have not ended, the oldest first.
//!
//! Lists and inline bytes of the requests lie in queues of their own, in the same order, so that no
//! request allocates memory. They are needed until the end of a request: data that returns is
//! written to the list, and a request that the peer has not carried out is sent again.

use std::collections::VecDeque;

use crate::{
    Operation, Payload, ScatterGather, SendFlags, SendWorkRequest, attributes::MAX_SGE,
    queue_pair::retry::Retry,
};

/// Most requests of a queue pair that are under way.
pub(super) const MAX_REQUESTS: usize = 64;
/// Bytes of the requests under way beyond which no further one is sent.
const MAX_BYTES: u64 = 4 << 20;
/// As `MAX_BYTES`, for a request whose data the rail moves: it needs packets only where the rail is refused.
const MAX_LONG_BYTES: u64 = 16 << 20;

pub(super) struct Outstanding {
    requests: VecDeque<SentRequest>,
    lists: VecDeque<ScatterGather>,
    inline: VecDeque<u8>,
    /// Bytes of all requests, those that return included.
    bytes: u64,
    /// Number of requests whose data is to return.
    returning: usize,
    /// Number of requests that are [carried](SentRequest::is_carried).
    carried: usize,
    /// Index of the first request that has to be sent again; the length if none has to.
    next: usize,
    /// Most requests that may be sent before the peer has carried one out.
    limit: usize,
    /// Wait for the response to the oldest request.
    pub(super) response: Retry,
    /// Deadline for which a timer is armed.
    pub(super) armed_ns: Option<u64>,
    /// Number of times that the oldest request was sent again because it had no response, on a link with faults.
    pub(super) repeated: u32,
}

#[derive(Clone, Copy)]
struct SentRequest {
    wr_id: u64,
    operation: Operation,
    flags: SendFlags,
    length: u64,
    pieces: u8,
    inline: u32,
    /// `true` if the data needs no packet, which is only a notification.
    is_delivered: bool,
    /// `true` if the packet was sent.
    is_sent: bool,
    /// `true` if the rail moves the data, after which the packet is sent.
    is_long: bool,
}

impl SentRequest {
    /// Returns `true` if the next packet of the request carries no data: its first one, or any of one that has changed a
    /// word, which must not do so again.
    fn is_notification(&self) -> bool {
        self.is_delivered && (!self.is_sent || self.operation.is_atomic())
    }

    /// Returns `true` if data of the request is to return.
    fn returns(&self) -> bool {
        self.operation.returns_data() && (!self.is_delivered || self.is_long)
    }

    /// Returns `true` if the packet carries data, or brings it, so that later data may not be copied
    /// before. A message may have to wait for a receive, and so counts without data as well.
    fn is_carried(&self) -> bool {
        let is_write = matches!(
            self.operation,
            Operation::Write { .. } | Operation::WriteWithImmediate { .. }
        );
        !self.is_delivered && (self.length > 0 || !is_write)
    }
}

/// Way of the data of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// In its packet, which was sent.
    Packet,
    /// Copied at once. Its packet was sent.
    Copied,
    /// By the rail, which writes or reads it. Its packet was not sent.
    Rail,
}

impl Default for Outstanding {
    fn default() -> Self {
        Self {
            requests: VecDeque::new(),
            lists: VecDeque::new(),
            inline: VecDeque::new(),
            bytes: 0,
            returning: 0,
            carried: 0,
            next: 0,
            limit: MAX_REQUESTS,
            response: Retry::default(),
            armed_ns: None,
            repeated: 0,
        }
    }
}

/// Memory for the list of a request.
pub(super) type ListBuffer = [ScatterGather; MAX_SGE];

impl Outstanding {
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns `true` if a further request of `length` bytes may be sent.
    pub(super) fn has_room(
        &self,
        request: &SendWorkRequest<'_>,
        length: u64,
        max_returning: u8,
        is_long: bool,
    ) -> bool {
        if self.is_empty() {
            return true;
        }
        let is_fenced = request.flags.contains(SendFlags::FENCE) && self.returning > 0;
        let is_limited =
            request.operation.returns_data() && self.returning >= usize::from(max_returning);
        let most = if is_long { MAX_LONG_BYTES } else { MAX_BYTES };
        (self.next == self.len() || is_long && self.holds())
            && self.len() < self.limit
            && self.bytes + length <= most
            && !is_fenced
            && !is_limited
    }

    /// Returns `true` if data may be copied at once without overtaking that of an earlier request.
    #[inline]
    pub(super) fn is_delivered(&self) -> bool {
        self.carried == 0
    }

    /// Returns `true` if the data of the oldest request was copied at once.
    pub(super) fn is_oldest_delivered(&self) -> bool {
        self.requests.front().is_some_and(|oldest| oldest.is_delivered)
    }

    /// Returns `true` if the rail moves the data of a request, by its number from the oldest one.
    pub(super) fn is_long(&self, nth: usize) -> bool {
        self.requests.get(nth).is_some_and(|sent| sent.is_long)
    }

    /// Returns `true` if packets wait for the rail.
    pub(super) fn holds(&self) -> bool {
        self.is_long(self.next)
    }

    /// Returns `true` if the rail uses some of the bytes of an operation at the peer already, and one of both writes
    /// them.
    pub(super) fn overlaps_long(&self, operation: &Operation, length: u64) -> bool {
        let at = |operation: &Operation, length: u64| match *operation {
            Operation::Write { remote } | Operation::WriteWithImmediate { remote, .. } => {
                Some((remote.address, remote.address.saturating_add(length), true))
            }
            Operation::Read { remote } => {
                Some((remote.address, remote.address.saturating_add(length), false))
            }
            _ => None,
        };
        let Some((start, end, is_write)) = at(operation, length) else { return false };
        let long = self.requests.iter().filter(|sent| sent.is_long);
        long.filter_map(|sent| at(&sent.operation, sent.length)).any(
            |(its_start, its_end, writes)| {
                its_start < end && start < its_end && (is_write || writes)
            },
        )
    }

    /// Returns `true` if the packet of a request was sent.
    pub(super) fn is_sent(&self, nth: usize) -> bool {
        self.requests.get(nth).is_some_and(|sent| sent.is_sent)
    }

    /// Notes that the rail has moved the data of a request. Without success the packet has to carry it.
    pub(super) fn end_long(&mut self, nth: usize, is_success: bool) {
        let Some(sent) = self.requests.get_mut(nth).filter(|sent| sent.is_long) else { return };
        let returned = sent.returns();
        sent.is_long = false;
        if !is_success {
            sent.is_delivered = false;
            self.carried += usize::from(sent.is_carried());
        }
        self.returning -= usize::from(returned && !sent.returns());
    }

    /// Adds a request that is under way.
    pub(super) fn push(&mut self, request: &SendWorkRequest<'_>, length: u64, way: Way) {
        let (mut pieces, mut inline) = (0, 0);
        match request.payload {
            Payload::Gather(list) => {
                pieces = list.len() as u8;
                self.lists.extend(list);
            }
            Payload::Inline(bytes) => {
                inline = bytes.len() as u32;
                self.inline.extend(bytes);
            }
        }
        let &SendWorkRequest { wr_id, operation, flags, .. } = request;
        let (is_delivered, is_long) = (way != Way::Packet, way == Way::Rail);
        self.bytes += length;
        let sent = SentRequest {
            wr_id,
            operation,
            flags,
            length,
            pieces,
            inline,
            is_delivered,
            is_sent: !is_long,
            is_long,
        };
        self.carried += usize::from(sent.is_carried());
        self.returning += usize::from(sent.returns());
        self.requests.push_back(sent);
        if !is_long {
            self.next = self.len();
        }
    }

    /// Returns the oldest request, with its list in `list`, and its length. Inline bytes are left
    /// out.
    pub(super) fn oldest<'a>(
        &self,
        list: &'a mut ListBuffer,
    ) -> Option<(SendWorkRequest<'a>, u64)> {
        let &SentRequest { wr_id, operation, flags, length, pieces, .. } = self.requests.front()?;
        let pieces = usize::from(pieces);
        list.iter_mut().zip(&self.lists).for_each(|(kept, piece)| *kept = *piece);
        let payload = Payload::Gather(&list[..pieces]);
        Some((SendWorkRequest { wr_id, operation, payload, flags }, length))
    }

    /// Removes the oldest request.
    pub(super) fn pop(&mut self) {
        let Some(sent) = self.requests.pop_front() else { return };
        self.lists.drain(..usize::from(sent.pieces));
        self.inline.drain(..sent.inline as usize);
        self.bytes -= sent.length;
        self.returning -= usize::from(sent.returns());
        self.carried -= usize::from(sent.is_carried());
        self.next = self.next.saturating_sub(1);
        self.repeated = 0;
    }

    /// Returns `true` if data is to return.
    pub(super) fn awaits_data(&self) -> bool {
        self.returning > 0
    }

    /// Notes that the peer carries requests out.
    pub(super) fn open(&mut self) {
        self.limit = MAX_REQUESTS;
    }

    /// Notes that the peer has not carried the oldest request out: after `limit` requests no further
    /// one is sent before it has.
    pub(super) fn rewind(&mut self, limit: usize) {
        (self.next, self.limit) = (0, limit);
    }

    /// Returns `true` if nothing may be sent before the peer has a receive.
    pub(super) fn awaits_receive(&self) -> bool {
        self.limit == 0
    }

    /// Returns the request that has to be sent now, or again, with its number from the oldest one, its
    /// list in `list`, its length, and `true` if its packet is the first one and carries no data.
    pub(super) fn next_to_send<'a>(
        &'a mut self,
        list: &'a mut ListBuffer,
    ) -> Option<(usize, SendWorkRequest<'a>, u64, bool)> {
        let nth = self.next;
        let may_send = |sent: &&SentRequest| nth < self.limit && !sent.is_long;
        let sent = *self.requests.get(nth).filter(may_send)?;
        let before = self.requests.iter().take(nth);
        let (first_piece, first_byte) = before.fold((0, 0), |(pieces, inline), sent| {
            (pieces + usize::from(sent.pieces), inline + sent.inline as usize)
        });
        let SentRequest { wr_id, operation, flags, length, pieces, inline, .. } = sent;
        let payload = if inline > 0 {
            let bytes = &self.inline.make_contiguous()[first_byte..];
            Payload::Inline(&bytes[..inline as usize])
        } else {
            let pieces = usize::from(pieces);
            let kept = self.lists.range(first_piece..first_piece + pieces);
            list.iter_mut().zip(kept).for_each(|(place, piece)| *place = *piece);
            Payload::Gather(&list[..pieces])
        };
        let request = SendWorkRequest { wr_id, operation, payload, flags };
        Some((nth, request, length, sent.is_notification()))
    }

    /// Notes that the request of [`next_to_send`](Self::next_to_send) was sent, with its data unless its packet was only a
    /// notification.
    pub(super) fn sent_again(&mut self) {
        if let Some(sent) = self.requests.get_mut(self.next) {
            if !sent.is_notification() {
                let (was_carried, returned) = (sent.is_carried(), sent.returns());
                sent.is_delivered = false;
                self.carried += usize::from(sent.is_carried() && !was_carried);
                self.returning += usize::from(sent.returns() && !returned);
            }
            sent.is_sent = true;
        }
        self.next += 1;
    }
}
