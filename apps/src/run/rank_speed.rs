//! The speed of the cores of a rank.
//!
//! Cores that are slower than the machine's cost no worker: a task computes as fast as it can and hands its
//! guards to a timer, which keeps them until its core would be done. So a machine of two cores can show
//! how sixteen slow ones wait for each other. What counts is the processor time of the task: time in
//! which its thread did not run makes no rank slower.
//!
//! A rank that was asked to be slow has its share of the workers as cores, and a task is given the core that
//! is free first once it has computed. In dilated time every rank has [`VirtualCores`], which a task
//! waits for before it computes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use talpf_runtime::{Group, OnReady};
use talpf_traces::{Event, ValueKind};

use super::virtual_cores::{VirtualCore, VirtualCores};
use super::{RankContext, RunInput};

/// The speed of one rank. Clones share its cores.
#[derive(Clone)]
pub(crate) enum RankSpeed {
    /// Tasks take the time that they take.
    Real,
    /// Nothing is computed, in virtual time.
    Skipped,
    /// The rank is slow.
    Slow(Arc<Slow>),
    /// The rank has virtual cores.
    Dilated(Arc<VirtualCores>, Arc<Keeper>),
}

/// Core of one task, which may be any that is free.
pub(crate) enum TaskCore {
    Real,
    Skipped,
    Slow(Arc<Slow>),
    Dilated(Arc<VirtualCore>, Arc<Keeper>),
}

/// Cores of a slow rank.
pub(crate) struct Slow {
    factor: f64,
    keeper: Arc<Keeper>,
    /// Time at which each core has done its work so far, on the runtime's clock.
    free_ns: Mutex<Vec<u64>>,
}

/// Keeper of the guards of tasks that have computed.
pub(crate) struct Keeper {
    group: Group,
    /// Tasks whose guards are kept; the trace shows how many there are.
    kept: AtomicI64,
}

/// Guards that are kept.
struct Kept<G> {
    keeper: Arc<Keeper>,
    guards: Option<G>,
}

impl RankSpeed {
    /// The speed of the rank of `ctx`. A slow rank has its share of the workers as cores, one at
    /// least.
    pub(crate) fn of<P>(ctx: &RankContext, input: &RunInput<P>) -> Self {
        let (rank, group, machine) = (ctx.rank(), ctx.group(), input.machine);
        let slowdown = machine.slowdown().filter(|slow| slow.rank.is_none_or(|slow| slow == rank));
        let factor = slowdown.map(|slowdown| slowdown.factor);
        let keeper = || Arc::new(Keeper { group: group.clone(), kept: AtomicI64::new(0) });
        match (machine.dilation(), factor) {
            _ if !machine.executes() => Self::Skipped,
            (Some(dilation), slower) => {
                let factor = dilation.factor * slower.unwrap_or(1.0);
                let overshoot = &input.observer.overshoot;
                let cores = VirtualCores::new(dilation.cores, factor, group, overshoot);
                Self::Dilated(cores, keeper())
            }
            (None, Some(factor)) => {
                let cores = (machine.workers() / machine.ranks()).max(1);
                let free_ns = Mutex::new(vec![0; cores]);
                Self::Slow(Arc::new(Slow { factor, keeper: keeper(), free_ns }))
            }
            (None, None) => Self::Real,
        }
    }

    /// Returns the core of a task that is about to be spawned, by [`spawn_on!`](super::spawn_on) or
    /// [`spawn_once_on!`](super::spawn_once_on).
    pub(crate) fn core(&self) -> TaskCore {
        match self {
            Self::Real => TaskCore::Real,
            Self::Skipped => TaskCore::Skipped,
            Self::Slow(slow) => TaskCore::Slow(Arc::clone(slow)),
            Self::Dilated(cores, keeper) => TaskCore::Dilated(cores.core(), Arc::clone(keeper)),
        }
    }
}

/// Spawns a task of a step whose body borrows its guards and computes on a [`TaskCore`].
///
/// A macro, since bodies have different numbers of guards, and tasks of slow cores are of other types.
macro_rules! spawn_on {
    ($core:ident, $task:expr, |$($guard:ident),+| $body:expr) => {
        if $core.keeps_guards() {
            $crate::run::spawn_once_on!($core, $task, move |$($guard),+| {
                $core.compute(($($guard,)+), |($($guard,)+)| $body);
            })
        } else {
            $task.spawn_borrowed(move |$($guard),+| {
                if $core.executes() {
                    $body
                }
            })
        }
    };
}

/// Spawns a task whose body calls [`TaskCore::compute`], once it has got its core.
macro_rules! spawn_once_on {
    ($core:ident, $task:expr, $body:expr) => {
        match $core.before() {
            None => $task.spawn($body),
            Some(action) => $task.on_ready_of(action).spawn($body),
        }
    };
}

pub(crate) use {spawn_on, spawn_once_on};

impl TaskCore {
    /// Returns `true` if guards are kept for longer than the body takes.
    pub(crate) fn keeps_guards(&self) -> bool {
        matches!(self, Self::Slow(_) | Self::Dilated(..))
    }

    /// Returns `true` if bodies are executed.
    pub(crate) fn executes(&self) -> bool {
        !matches!(self, Self::Skipped)
    }

    /// Returns the action of a task that waits for its core before it computes.
    pub(crate) fn before(&self) -> Option<Arc<dyn OnReady>> {
        match self {
            Self::Dilated(core, _) => Some(Arc::clone(core) as Arc<dyn OnReady>),
            _ => None,
        }
    }

    /// Does `work` with the guards of the task, and releases them after the time that the core needs
    /// for it.
    pub(crate) fn compute<G: Send + 'static>(&self, mut guards: G, work: impl FnOnce(&mut G)) {
        match self {
            Self::Skipped => {}
            Self::Real => work(&mut guards),
            Self::Slow(slow) => {
                let start_ns = slow.keeper.group.clock().now_ns();
                let cost_ns = cost_ns(|| work(&mut guards));
                slow.keeper.keep_until(slow.occupy(start_ns, cost_ns), guards);
            }
            Self::Dilated(core, keeper) => {
                let cost_ns = cost_ns(|| work(&mut guards));
                // The core is given back before the guards, whose successors may begin at once.
                keeper.keep_until(core.hold_for(cost_ns), (Arc::clone(core), guards));
            }
        }
    }
}

impl Slow {
    /// Gives the core that is free first work of `cost_ns` to do from `start` on, and returns its end.
    fn occupy(&self, start: u64, cost_ns: f64) -> u64 {
        let mut free = self.free_ns.lock();
        let first = free.iter_mut().min().expect("a rank has a core");
        *first = start.max(*first) + (cost_ns * self.factor) as u64;
        *first
    }
}

impl Keeper {
    /// Keeps the guards of a task until `end_ns`, while nothing is computed.
    fn keep_until<G: Send + 'static>(self: &Arc<Self>, end_ns: u64, guards: G) {
        let now_ns = self.group.clock().now_ns();
        if end_ns <= now_ns {
            return;
        }
        let wait = self.group.wait_for(Duration::from_nanos(end_ns - now_ns));
        self.count(1);
        let kept = Kept { keeper: Arc::clone(self), guards: Some(guards) };
        let keep = async move {
            wait.await;
            drop(kept);
        };
        // A group that was cancelled refuses the task, which drops the guards.
        drop(self.group.task("slow core").unthrottled().spawn_async(move || keep));
    }

    fn count(&self, by: i64) {
        let (rank, value) = (self.group.number(), self.kept.fetch_add(by, Relaxed) + by);
        self.group.trace(|_| Event::Value { rank, kind: ValueKind::SlowCores, value });
    }
}

impl<G> Drop for Kept<G> {
    fn drop(&mut self) {
        // Before the guards, whose successors may begin at once.
        self.keeper.count(-1);
        drop(self.guards.take());
    }
}

/// Does `work`, and returns the processor time of this thread for it.
fn cost_ns(work: impl FnOnce()) -> f64 {
    let before_ns = processor_time_ns();
    work();
    (processor_time_ns() - before_ns) as f64
}

/// Returns the processor time of this thread.
fn processor_time_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
