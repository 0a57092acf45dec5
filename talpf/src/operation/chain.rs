//! Short puts of one round to one rank that are posted as one: plain writes, and behind them a
//! message that counts them at the target.

use std::iter;
use std::ops::Range;

use ibverbs_sim::{Operation as Request, Payload, PostError, RemoteAddress, SendWorkRequest};
use smallvec::SmallVec;

use crate::endpoint::{FEWEST_SENDS, SIGNAL_EVERY, silent};
use crate::immediate::{Immediate, Kind};
use crate::numbers::Rank;
use crate::sender::{RoundState, Sender};
use crate::window::Post;

/// Largest number of requests that are posted together: puts, and a message that counts them.
const CHAIN: usize = 128;
pub(super) const PUTS: usize = CHAIN - 1;
const _: () = assert!(CHAIN as u32 + 2 * SIGNAL_EVERY <= FEWEST_SENDS, "there is room for a chain");

/// Posts `count` puts of `round` to `target`, [`PUTS`] at most: all or nothing.
pub(super) fn post_chain<'a>(
    round: &RoundState,
    target: Rank,
    count: usize,
    puts: impl Iterator<Item = (RemoteAddress, &'a [u8])>,
) -> Post {
    let count = (count as u64).to_ne_bytes();
    let mut requests = SmallVec::<[SendWorkRequest<'_>; CHAIN]>::new();
    requests.extend(
        puts.map(|(remote, bytes)| silent(Request::Write { remote }, Payload::Inline(bytes))),
    );
    let immediate = Immediate::new(Kind::Data, round.lane, round.number).to_bits();
    requests.push(silent(Request::SendWithImmediate { immediate }, Payload::Inline(&count)));
    let origin = &round.sender;
    posted(origin, origin.own.endpoint.post_all(target, &mut requests))
}

/// Returns the outcome of requests that are posted as one.
#[inline]
pub(super) fn posted(origin: &Sender, result: Result<(), PostError>) -> Post {
    match result {
        Ok(()) => Post::All,
        Err(error) => origin.own.not_posted(&origin.failure, error),
    }
}

/// The remote address of a write, and its range of bytes in a buffer.
type Write = (RemoteAddress, Range<usize>);

/// Joins writes that begin at the end of the previous one, in memory and in the buffer, into writes
/// of at most `longest` bytes.
pub(crate) fn joined(
    writes: impl Iterator<Item = Write>,
    longest: usize,
) -> impl Iterator<Item = Write> {
    let mut writes = writes.peekable();
    iter::from_fn(move || {
        let (remote, mut bytes) = writes.next()?;
        let goes_on = |(next, next_bytes): &Write, bytes: &Range<usize>| {
            next.key == remote.key
                && next.address == remote.address + bytes.len() as u64
                && next_bytes.start == bytes.end
                && next_bytes.end - bytes.start <= longest
        };
        while let Some((_, next)) = writes.next_if(|next| goes_on(next, &bytes)) {
            bytes.end = next.end;
        }
        Some((remote, bytes))
    })
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use ibverbs_sim::RemoteKey;
    use proptest::prelude::*;

    use super::*;

    const LONGEST: usize = 8;
    const LONGEST_STEP: usize = 3;

    proptest! {
        /// Against writes of one byte each.
        #[test]
        fn joined_writes_bring_every_byte_to_its_place_and_are_as_few_as_go(
            steps in prop::collection::vec((0..3u64, 0..=LONGEST_STEP, 0..4u32), 0..40),
        ) {
            let (mut writes, mut address, mut start) = (Vec::new(), 0, 0);
            for (gap, length, key) in steps {
                address += gap / 2;
                let key = RemoteKey::from_u32(key / 3);
                writes.push((RemoteAddress { address, key }, start..start + length));
                (address, start) = (address + length as u64, start + length);
            }
            let bytes_of = |writes: &[Write]| -> Vec<(u32, u64, usize)> {
                let each = |(remote, bytes): &Write| {
                    let RemoteAddress { address, key } = *remote;
                    bytes.clone().zip(address..).map(|(b, a)| (key.to_u32(), a, b)).collect()
                };
                writes.iter().flat_map(|write| -> Vec<_> { each(write) }).collect()
            };
            let joined: Vec<Write> = joined(writes.iter().cloned(), LONGEST).collect();
            prop_assert_eq!(bytes_of(&joined), bytes_of(&writes));
            for (remote, bytes) in &joined {
                prop_assert!(bytes.len() <= LONGEST, "{remote:?} {bytes:?}");
            }
            for pair in joined.windows(2) {
                let [(remote, bytes), (next, next_bytes)] = pair else { continue };
                let goes_on = next.key == remote.key
                    && next.address == remote.address + bytes.len() as u64
                    && next_bytes.start == bytes.end;
                prop_assert!(!goes_on || bytes.len() + LONGEST_STEP > LONGEST, "{pair:?}");
            }
        }
    }
}
