//! Hang reporters and judges that panic, spawn, wait, or add and remove reporters.

use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use clap::ValueEnum;
use talpf_runtime::{PendingEvent, Reporter, Runtime};

use super::{Bystander, Dice, End, Wrong, finish, panic};

/// What is done in the middle of a report.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    Says,
    Panics,
    Spawns,
    Waits,
    Adds,
    Removes,
}

pub(super) fn episode(dice: &mut Dice) -> Result<u64, Wrong> {
    let runtime = Runtime::new(super::runtime(dice))?;
    let mut bystander = Bystander::new(&runtime)?;
    let kept = Arc::new(Mutex::new(Vec::<Reporter>::new()));
    for _ in 0..dice.below(4) {
        let act = act(dice.pick(What::value_variants()), &runtime, &kept);
        let reporter = runtime.on_hang(move |text| {
            text.push_str("a hostile reporter\n");
            act();
        });
        kept.lock().map_err(|_| Wrong("poisoned".to_owned()))?.push(reporter);
    }
    if dice.one_in(2) {
        let judge = act(dice.pick(What::value_variants()), &runtime, &kept);
        runtime.judge_hangs(move || {
            judge();
            true
        });
    }
    bystander.go_on(&runtime, dice)?;
    let hangs = !dice.one_in(4);
    if hangs {
        runtime.task("forgets").spawn(|| forget(PendingEvent::of_current_task()))?;
    }
    bystander.go_on(&runtime, dice)?;
    // What a reporter panics with may come back to whoever asks for a dump.
    let _ = catch_unwind(AssertUnwindSafe(|| runtime.dump()));
    let may_be: &[End] = if hangs { &[End::Hangs] } else { &[End::Well] };
    finish(runtime, &bystander, may_be)?;
    Ok(1)
}

fn act(
    what: What,
    runtime: &Runtime,
    kept: &Arc<Mutex<Vec<Reporter>>>,
) -> impl Fn() + Send + Sync + 'static {
    super::show(&what);
    let (group, kept) = ((**runtime).clone(), Arc::downgrade(kept));
    move || match what {
        What::Says => {}
        What::Panics => panic(),
        What::Spawns => drop(group.task("of a reporter").spawn(|| ())),
        What::Waits => drop(group.wait_blocking()),
        What::Adds => {
            let added = group.on_hang(|text| text.push_str("one more\n"));
            if let Some(kept) = kept.upgrade()
                && let Ok(mut kept) = kept.try_lock()
            {
                kept.push(added);
            }
        }
        What::Removes => {
            if let Some(kept) = kept.upgrade() {
                // Dropped once the lock is let go.
                let taken = kept.try_lock().ok().and_then(|mut kept| kept.pop());
                drop(taken);
            }
        }
    }
}
