//! Programs that misuse all that safe code can reach, one kind of misuse a file.
//!
//! A program knows which ends it may have. Beside it runs a [`Bystander`], which has nothing to do
//! with it and comes to its end whatever the program does. Nothing may abort, and nothing may be
//! silent: a program ends within [`PATIENCE`]. Kinds of misuse are enums with `ValueEnum`, which lists
//! their variants to draw from.

mod bystander;
mod callbacks;
mod elements;
mod ends;
mod exchanges;
mod forgotten;
mod operators;
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
use self::ends::{End, end_of, expect, finish};
use super::Episode;
use super::dice::Dice;
use super::wrong::{PLANNED, Wrong};

/// The programs by name.
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

/// No program takes that long, even under valgrind.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A runtime that soon says that it hangs.
fn runtime(dice: &mut Dice) -> Config {
    Config { hang_after: Duration::from_millis(200), ..super::runtime(dice) }
}

/// Notes what a program is, for whoever sees it fail.
fn show(program: &impl std::fmt::Debug) {
    eprintln!("{program:?}");
}

/// A planned panic.
fn panic() -> ! {
    std::panic::panic_any(PLANNED)
}

/// Drops what may panic as it drops.
fn drop_quietly<T>(value: T) {
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
    std::mem::forget(dropped);
}

/// Panics as it drops, unless its thread panics already.
struct PanicsAsItDrops;

impl Drop for PanicsAsItDrops {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic();
        }
    }
}
