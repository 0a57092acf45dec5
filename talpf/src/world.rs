//! The ranks of a run in this process, and the other processes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use ibverbs_sim::Device;
use talpf_runtime::Group;

use crate::all_gather::{AllGather, Call, Gathered, Part};
use crate::config::Config;
use crate::control_plane;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::failure::{FailureObserver, RunFailure};
use crate::libraries::Libraries;
use crate::names::Names;
use crate::notification::{Follows, NotificationTable};
use crate::numbers::Rank;
use crate::peer::{LocalPeer, Peer, Peers};
use crate::processes::{Processes, RemotePeer, Remotes};
use crate::rounds::{MOST_AHEAD, MOST_AHEAD_REMOTE};
use crate::sender::Sender;
use crate::superstep_exchange::SuperstepExchange;
use crate::sync::{Limits, Receiver};
use crate::window::WindowTable;

/// The part of a run that is in this process.
pub(crate) struct World {
    /// Ranks of this process.
    ranks: Box<[Arc<Receiver>]>,
    /// Number of the first rank of this process.
    first: u32,
    size: u32,
    /// The other processes of the run, if any.
    processes: Option<Arc<Processes>>,
    pub(crate) config: Config,
    all_gather: Arc<AllGather>,
    pub(crate) names: Arc<Names>,
    /// Libraries that the ranks have called by `rehook`.
    pub(crate) libraries: Libraries<World>,
    failure: Arc<RunFailure>,
    /// Exchange of plain BSP, see [`Sender::supersteps`].
    supersteps: Option<Arc<SuperstepExchange>>,
}

impl World {
    /// Makes a run whose ranks are all in this process, one for each group.
    pub(crate) fn of_groups(
        device: &Device,
        config: Config,
        groups: impl Iterator<Item = Group>,
    ) -> Result<Arc<Self>, Error> {
        let endpoints = Endpoint::all(device, config.ranks)?;
        Ok(World::new(config, groups.zip(endpoints).collect(), None))
    }

    /// Makes a run whose ranks are all in this process, or whose others are in the processes that
    /// the device of `remotes` reaches. The number of a rank's group is that of the rank.
    pub(crate) fn new(
        config: Config,
        ranks: Vec<(Group, Endpoint)>,
        remotes: Option<Remotes>,
    ) -> Arc<Self> {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let size = config.ranks;
        let first = ranks.first().map_or(0, |(group, _)| group.number());
        let all_gather = Arc::new(AllGather::new(size, first..first + ranks.len() as u32));
        let names = Arc::<Names>::default();
        let failure = ranks.iter().map(|(group, _)| Rank(group.number()));
        let failure = Arc::new(RunFailure::new(failure));
        let most_ahead = if remotes.is_some() { MOST_AHEAD_REMOTE } else { MOST_AHEAD };
        let (groups, endpoints): (Vec<_>, Vec<_>) = ranks.into_iter().unzip();
        let peers = peers_of(&config, first, endpoints, remotes.as_ref(), most_ahead);
        let processes = remotes.map(|remotes| {
            let (failure, all_gather) = (Arc::clone(&failure), Arc::clone(&all_gather));
            let names = Arc::clone(&names);
            Arc::new(Processes::new(remotes, peers.clone(), failure, (all_gather, names)))
        });
        let limits =
            Limits { most_ahead, poll_batch: config.poll_batch, max_polling: config.max_polling };
        let shares = processes.is_none() && config.shares_supersteps();
        let supersteps = shares.then(|| Arc::new(SuperstepExchange::new(size)));
        let ranks = groups.into_iter().zip(peers.locals()).map(|(group, own)| {
            let at = (run, &supersteps);
            let sender = Sender::new(own, &peers, &failure, group, &config, at);
            // In virtual time each rank has cores of its own.
            let shares = processes.is_none() && config.runtime.virtual_time.is_none();
            let workers = shares.then_some(config.runtime.workers);
            Receiver::new(Arc::new(sender), processes.clone(), workers, limits)
        });
        let ranks = ranks.collect();
        let libraries = Libraries::new();
        control_plane::begins(&config);
        let world = World {
            ranks,
            first,
            size,
            processes,
            config,
            all_gather,
            names,
            libraries,
            failure,
            supersteps,
        };
        let world = Arc::new(world);
        let observer: Weak<World> = Arc::downgrade(&world);
        world.failure.set_observer(observer);
        world
    }

    /// Returns the first rank of this process.
    pub(crate) fn first(&self) -> Rank {
        Rank(self.first)
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Returns a rank of this process.
    pub(crate) fn rank(&self, rank: Rank) -> &Arc<Receiver> {
        &self.ranks[(rank.0 - self.first) as usize]
    }

    /// Returns the other processes of the run, if any.
    pub(crate) fn processes(&self) -> Option<&Arc<Processes>> {
        self.processes.as_ref()
    }

    /// Returns the ranks of this process.
    pub(crate) fn ranks(&self) -> &[Arc<Receiver>] {
        &self.ranks
    }

    /// Gives the bytes of a collective call and waits for those of all ranks. The other part of
    /// `own` is kept meanwhile. Every rank calls in the same order, also one that has failed.
    ///
    /// **Errors**: that of `own`; a rank that failed in the call or made another one; a run that
    /// has failed.
    pub(crate) async fn all_gather<K>(
        &self,
        rank: Rank,
        call: Call,
        own: Result<(Vec<u8>, K), Error>,
    ) -> Result<(K, Gathered), Error> {
        let (bytes, kept) = match own {
            Ok((bytes, kept)) => (Ok(bytes), Ok(kept)),
            Err(error) => (Err(error.to_string()), Err(error)),
        };
        let part = Part::new(call, bytes);
        let message = self.processes.as_ref().map(|processes| (processes, part.to_bytes()));
        let given = self.all_gather.give(rank, part);
        if let Some((processes, bytes)) = message {
            processes.give(rank, given.number, &bytes);
        }
        let kept = kept?;
        Ok((kept, given.gather().await?))
    }

    /// Adds what a rank of this process waits for to a hang report.
    pub(crate) fn report_hang(&self, rank: Rank, text: &mut String) {
        self.rank(rank).report_hang(text);
        self.names.describe(rank, text);
        self.supersteps.iter().for_each(|supersteps| supersteps.describe(rank, text));
    }

    /// Fails the run with the error of the program of a rank.
    #[cold]
    pub(crate) fn fail_with_reason(&self, rank: Rank, reason: &str) {
        self.failure.fail_with_reason(rank, reason);
    }

    /// Checks that the run has ended without an error, once every main and all tasks have.
    ///
    /// **Errors**: the first failure of a rank of this process; operations of a round that no sync
    /// has closed; a notified put that was not received.
    pub(crate) fn check_end(&self) -> Result<(), Error> {
        self.failure.check()?;
        self.ranks.iter().try_for_each(|rank| {
            rank.sender.open_rounds.check_closed()?;
            rank.own().notifications.check_received()
        })
    }

    /// Refuses all later calls on handles, and breaks the cycles between ranks, rounds and
    /// operations, at the end of the run.
    pub(crate) fn clear(&self) {
        self.failure.end_run();
        self.all_gather.fail(Error::RunEnded);
        self.names.fail(Error::RunEnded);
        self.supersteps.iter().for_each(|supersteps| supersteps.wake_all());
        self.processes.iter().for_each(|processes| processes.clear());
        self.libraries.drain().for_each(|library| library.clear());
        for rank in &self.ranks {
            let shut_down = || Error::Runtime(talpf_runtime::Error::ShutDown);
            rank.sender.retries.drain().for_each(|issued| issued.fail(shut_down()));
            rank.own().windows.clear();
            rank.own().notifications.clear();
            rank.clear();
            rank.sender.open_rounds.clear();
            rank.sender.slots.clear();
            rank.own().clear_engine();
        }
    }
}

/// Makes the peers of all ranks: those of this process have an endpoint each, from rank `first` on.
fn peers_of(
    config: &Config,
    first: u32,
    endpoints: Vec<Endpoint>,
    remotes: Option<&Remotes>,
    most_ahead: u64,
) -> Peers {
    let size = config.ranks;
    let here = first..first + endpoints.len() as u32;
    let local = |rank, endpoint| {
        // Remote ranks limit their requests to their credit themselves.
        let windows = WindowTable::new(size, config.credits)
            .limiting(here.clone())
            .noting(config.check_conflicts)
            .for_peers_ahead(most_ahead);
        let notifications = NotificationTable::new(rank, config.credits).limiting(here.clone());
        let has_wire = remotes.is_some();
        Peer::Local(Arc::new(LocalPeer::new(rank, endpoint, windows, notifications, has_wire)))
    };
    let mut endpoints = endpoints.into_iter();
    let peer = |rank: u32| match remotes {
        Some(Remotes { device, distribution, thread, attention, .. }) if !here.contains(&rank) => {
            let shared = (thread.clone(), Arc::clone(attention));
            let peer = RemotePeer::new(Rank(rank), *distribution, device, config.credits, shared);
            Some(Peer::Remote(peer))
        }
        _ => Some(local(Rank(rank), endpoints.next()?)),
    };
    Peers::new((0..size).filter_map(peer))
}

impl FailureObserver for World {
    fn run_has_failed(&self, first: Rank, reason: &str) {
        self.ranks.iter().for_each(|rank| rank.own().ring_doorbell());
        self.libraries.worlds().iter().for_each(|library| library.fail_with_reason(first, reason));
        if let Some(processes) = &self.processes {
            processes.broadcast_failure(first, reason);
        }
        let failed = Error::PeerFailed { rank: first, reason: reason.to_owned() };
        self.all_gather.fail(failed.clone());
        self.names.fail(failed);
        self.supersteps.iter().for_each(|supersteps| supersteps.wake_all());
        if let Some(processes) = &self.processes {
            self.ranks.iter().for_each(|rank| rank.own().endpoint.cut_off());
            processes.fail();
        }
        for rank in &self.ranks {
            let sender = &rank.sender;
            let reason = sender.error().map_or(reason.to_owned(), |error| error.to_string());
            let reason = Arc::from(reason);
            sender.own.windows.fail(&reason);
            let mut follows = Follows::default();
            sender.own.notifications.fail(&reason, &mut follows);
            sender.peers.follow_up(sender.rank(), &mut follows);
            sender.open_rounds.fail(&reason);
            sender.try_again();
            sender.own.wake_poller();
        }
    }
}
