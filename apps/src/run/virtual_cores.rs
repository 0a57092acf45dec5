//! Virtual cores of a rank in real time.
//!
//! A rank has `count` cores, each `factor` times as slow as the machine's. A task that becomes ready takes
//! a free core, or is held back until it is the first in the queue of its rank and a core is given back:
//! no worker is busy meanwhile. Its body then computes on any worker, as fast as that can, and its guards
//! are kept until `factor` times the processor time of the body have passed since it got the core.
//! So workers may compute late and in any order, as long as they are done by then.
//!
//! A core that is given back late is at its next task as if it had been given back in time, so that
//! delays of timers do not add up. [`Overshoot`] counts them.
//!
//! Deliberately absent: priorities, tasks that compute nothing, which need no core.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use talpf_runtime::{Group, HeldBack, OnReady, Ready};

use super::Overshoot;

/// Virtual cores of one rank.
pub(crate) struct VirtualCores {
    pub(super) factor: f64,
    group: Group,
    overshoot: Overshoot,
    state: Mutex<State>,
}

struct State {
    /// Number of cores that are free; 0 if tasks wait.
    free: u32,
    /// Tasks that wait for a core, in the order in which they have become ready.
    waiting: VecDeque<Waiting>,
}

/// Task that waits for a core.
struct Waiting {
    since_ns: u64,
    core: Arc<VirtualCore>,
    held: HeldBack,
}

/// Core of one task: none until the task is ready and has got it, given back when this drops.
pub(crate) struct VirtualCore {
    cores: Arc<VirtualCores>,
    hold: Mutex<Hold>,
}

/// Times on the clock of the runtime.
#[derive(Clone, Copy)]
enum Hold {
    NotYet,
    Since(u64),
    FromTo(u64, u64),
}

impl VirtualCores {
    pub(super) fn new(count: u32, factor: f64, group: &Group, overshoot: &Overshoot) -> Arc<Self> {
        let state = Mutex::new(State { free: count, waiting: VecDeque::new() });
        Arc::new(Self { factor, group: group.clone(), overshoot: overshoot.clone(), state })
    }

    /// Makes the core of a task that is about to be spawned.
    pub(super) fn core(self: &Arc<Self>) -> Arc<VirtualCore> {
        Arc::new(VirtualCore { cores: Arc::clone(self), hold: Mutex::new(Hold::NotYet) })
    }

    /// Takes a core that is free since `end_ns` for the task that waits longest.
    fn give_back(&self, end_ns: u64) {
        let next = {
            let mut state = self.state.lock();
            let next = state.waiting.pop_front();
            state.free += u32::from(next.is_none());
            next
        };
        if let Some(Waiting { since_ns, core, held }) = next {
            core.begin(since_ns.max(end_ns));
            drop(held);
        }
    }
}

impl VirtualCore {
    fn begin(&self, now_ns: u64) {
        *self.hold.lock() = Hold::Since(now_ns);
    }

    /// Holds the core for the time that work of `cost_ns` takes on it. Returns the end of that time.
    pub(super) fn hold_for(&self, cost_ns: f64) -> u64 {
        let mut hold = self.hold.lock();
        let begin_ns = match *hold {
            Hold::Since(begin_ns) | Hold::FromTo(begin_ns, _) => begin_ns,
            Hold::NotYet => self.cores.group.clock().now_ns(),
        };
        let end_ns = begin_ns + (cost_ns * self.cores.factor) as u64;
        *hold = Hold::FromTo(begin_ns, end_ns);
        end_ns
    }
}

impl OnReady for VirtualCore {
    fn act(self: Arc<Self>, ready: &Ready) {
        let (cores, held) = (Arc::clone(&self.cores), ready.hold_back());
        let now_ns = cores.group.clock().now_ns();
        let mut state = cores.state.lock();
        if state.free == 0 {
            state.waiting.push_back(Waiting { since_ns: now_ns, core: self, held });
            return;
        }
        state.free -= 1;
        drop(state);
        self.begin(now_ns);
    }
}

impl Drop for VirtualCore {
    fn drop(&mut self) {
        match *self.hold.get_mut() {
            Hold::NotYet => {}
            // The task was cancelled, or has failed.
            Hold::Since(_) => self.cores.give_back(0),
            Hold::FromTo(begin_ns, end_ns) => {
                let late_ns = self.cores.group.clock().now_ns().saturating_sub(end_ns);
                self.cores.overshoot.add(end_ns - begin_ns, late_ns);
                self.cores.give_back(end_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use talpf_runtime::{Array, Config, Runtime};

    use super::*;
    use crate::run::OvershootSums;

    /// Runs 40 tasks on virtual cores and two workers, of which some fail. Returns the order of their bodies,
    /// and the sums.
    fn run(count: u32, fails: fn(usize) -> bool) -> (Vec<usize>, OvershootSums) {
        let runtime = Runtime::new(Config { workers: 2, ..Config::default() }).unwrap();
        let overshoot = Overshoot::default();
        let cores = VirtualCores::new(count, 2.0, &runtime, &overshoot);
        let array = Array::new(&runtime, vec![0; 40], 1).unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        for number in 0..40 {
            let (core, order) = (cores.core(), Arc::clone(&order));
            let action: Arc<dyn OnReady> = Arc::clone(&core) as _;
            let task = runtime.task("core").output(&array.tile(number)).on_ready_of(action);
            let body = move |guard| {
                order.lock().push(number);
                assert!(!fails(number), "task {number} fails");
                core.hold_for(25_000.0);
                let group = core.cores.group.clone();
                let wait = group.wait_for(Duration::from_micros(50));
                let keep = async move {
                    wait.await;
                    drop((core, guard));
                };
                group.task("keep").unthrottled().spawn_async(move || keep).unwrap();
            };
            task.spawn(body).unwrap();
        }
        let ended = runtime.wait_blocking();
        assert_eq!(ended.is_err(), (0..40).any(fails), "{ended:?}");
        let order = std::mem::take(&mut *order.lock());
        (order, overshoot.sums())
    }

    #[test]
    fn tasks_get_the_only_core_in_the_order_in_which_they_become_ready() {
        let (order, sums) = run(1, |_| false);
        assert_eq!(order, (0..40).collect::<Vec<_>>());
        assert_eq!((sums.tasks, sums.held_ns), (40, 40 * 50_000));
    }

    #[test]
    fn tasks_that_fail_give_their_cores_back() {
        for cores in [1, 3] {
            let (mut order, sums) = run(cores, |number| number % 3 == 0);
            order.sort_unstable();
            assert_eq!(order, (0..40).collect::<Vec<_>>());
            assert_eq!(sums.tasks, 26);
        }
    }
}
