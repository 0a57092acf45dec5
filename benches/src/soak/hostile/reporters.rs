//! Hang reporters and judges that panic, spawn, wait, or add and remove reporters.

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use clap::ValueEnum;
use talpf_runtime::{PendingEvent, Reporter, Runtime};

use super::{Bystander, EpisodeError, Outcome, Rng, finish, panic};

/// Action in the middle of a report.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ReporterAction {
    Says,
    Panics,
    Spawns,
    Waits,
    Adds,
    Removes,
}

pub(super) fn episode(rng: &mut Rng) -> Result<u64, EpisodeError> {
    let runtime = Runtime::new(super::runtime(rng))?;
    let mut bystander = Bystander::new(&runtime)?;
    let kept = Arc::new(Mutex::new(Vec::<Reporter>::new()));
    for _ in 0..rng.below(4) {
        let act = act(rng.pick(ReporterAction::value_variants()), &runtime, &kept);
        let reporter = runtime.on_hang(move |text| {
            text.push_str("a hostile reporter\n");
            act();
        });
        kept.lock().map_err(|_| EpisodeError("poisoned".to_owned()))?.push(reporter);
    }
    if rng.one_in(2) {
        let judge = act(rng.pick(ReporterAction::value_variants()), &runtime, &kept);
        runtime.judge_hangs(move || {
            judge();
            true
        });
    }
    bystander.go_on(&runtime, rng)?;
    let hangs = !rng.one_in(4);
    if hangs {
        runtime.task("forgets").spawn(|| forget(PendingEvent::of_current_task()))?;
    }
    bystander.go_on(&runtime, rng)?;
    // The panic of a reporter may propagate to the caller of the dump.
    let _ = catch_unwind(AssertUnwindSafe(|| runtime.dump()));
    let permitted: &[Outcome] = if hangs { &[Outcome::Hangs] } else { &[Outcome::Completes] };
    finish(runtime, &bystander, permitted)?;
    Ok(1)
}

fn act(
    what: ReporterAction,
    runtime: &Runtime,
    kept: &Arc<Mutex<Vec<Reporter>>>,
) -> impl Fn() + Send + Sync + 'static {
    super::show(&what);
    let (group, kept) = ((**runtime).clone(), Arc::downgrade(kept));
    move || match what {
        ReporterAction::Says => {}
        ReporterAction::Panics => panic(),
        ReporterAction::Spawns => drop(group.task("of a reporter").spawn(|| ())),
        ReporterAction::Waits => drop(group.wait_blocking()),
        ReporterAction::Adds => {
            let added = group.on_hang(|text| text.push_str("one more\n"));
            if let Some(kept) = kept.upgrade()
                && let Ok(mut kept) = kept.try_lock()
            {
                kept.push(added);
            }
        }
        ReporterAction::Removes => {
            if let Some(kept) = kept.upgrade() {
                // Dropped after the lock is released.
                let taken = kept.try_lock().ok().and_then(|mut kept| kept.pop());
                drop(taken);
            }
        }
    }
}
