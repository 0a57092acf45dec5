//! Phasers: barriers of some ranks for some ranks, outside rounds.
//!
//! Every signaller counts its phases, and every waiter keeps the counts of all signallers
//! ([`signal`](crate::signal)). The k-th wait ends once all counts are k at least. A waiter goes through
//! the signallers one by one and waits for the first that is missing, so only the last one wakes it, or
//! the few that are missing one after another.
//!
//! **States** of a signaller at a waiter: open, then closed or lost, after its last signal.
//!
//! **Threads.** An end is used by one thread at a time.
//!
//! Deliberately absent: ranks that join or leave a phaser later, and data of a phase.

mod signaller;
mod waiter;

use self::waiter::Phases;
use crate::all_gather::Call;
use crate::call_arguments::{CallArguments, sorted_ranks};
use crate::context::Context;
use crate::error::{EndError, Error};
use crate::numbers::Rank;
use crate::signal::{Arrivals, Listening, Way};

pub use self::signaller::PhaserSignaller;
pub use self::waiter::PhaserWaiter;

/// A barrier of some ranks, which signal, for some ranks, which wait, at one rank: a signalling
/// end, a waiting one, both or none. Made by [`Context::phaser`].
///
/// Phases follow each other: the k-th wait ends once every signaller has signalled k times. A rank that
/// has both ends and signals before it waits takes part in a split-phase barrier; one that only
/// signals never waits for others, and one that only waits holds up nobody.
///
/// ```
/// use talpf::{Config, Context, Error, Rank, exec};
///
/// // Rank 0 goes on with a step once ranks 1 and 2 have done theirs; they do not wait.
/// let steps = exec(Config { ranks: 3, ..Config::default() }, async |ctx: Context| {
///     let mut done = ctx.phaser([1, 2], [0]).await?;
///     for _step in 0..10 {
///         if let Some(signaller) = &mut done.signaller {
///             signaller.signal().await?;
///         }
///         if let Some(waiter) = &mut done.waiter {
///             waiter.wait().await?;
///         }
///     }
///     Ok::<_, Error>(done.waiter.map_or(0, |waiter| waiter.phases()))
/// })?;
/// assert_eq!(steps, [10, 0, 0]);
/// # Ok::<(), Error>(())
/// ```
///
/// **Source**: phasers (Shirako et al., 2008); `Sync` of the runtime of the MPPA-256 (Dupont de Dinechin
/// et al., 2013).
#[derive(Debug)]
pub struct Phaser {
    /// The signalling end, if this rank is a signaller.
    pub signaller: Option<PhaserSignaller>,
    /// The waiting end, if this rank is a waiter.
    pub waiter: Option<PhaserWaiter>,
    rank: Rank,
}

impl Phaser {
    /// Takes the signalling end.
    ///
    /// **Errors**: this rank is no signaller, or the end was taken.
    pub fn take_signaller(&mut self) -> Result<PhaserSignaller, Error> {
        self.signaller.take().ok_or_else(|| self.has_no("signaller of this phaser"))
    }

    /// Takes the waiting end.
    ///
    /// **Errors**: this rank is no waiter, or the end was taken.
    pub fn take_waiter(&mut self) -> Result<PhaserWaiter, Error> {
        self.waiter.take().ok_or_else(|| self.has_no("waiter of this phaser"))
    }

    fn has_no(&self, end: &'static str) -> Error {
        Error::End(EndError::NoEnd { rank: self.rank, end })
    }
}

impl Context {
    /// Makes a barrier whose phases `signallers` signal and `waiters` wait for. A rank may be both.
    ///
    /// Collective: every rank calls it with the same arguments, in the same order among its
    /// collective calls.
    ///
    /// **Completion**: all ranks have their ends.
    /// **Errors**: no such rank; arguments that differ, which names the rank and both values. All ranks
    /// have an error then.
    /// **Cost**: two exchanges between all ranks. At a waiter a cache line or two for each signaller,
    /// and until the run ends some 150 bytes.
    pub async fn phaser(
        &self,
        signallers: impl IntoIterator<Item = impl Into<Rank>>,
        waiters: impl IntoIterator<Item = impl Into<Rank>>,
    ) -> Result<Phaser, Error> {
        let (call, rank, notifications) = (Call::Phaser, self.rank(), self.notifications());
        let signallers = sorted_ranks(signallers, self.size());
        let waiters = sorted_ranks(waiters, self.size());
        let own = signallers.and_then(|signallers| Ok((signallers, waiters?)));
        let own = own.map(|(signallers, waiters)| {
            let arguments = CallArguments::new(call)
                .with_ranks("number of signallers", "digest of the signallers", &signallers)
                .with_ranks("number of waiters", "digest of the waiters", &waiters);
            let id = notifications.add_listener();
            (arguments.to_bytes(id), (arguments, signallers, waiters, id))
        });
        let (kept, all) = self.world().all_gather(rank, call, own).await?;
        let (arguments, signallers, waiters, id) = kept;
        let ids = arguments.compare(&all)?;
        let waiter = waiters.binary_search(&rank).is_ok().then(|| {
            let arrivals = Arrivals::new(notifications, &signallers, Phases);
            PhaserWaiter::new(Listening::new(arrivals, id))
        });
        // No rank signals before all can take that in.
        self.world().all_gather(rank, call, Ok((Vec::new(), ()))).await?;
        let signaller = signallers.binary_search(&rank).is_ok().then(|| {
            let way = |waiter: Rank| Way::new(notifications, waiter, ids[waiter.index()]);
            PhaserSignaller::new(notifications, waiters.into_iter().map(way).collect())
        });
        Ok(Phaser { signaller, waiter, rank })
    }
}
