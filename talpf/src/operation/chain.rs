//! Short puts of one round to one rank that are posted as one: plain writes, and behind them a
//! message that counts them at the target.

use std::sync::Arc;

use ibverbs_sim::{Operation as Request, Payload, RemoteAddress, SendFlags, SendWorkRequest};
use smallvec::SmallVec;

use super::short_put::posted;
use crate::endpoint::{FEWEST_SENDS, NOBODY, SIGNAL_EVERY};
use crate::immediate::{Immediate, Kind};
use crate::numbers::Rank;
use crate::round::RoundState;
use crate::window::Post;

/// Requests that are posted together at most: puts, and a message that counts them.
const CHAIN: usize = 128;
pub(super) const PUTS: usize = CHAIN - 1;
const _: () = assert!(CHAIN as u32 + 2 * SIGNAL_EVERY <= FEWEST_SENDS, "there is room for a chain");

/// Posts `count` puts of `round` to `target`, [`PUTS`] at most: all or nothing.
pub(super) fn post_chain<'a>(
    round: &Arc<RoundState>,
    target: Rank,
    count: usize,
    puts: impl Iterator<Item = (RemoteAddress, &'a [u8])>,
) -> Post {
    let silent = |operation, bytes| SendWorkRequest {
        wr_id: NOBODY,
        operation,
        payload: Payload::Inline(bytes),
        flags: SendFlags::NONE,
    };
    let count = (count as u64).to_ne_bytes();
    let mut requests = SmallVec::<[SendWorkRequest<'_>; CHAIN]>::new();
    requests.extend(puts.map(|(remote, bytes)| silent(Request::Write { remote }, bytes)));
    let immediate = Immediate::new(Kind::Data, round.lane, round.number).to_bits();
    requests.push(silent(Request::SendWithImmediate { immediate }, &count));
    let origin = round.state();
    posted(origin, origin.endpoint.post_all(target, &mut requests))
}
