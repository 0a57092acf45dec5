//! Patience of operations that come before their window is open.
//!
//! Such an operation would be parked, and carried out by the target as it opens the window: by the
//! rank that is behind, which delays it further, so that the next operation comes early, too. What
//! the target copies it copies from the cache of the issuer. So the issuer polls the window for a
//! while, if its worker has nothing else to do, before the operation is parked: for a long one a part
//! of the time that the copy takes, for others as long as a target is usually behind.
//!
//! A rank that is far ahead gains nothing by that: all operations by one handle of a round share the
//! polls of short ones, and none waits while others are to be retried, as these come first.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use talpf_runtime::service::poll_while_spare;

use super::open_round::OpenRound;
use crate::endpoint::INLINE_BYTES;
use crate::numbers::Rank;
use crate::window::{Claim, Landing, Outcome};

/// Polls of short operations, by one handle of a round: at most a few microseconds.
pub(super) const EARLY_POLLS: u32 = 64;
/// Bytes of a long operation for each poll of its window. A poll takes about a tenth of a microsecond,
/// and so do that many bytes from another cache.
const BYTES_A_POLL: u64 = 4096;
/// Largest number of polls of a long operation.
const MAX_POLLS: u64 = 64;

/// An operation that may be returned by the windows instead of parked.
pub(super) trait MayBePatient: Landing {
    /// Sets whether the operation is patient: returned instead of parked.
    fn set_patient(&mut self, is_patient: bool);
}

impl OpenRound {
    /// Passes an operation of `bytes` to the windows of its target, again if they open soon.
    pub(super) fn land<L: MayBePatient>(
        &self,
        target: Rank,
        claim: Claim,
        bytes: u64,
        mut operation: L,
    ) -> Outcome<L> {
        let (origin, peers) = (&self.state.sender, &self.state.sender.peers);
        let (request, opened) = (self.state.request(target), peers.opened(target));
        let quick = bytes <= INLINE_BYTES as u64;
        let left = self.early_polls.load(Ordering::Relaxed);
        let polls = left.max((bytes / BYTES_A_POLL).min(MAX_POLLS) as u32);
        // An operation that is passed to the windows twice would be noted twice.
        let may_wait = !origin.checks_conflicts && peers.shares_memory_with(target);
        operation.set_patient(may_wait && polls > 0 && !origin.has_retries());
        match peers.land(request, claim, quick, operation) {
            Outcome::Retry(mut early) if early.is_patient() => {
                early.set_patient(false);
                let polled = self.await_window(polls, || peers.opened(target) != opened);
                self.early_polls.store(left.saturating_sub(polled), Ordering::Relaxed);
                peers.land(request, claim, quick, early)
            }
            outcome => outcome,
        }
    }

    /// Polls until a window `opens`, at most so often, and returns the number of polls.
    fn await_window(&self, polls: u32, opens: impl Fn() -> bool) -> u32 {
        let polled = Cell::new(0);
        if let Some(engine) = self.state.engine() {
            let poll = || {
                polled.set(polled.get() + 1);
                engine.poll();
            };
            poll_while_spare(polls, poll, || opens().then_some(()));
        }
        polled.get()
    }
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use talpf_runtime::Array;

    use super::*;
    use crate::config::Config;
    use crate::exec::exec;
    use crate::sync::SyncMode;

    #[test]
    fn early_puts_of_a_handle_share_their_polls_and_land_all_the_same() {
        const EACH: usize = EARLY_POLLS as usize / 2 + 1;
        let config = Config { ranks: 3, check_conflicts: false, ..Config::default() };
        let ends = exec(config, async |ctx| {
            let inbox = Array::new(ctx.group(), vec![0u64; EACH], EACH)?;
            let slot = ctx.register_global(&inbox).await?;
            let barrier = SyncMode::msg(0).with_barrier();
            if ctx.rank() == Rank(0) {
                let round = ctx.round();
                // Alternately, as puts to the same rank would go together.
                for (index, target) in
                    (0..EACH).flat_map(|index| [1, 2].map(|to| (index, Rank(to))))
                {
                    round.put_copy(&[index as u64 + 7], slot.at(target, index)).await?;
                }
                let left = round.early_polls.load(Ordering::Relaxed);
                drop(round);
                ctx.lane(1)?.sync(barrier).await?;
                ctx.sync(SyncMode::msg(0)).await?;
                return Ok::<_, crate::Error>((left, Vec::new()));
            }
            ctx.lane(1)?.sync(barrier).await?;
            ctx.sync(SyncMode::msg(EACH as u32)).window(&inbox.all()).await?;
            let read = ctx.group().task("read").input(&inbox.all());
            Ok((0, read.run(|inbox| inbox.to_vec())?.await?))
        });
        let landed: Vec<_> = (0..EACH as u64).map(|index| index + 7).collect();
        assert_eq!(ends.unwrap(), [(0, vec![]), (0, landed.clone()), (0, landed)]);
    }
}
