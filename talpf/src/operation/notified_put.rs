//! Operations outside rounds: puts that announce themselves with a notification, and notifications
//! alone.

use std::sync::Arc;

use bytemuck::Pod;
use ibverbs_sim::{Access, Operation as Request, RemoteAddress};
use smallvec::SmallVec;
use talpf_runtime::ByteLayout;

use super::chain::posted;
use super::future::awaited;
use super::guards::{Source, entries, lent};
use super::issued::{Issued, refusal_of_notified};
use super::payloads::Memory;
use super::registration::Registered;
use super::{Operation, Route, Transfer, Verb};
use crate::endpoint::INLINE_BYTES;
use crate::error::Error;
use crate::immediate::Immediate;
use crate::notification::{Notification, NotifiedClaim};
use crate::numbers::{ArrivalNumber, LOCAL_SLOT, Rank};
use crate::peer::Peers;
use crate::sender::RoundState;
use crate::slot::{Located, RemoteRegion};
use crate::window::{Claim, Kind, Landing, Outcome, Parked, Post};

/// Puts the elements of `from` to `to`, and then notifies the target.
pub(crate) fn put_notified<G: Source>(
    round: &Arc<RoundState>,
    from: G,
    to: RemoteRegion<'_, G::Element>,
    (id, value): (u32, u32),
) -> Operation<G> {
    let layout = from.layout();
    let located = locate(round, &to, layout.len as u64, (id, value));
    let (at, notified) = match located {
        Ok(located) => located,
        Err(error) => return refused(round, error),
    };
    let endpoint = &round.sender.own.endpoint;
    let longest = endpoint.inline_bytes.min(endpoint.max_transfer) as u64;
    if layout.bytes() <= longest && layout.is_contiguous() && at.is_consecutive() {
        let left = land(round, at, notified, lent(&from, &layout));
        return after(round, from, left);
    }
    match put_long(round, from, &layout, at, notified) {
        Ok(operation) => operation,
        Err(error) => refused(round, error),
    }
}

/// Puts a copy of `values` to `to`, and then notifies the target.
pub(crate) fn put_copy_notified<T: Pod>(
    round: &Arc<RoundState>,
    values: &[T],
    to: RemoteRegion<'_, T>,
    (id, value): (u32, u32),
) -> Operation<()> {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    let longest = INLINE_BYTES.min(round.sender.own.endpoint.max_transfer);
    if bytes.len() > longest {
        let (what, value) = ("number of bytes to copy into a put", bytes.len() as u64);
        return refused(round, Error::Limit { what, value, limit: longest as u64 });
    }
    match locate(round, &to, values.len() as u64, (id, value)) {
        Ok((at, notified)) if at.is_consecutive() => {
            after(round, (), land(round, at, notified, bytes))
        }
        Ok((at, notified)) => {
            let memory = Memory::Inline(bytes.into());
            let put = Issued::new(round, at, Route::Direct, Verb::Put, memory, None);
            after(round, (), Ok(put.notifying(notified).attempt()))
        }
        Err(error) => refused(round, error),
    }
}

/// Notifies `target`.
pub(crate) fn notify(
    round: &Arc<RoundState>,
    target: Rank,
    (id, value): (u32, u32),
) -> Operation<()> {
    let (source, ranks) = (round.rank, round.sender.peers.len());
    if target.0 >= ranks {
        return refused(round, Error::NoSuchRank { rank: target, ranks });
    }
    let called_ns = round.sender.tracer.clock();
    let at = Transfer::consecutive(target, RemoteAddress::default(), 0, called_ns);
    let claim = Claim {
        source,
        slot: LOCAL_SLOT,
        index: 0,
        end: 0,
        rows: 1,
        stride: 0,
        kind: Kind::Write,
        raw: true,
    };
    let notified = NotifiedClaim { notification: Notification { source, id, value }, claim };
    after(round, (), land(round, at, notified, &[]))
}

/// Finds the remote side of a put, and its notification.
fn locate<T>(
    round: &RoundState,
    to: &RemoteRegion<'_, T>,
    len: u64,
    (id, value): (u32, u32),
) -> Result<(Transfer, NotifiedClaim), Error> {
    let RemoteRegion { slot, rank: target, part, .. } = *to;
    let Located { remote, index, end, rows, stride, windowed } =
        slot.locate(round.sender.run, target, part, len)?;
    let (source, slot_number, raw) = (round.rank, slot.number, !windowed);
    let kind = Kind::Write;
    let claim = Claim { source, slot: slot_number, index, end, rows, stride, kind, raw };
    let notified = NotifiedClaim { notification: Notification { source, id, value }, claim };
    let called_ns = round.sender.tracer.clock();
    let (bytes, stride_bytes) = (len * slot.element_bytes, u64::from(stride) * slot.element_bytes);
    Ok((Transfer { target, remote, bytes, rows, stride_bytes, called_ns }, notified))
}

#[inline(never)]
fn put_long<G: Source>(
    round: &Arc<RoundState>,
    from: G,
    layout: &ByteLayout,
    at: Transfer,
    notified: NotifiedClaim,
) -> Result<Operation<G>, Error> {
    let (slots, endpoint) = (&round.sender.slots, &round.sender.own.endpoint);
    let (from, key) = Registered::new(slots, &endpoint.domain, from, layout, Access::NONE)?;
    let memory = entries(layout, key, endpoint.max_transfer, at.row_bytes() as usize);
    let (operation, done) = awaited(round, at.target, Verb::Put, None, from);
    let memory = Memory::Entries(memory);
    let put = Issued::new(round, at, Route::Direct, Verb::Put, memory, Some(done));
    put.notifying(notified).issue();
    Ok(operation)
}

/// A put of bytes that its caller lends, or a notification without a put.
struct ShortNotified<'a> {
    round: &'a Arc<RoundState>,
    at: Transfer,
    notified: NotifiedClaim,
    bytes: &'a [u8],
    arrival: Option<ArrivalNumber>,
    is_carried_out: bool,
}

impl ShortNotified<'_> {
    /// Returns an operation that owns a copy of the bytes.
    fn to_issued(&self) -> Issued {
        let memory = Memory::Inline(SmallVec::from_slice(self.bytes));
        let mut issued = Issued::new(self.round, self.at, Route::Direct, Verb::Put, memory, None)
            .notifying(self.notified);
        self.arrival.into_iter().for_each(|number| Landing::admit(&mut issued, number));
        issued
    }
}

impl Landing for ShortNotified<'_> {
    /// Writes the bytes, if whatever was posted to the target before has been carried out.
    fn carry_out(&mut self) -> bool {
        let Transfer { target, remote, .. } = self.at;
        let origin = &self.round.sender;
        let endpoint = &origin.own.endpoint;
        let is_drained = || endpoint.is_drained(target);
        if origin.signals_directly && is_drained() && Peers::may_end_waits() {
            let write = Request::Write { remote };
            // A thread that carries out requests of this queue pair may have taken over the write:
            // then the put is posted, and writes the same bytes again before it announces itself.
            self.is_carried_out = self.bytes.is_empty()
                || endpoint.post_inline(target, write, self.bytes).is_ok() && is_drained();
        }
        self.is_carried_out
    }

    fn post(&mut self) -> Post {
        let Some(number) = self.arrival else {
            return Post::Nothing;
        };
        let Transfer { target, remote, .. } = self.at;
        let origin = &self.round.sender;
        origin.tracer.send(&mut self.at, Verb::Put, None);
        let immediate = Immediate::notified(number);
        let request = match self.bytes.is_empty() {
            true => Request::SendWithImmediate { immediate },
            false => Request::WriteWithImmediate { remote, immediate },
        };
        posted(origin, origin.own.endpoint.post_inline(target, request, self.bytes))
    }

    fn admit(&mut self, number: ArrivalNumber) {
        self.arrival = Some(number);
    }

    fn eager_bytes(&self) -> Option<(RemoteAddress, &[u8])> {
        Some((self.at.remote, self.bytes))
    }

    fn trace_eager_send(&mut self) {
        self.round.sender.tracer.send(&mut self.at, Verb::Put, None);
    }

    fn park(self) -> Box<dyn Parked> {
        self.to_issued().park()
    }
}

/// Posts or parks a short operation, or returns it to be retried.
fn land(
    round: &Arc<RoundState>,
    at: Transfer,
    notified: NotifiedClaim,
    bytes: &[u8],
) -> Result<Option<Issued>, Error> {
    let origin = &round.sender;
    if let Some(error) = origin.error() {
        return Err(error);
    }
    let put = ShortNotified { round, at, notified, bytes, arrival: None, is_carried_out: false };
    match origin.peers.land_notified(at.target, notified, round.rank, true, put) {
        Outcome::Posted(put) => {
            if !put.is_carried_out {
                origin.peers.notify_waiting(at.target);
            }
            Ok(None)
        }
        Outcome::Parked => Ok(None),
        Outcome::Retry(put) => Ok(Some(put.to_issued())),
        Outcome::Refused(_) => Err(refusal_of_notified(&notified, round, at.target)),
    }
}

/// Returns the operation of a short put, with the guard of its issuer once it is posted or parked.
fn after<G: Send + 'static>(
    round: &Arc<RoundState>,
    guard: G,
    left: Result<Option<Issued>, Error>,
) -> Operation<G> {
    match left {
        Ok(None) => Operation::returned(guard),
        Ok(Some(mut issued)) => {
            let (operation, completer) = Operation::under_way(round);
            issued.set_done(completer.into_done(Registered::unused(guard), None));
            round.sender.push_retry(issued);
            operation
        }
        Err(error) => Operation::failed(error),
    }
}

/// Refuses an invalid operation: its task fails, and so does this rank.
#[cold]
pub(crate) fn refused<G>(round: &RoundState, error: Error) -> Operation<G> {
    // Outside a task only the rank fails.
    let _ = talpf_runtime::fail_current_task(error.to_string());
    round.sender.fail(&error);
    Operation::failed(error)
}
