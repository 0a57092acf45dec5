//! Rehook: a program that a program calls on the same ranks, with contexts of its own.
//!
//! The called program, a library, runs in a [`World`] of its own with the groups of the caller's
//! ranks, so its slots, lanes and rounds are others. Every rank passes through these states:
//!
//! 1. *Entering*: its tasks have ended, and it waits for all ranks to enter.
//! 2. *Inside*: the library runs. The failure of one rank is that of all ranks in this library, and
//!    of no rank outside; a failure of the caller's run is one of the library, too.
//! 3. *Leaving*: the library's tasks have ended, and the rank waits for all ranks to leave. Then its
//!    polling task ends, and the last rank takes the library's world away.
//!
//! A program that is dropped inside fails its library. The caller's run, which ends then, takes away
//! the world.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use ibverbs_sim::Device;
use talpf_runtime::{JoinHandle, Reporter};

use crate::all_gather::Call;
use crate::context::Context;
use crate::error::Error;
use crate::numbers::Rank;
use crate::polling;
use crate::sender::Sender;
use crate::world::World;

impl Context {
    /// Runs `library` on the same ranks, with a context that has a register, a message queue, lanes
    /// and rounds of its own, and the limits of a new run. Collective.
    ///
    /// Nothing of the caller is in reach meanwhile: its context is borrowed, and its slots are
    /// refused as those of another run. What the library may use of its arrays is what it gets as
    /// arguments; it registers them anew. A library may call another one.
    ///
    /// **Completion**: the library has returned at all ranks, and its tasks have ended.
    /// **Ordering**: it begins once the tasks of all ranks have ended; lanes that the caller has
    /// stay as they are.
    /// **Errors**: whatever `library` returns, which the library's operations at other ranks report
    /// as [`Error::PeerFailed`], and so does this call there; a task that failed, of the caller
    /// before or of the library; operations of a round that no sync has closed. The caller's run
    /// has not failed, and may go on. Ranks in several processes; a run with a link model.
    /// **Cost**: two exchanges between all ranks, and the device and queue pairs of a run.
    /// **Source**: `lpf_rehook` of LPF; thesis, chapter 2.3.1.
    ///
    /// ```
    /// use talpf::{Config, Context, Error, SyncMode, exec};
    /// use talpf_runtime::Array;
    ///
    /// /// Returns the sum of the numbers of all ranks.
    /// async fn sum(ctx: Context, number: u64) -> Result<u64, Error> {
    ///     let own = Array::new(ctx.group(), vec![number], 1)?;
    ///     let all = Array::new(ctx.group(), vec![0; ctx.size() as usize], 1)?;
    ///     let slot = ctx.register_global(&all).await?;
    ///     for rank in 0..ctx.size() {
    ///         ctx.put(&own.all(), slot.at(rank, ctx.rank().0 as usize))?;
    ///     }
    ///     ctx.sync(SyncMode::DEFAULT).window(&all.all()).await?;
    ///     let sum = ctx.group().task("sum").input(&all.all());
    ///     Ok(sum.run(|all| all.iter().sum())?.await?)
    /// }
    ///
    /// let sums = exec(Config { ranks: 3, ..Config::default() }, async |mut ctx| {
    ///     let number = u64::from(ctx.rank().0) + 1;
    ///     ctx.rehook(|library| sum(library, number)).await
    /// })?;
    /// assert_eq!(sums, [6, 6, 6]);
    /// # Ok::<(), Error>(())
    /// ```
    pub async fn rehook<R, E, F>(&mut self, library: impl FnOnce(Context) -> F) -> Result<R, E>
    where
        F: Future<Output = Result<R, E>>,
        E: From<Error> + Display,
    {
        let inside = Inside::enter(self).await?;
        let result = library(Context::new(&inside.world, inside.rank)).await;
        inside.leave(result).await
    }
}

/// A rank inside a library.
struct Inside {
    caller: Arc<World>,
    world: Arc<World>,
    rank: Rank,
    /// Number of the collective call that has entered the library.
    number: u64,
    polling: JoinHandle<()>,
    _report: Reporter,
    has_left: bool,
}

impl Inside {
    async fn enter(ctx: &Context) -> Result<Self, Error> {
        let (caller, rank) = (ctx.world(), ctx.rank());
        if caller.processes().is_some() {
            return Err(Error::OneProcess { call: Call::Rehook.name() });
        }
        if caller.config.device.link.is_some() {
            return Err(Error::HasLinkModel { call: Call::Rehook.name() });
        }
        let waited = ctx.group().wait().await.map(|()| (Vec::new(), ()));
        let own = waited.map_err(Error::from);
        let ((), gathered) = caller.all_gather(rank, Call::Rehook, own).await?;
        let number = gathered.number;
        let make = || {
            let groups = caller.ranks().iter().map(|rank| rank.sender.group.clone());
            let device = Device::new(caller.config.device.clone())?;
            World::of_groups(&device, caller.config.clone(), groups)
        };
        let world = caller.libraries.enter(number, ctx.size(), make)?;
        if let Some(error) = ctx.sender().error() {
            // The caller's run has failed before it knew of the library.
            world.fail_with_reason(rank, &error.to_string());
        }
        let receiver = world.rank(rank);
        let polling = ctx.group().spawn_service("poll", polling::poll(receiver, &world.config))?;
        let reporter = Arc::downgrade(&world);
        let _report = ctx.group().on_hang(move |text| {
            reporter.upgrade().iter().for_each(|world| world.report_hang(rank, text));
        });
        let caller = Arc::clone(caller);
        Ok(Inside { caller, world, rank, number, polling, _report, has_left: false })
    }

    fn fail(&self, error: &impl Display) {
        self.world.fail_with_reason(self.rank, &error.to_string());
    }

    /// Leaves the library with its result at this rank.
    async fn leave<R, E>(mut self, result: Result<R, E>) -> Result<R, E>
    where
        E: From<Error> + Display,
    {
        match &result {
            Ok(_) => self.world.names.end(self.rank),
            Err(error) => self.fail(error),
        }
        let receiver = Arc::clone(self.world.rank(self.rank));
        let Sender { group, open_rounds, .. } = &*receiver.sender;
        let waited = group.wait().await.map_err(Error::from);
        let ended = waited.and_then(|()| open_rounds.check_channels());
        let ended = ended.and_then(|()| open_rounds.check_closed());
        if let Err(error) = &ended {
            self.fail(error);
        }
        let own = Ok((Vec::new(), ()));
        let met = self.caller.all_gather(self.rank, Call::LeaveLibrary, own).await;
        let failed = receiver.sender.error();
        receiver.stop_polling();
        let polled = (&mut self.polling).await;
        self.has_left = true;
        if let Some(world) = self.caller.libraries.leave(self.number) {
            world.clear();
        }
        let result = result?;
        ended?;
        met?;
        polled.map_err(Error::from)?;
        failed.map_or(Ok(result), |error| Err(error.into()))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if !self.has_left {
            self.fail(&"its program was dropped inside a library");
            self.world.rank(self.rank).stop_polling();
        }
    }
}
