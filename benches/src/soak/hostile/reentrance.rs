//! Unexpected calls back into the runtime: waits, shutdowns and whole runs in tasks, and spawns
//! from the drop of captures and of thread-locals.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::ValueEnum;
use talpf_runtime::{Array, Children, Error, Group, Runtime};

use super::{Bystander, EpisodeError, Outcome, Rng, finish, panic};

/// Value that runs a function when it drops.
struct AtDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

thread_local! {
    static LEFT_BEHIND: RefCell<Vec<Box<dyn std::any::Any>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReentrantCall {
    SpawnsAsCaptureDrops,
    WaitsAsCaptureDrops,
    SpawnsAsThreadLocalDrops,
    PanicsAsThreadLocalDrops,
    Waits,
    BlocksOn,
    ShutsDown,
    DropsRuntime,
    Runs,
    SpawnsInlineInInline,
    IteratesInside,
    WaitsForChildrenOfOther,
}

/// First violation that was found.
type Findings = Arc<Mutex<Option<String>>>;

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtime = Runtime::new(super::runtime(rng))?;
    let mut bystander = Bystander::new(&runtime)?;
    let findings = Findings::default();
    let count = 1 + rng.below(6);
    for _ in 0..count {
        bystander.go_on(&runtime, rng)?;
        let what = rng.pick(ReentrantCall::value_variants());
        super::show(&what);
        spawn(&runtime, what, rng, &findings)?;
    }
    bystander.go_on(&runtime, rng)?;
    finish(runtime, &bystander, &[Outcome::Completes, Outcome::Fails])?;
    let found = findings.lock().ok().and_then(|mut found| found.take());
    found.map_or(Ok(count as u64), |found| Err(EpisodeError(found)))
}

fn spawn(
    group: &Group,
    what: ReentrantCall,
    rng: &mut Rng,
    findings: &Findings,
) -> Result<(), Error> {
    let own = group.clone();
    let task = group.task("calls back");
    match what {
        ReentrantCall::SpawnsAsCaptureDrops => {
            let kept = AtDrop(move || drop(own.task("of a capture").inline().spawn(|| ())));
            task.spawn(move || drop(kept))
        }
        ReentrantCall::WaitsAsCaptureDrops => {
            let kept = AtDrop(move || drop(own.wait_blocking()));
            task.spawn(move || {
                let _kept = &kept;
            })
        }
        ReentrantCall::SpawnsAsThreadLocalDrops => task.spawn(move || {
            let kept = AtDrop(move || drop(own.task("of a thread-local").spawn(|| ())));
            LEFT_BEHIND.with_borrow_mut(|left| left.push(Box::new(kept)));
        }),
        ReentrantCall::PanicsAsThreadLocalDrops => {
            // A panic in the destructor of a thread-local ends the process, so it is caught here.
            let kept = AtDrop(move || {
                let _ = std::panic::catch_unwind(|| panic());
                let _ = own.task("of a thread-local").inline().spawn(|| ());
            });
            task.spawn(move || LEFT_BEHIND.with_borrow_mut(|left| left.push(Box::new(kept))))
        }
        ReentrantCall::Waits => {
            let findings = Arc::clone(findings);
            task.spawn(move || refused(&findings, "wait_blocking", own.wait_blocking()))
        }
        ReentrantCall::BlocksOn => {
            let (findings, config) = (Arc::clone(findings), super::runtime(rng));
            task.spawn(move || {
                if let Ok(other) = Runtime::new(config) {
                    refused(&findings, "block_on", other.block_on(async {}));
                }
            })
        }
        ReentrantCall::ShutsDown | ReentrantCall::DropsRuntime => {
            let (findings, mut config) = (Arc::clone(findings), super::runtime(rng));
            config.workers = 1 + rng.below(2);
            let shuts_down = matches!(what, ReentrantCall::ShutsDown);
            task.spawn(move || in_itself(config, shuts_down, findings))
        }
        ReentrantCall::Runs => {
            let findings = Arc::clone(findings);
            let config = talpf::Config {
                ranks: 1 + rng.below(3) as u32,
                runtime: super::runtime(rng),
                ..talpf::Config::default()
            };
            task.spawn(move || {
                let ran = Arc::new(Mutex::new(false));
                let runs = Arc::clone(&ran);
                let ended = talpf::exec(config, move |_ctx| {
                    let runs = Arc::clone(&runs);
                    async move {
                        runs.lock().into_iter().for_each(|mut ran| *ran = true);
                        Ok::<(), talpf::Error>(())
                    }
                });
                let ended = ended.map_err(|error| match error {
                    talpf::Error::Runtime(error) => error,
                    _ => Error::ShutDown,
                });
                refused(&findings, "exec", ended);
                if ran.lock().is_ok_and(|ran| *ran) {
                    note(&findings, "exec in a task has run its mains".to_owned());
                }
            })
        }
        ReentrantCall::SpawnsInlineInInline => task.spawn(move || nest(&own, 40)),
        ReentrantCall::IteratesInside => task.spawn(move || {
            let _ = own.iterate::<Error>(3, |iteration| {
                let inner = own.clone();
                iteration.task("step").spawn(move || {
                    let _ = inner.task("of a step").inline().spawn(|| ());
                })
            });
        }),
        ReentrantCall::WaitsForChildrenOfOther => task.spawn_async(move || async move {
            let Ok(children) = Children::of_current_task() else { return };
            let array = Array::new(&own, vec![0u8; 4], 1);
            let _ = array.map(|array| children.task("child").inout(&array.all()).spawn(|_| ()));
            let waits = own.task("waits").run_async(move || async move { children.wait().await });
            drop(waits);
            own.wait_for(Duration::from_micros(10)).await;
        }),
    }
}

fn nest(group: &Group, depth: usize) {
    if depth > 0 {
        let inner = group.clone();
        let _ = group.task("nested").inline().spawn(move || nest(&inner, depth - 1));
    }
}

/// Ends a runtime from one of its own tasks.
fn in_itself(config: talpf_runtime::Config, shuts_down: bool, findings: Findings) {
    let Ok(runtime) = Runtime::new(config) else { return };
    let group = (*runtime).clone();
    let ended = group.task("ends its runtime").spawn(move || {
        if shuts_down {
            refused(&findings, "shut_down", runtime.shut_down());
        } else {
            drop(runtime);
        }
    });
    drop(ended);
}

/// Records a violation if a call that would block a worker was not refused.
fn refused<T>(findings: &Findings, what: &str, result: Result<T, Error>) {
    match result {
        Err(Error::BlockingInTask { .. }) => {}
        Err(error) => note(findings, format!("{what} in a task: {error}")),
        Ok(_) => note(findings, format!("{what} in a task was not refused")),
    }
}

fn note(findings: &Findings, text: String) {
    if let Ok(mut found) = findings.lock() {
        found.get_or_insert(text);
    }
}
