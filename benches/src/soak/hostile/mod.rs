//! Programs that misuse the safe interfaces, one kind of misuse per file.
//!
//! A program defines its permitted outcomes. Beside it runs an independent [`Bystander`], which
//! must complete whatever the program does. Nothing may abort or stall silently: a program ends
//! within [`PATIENCE`]. Kinds of misuse are enums with `ValueEnum`, which lists the variants to
//! draw from.

mod bystander;
mod callbacks;
mod elements;
mod exchanges;
mod forgotten;
mod operators;
mod outcome;
mod reentrance;
mod registrations;
mod replays;
mod reporters;
mod requests;
mod rounds;
mod runtimes;
mod shutdowns;
mod strangers;
mod wakers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use talpf_runtime::Config;

use self::bystander::Bystander;
use self::outcome::{Outcome, expect, finish, outcome_of};
use super::Episode;
use super::episode_error::{EpisodeError, PLANNED};
use super::rng::Rng;

/// Hostile programs by name.
pub(super) const PROGRAMS: [(&str, Episode); 15] = [
    ("hostile-forgotten", forgotten::episode),
    ("hostile-callbacks", callbacks::episode),
    ("hostile-operators", operators::episode),
    ("hostile-elements", elements::episode),
    ("hostile-wakers", wakers::episode),
    ("hostile-reporters", reporters::episode),
    ("hostile-reentrance", reentrance::episode),
    ("hostile-replays", replays::episode),
    ("hostile-runtimes", runtimes::episode),
    ("hostile-shutdowns", shutdowns::episode),
    ("hostile-strangers", strangers::episode),
    ("hostile-registrations", registrations::episode),
    ("hostile-rounds", rounds::episode),
    ("hostile-exchanges", exchanges::episode),
    ("hostile-requests", requests::episode),
];

/// Time limit of a program, sufficient even under valgrind.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Draws a configuration of a runtime that reports a hang soon.
fn runtime(rng: &mut Rng) -> Config {
    Config { hang_after: Duration::from_millis(200), ..super::runtime(rng) }
}

/// Prints the drawn program, as context of a failure.
fn show(program: &impl std::fmt::Debug) {
    eprintln!("{program:?}");
}

/// Panics as planned.
fn panic() -> ! {
    std::panic::panic_any(PLANNED)
}

/// Drops a value whose drop may panic.
fn drop_quietly<T>(value: T) {
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
    std::mem::forget(dropped);
}

/// Value that panics when it drops, unless its thread panics already.
struct PanicsAsItDrops;

impl Drop for PanicsAsItDrops {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic();
        }
    }
}
