//! The speed of the cores of a rank.
//!
//! A rank that was asked to be slow has a number of cores of its own, each `factor` times as slow
//! as the machine's. A task computes as fast as it can and hands its guards to a timer, which keeps
//! them until the core that the task was given is done with it. No worker is busy meanwhile, so that
//! a machine of two cores can show how sixteen slow ones wait for each other. What counts is the
//! processor time of the task: time in which its thread did not run makes no rank slower.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use talpf_runtime::Group;
use talpf_traces::{Event, ValueKind};

use super::{Machine, RankContext};

/// The speed of one rank. Clones share its cores.
#[derive(Clone)]
pub(crate) struct RankSpeed {
    /// `true` if nothing is computed, in virtual time.
    skips: bool,
    slow: Option<Arc<Slow>>,
}

struct Slow {
    factor: f64,
    group: Group,
    /// Time at which each core has done its work so far, on the runtime's clock.
    free_ns: Mutex<Vec<u64>>,
    /// Tasks whose guards are kept.
    kept: AtomicI64,
}

/// Guards of a task that a core computes; the trace shows how many there are.
struct Kept<G> {
    slow: Arc<Slow>,
    guards: Option<G>,
}

impl<G> Kept<G> {
    fn new(slow: &Arc<Slow>, guards: G) -> Self {
        slow.count_kept(1);
        Self { slow: Arc::clone(slow), guards: Some(guards) }
    }
}

impl<G> Drop for Kept<G> {
    fn drop(&mut self) {
        // Before the guards, whose successors may begin at once.
        self.slow.count_kept(-1);
        drop(self.guards.take());
    }
}

impl RankSpeed {
    /// The speed of the rank of `ctx`. A slow rank has its share of the workers as cores, one at
    /// least.
    pub(crate) fn of(ctx: &RankContext, machine: Machine) -> Self {
        let rank = ctx.rank();
        let slowdown = machine.slowdown().filter(|slow| slow.rank.is_none_or(|slow| slow == rank));
        let slow = |factor| {
            let cores = (machine.workers() / machine.ranks()).max(1);
            let free_ns = Mutex::new(vec![0; cores]);
            Arc::new(Slow { factor, group: ctx.group().clone(), free_ns, kept: AtomicI64::new(0) })
        };
        let slow = slowdown.map(|slowdown| slow(slowdown.factor));
        Self { skips: !machine.executes(), slow }
    }

    /// Does `work` with the guards of a task, and releases them after the time that this rank needs
    /// for it.
    pub(crate) fn compute<G: Send + 'static>(&self, mut guards: G, work: impl FnOnce(&mut G)) {
        match &self.slow {
            _ if self.skips => {}
            None => work(&mut guards),
            Some(slow) => slow.compute(guards, work),
        }
    }
}

impl Slow {
    fn compute<G: Send + 'static>(self: &Arc<Self>, mut guards: G, work: impl FnOnce(&mut G)) {
        let clock = self.group.clock();
        let (start, before_ns) = (clock.now_ns(), processor_time_ns());
        work(&mut guards);
        let cost_ns = (processor_time_ns() - before_ns) as f64 * self.factor;
        let (end, now) = (self.occupy(start, cost_ns), clock.now_ns());
        if end > now {
            let wait = self.group.wait_for(Duration::from_nanos(end - now));
            let kept = Kept::new(self, guards);
            let keep = async move {
                wait.await;
                drop(kept);
            };
            // A group that was cancelled refuses the task, which drops the guards.
            drop(self.group.task("slow core").unthrottled().spawn_async(move || keep));
        }
    }

    fn count_kept(&self, by: i64) {
        let (rank, value) = (self.group.number(), self.kept.fetch_add(by, Relaxed) + by);
        self.group.trace(|_| Event::Value { rank, kind: ValueKind::SlowCores, value });
    }

    /// Gives the core that is free first `cost_ns` to do from `start` on, and returns its end.
    fn occupy(&self, start: u64, cost_ns: f64) -> u64 {
        let mut free = self.free_ns.lock();
        let first = free.iter_mut().min().expect("a rank has a core");
        *first = start.max(*first) + cost_ns as u64;
        *first
    }
}

/// Returns the processor time of this thread.
fn processor_time_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
