//! Instructions of a superstep: which parts of the library they are in.
//!
//! Two ranks on one worker put 8 bytes to each other, each put into a window of the other rank, and end
//! the round with a cached sync. Counted are supersteps without a put, with one and with a thousand. A function
//! counts for the module that it is of, with what the compiler has inlined into it; of generic functions of the standard
//! library the module that they are made for counts, if their name has it.

use std::collections::BTreeMap;
use std::time::Duration;

use talpf::{Config, Context, Rank, SyncMode, exec};
use talpf_runtime::{Array, IdlePolicy};

use crate::callgrind::{Counts, marker};
use crate::error::Error;
use crate::measure::Report;
use crate::print_line::print_line;

/// Puts of a superstep.
const PUTS: [usize; 3] = [0, 1, 1_000];
const RANKS: u32 = 2;
/// Supersteps that warm up pools and caches, and that are counted.
const STEPS: [usize; 2] = [100, 100];

/// Part of the library, with the path that names of its functions have. The first path in a name counts.
struct Part {
    name: &'static str,
    path: &'static str,
    /// Work of its functions.
    work: &'static str,
}

const fn part(name: &'static str, path: &'static str, work: &'static str) -> Part {
    Part { name, path, work }
}

const PARTS: [Part; 8] = [
    part(
        "tasks",
        "talpf_runtime::",
        "the task of the sync, its access of the window, and the wake of the program",
    ),
    part("primitives", "talpf_primitives::", "locks that are not inlined"),
    part("verbs", "ibverbs_sim::", "requests, their completions, and receives"),
    part("operations", "talpf::operation::", "puts, batches of them, and those to be retried"),
    part("windows", "talpf::window::", "windows, and puts that are parked until one opens"),
    part("syncs", "talpf::sync::", "syncs, arrivals, and the passes that find them"),
    part("program", "talpf_benches::", "the program itself"),
    part("rest", "talpf::", "rounds, peers, and the rest of talpf"),
];
/// Part of the functions that have none of the paths.
const HEAP: Part = part("heap", "", "the heap, copies, and the standard library");

/// Counts instructions per superstep and rank.
///
/// **Errors**: valgrind not installed; those of the program.
pub fn run() -> Result<Report, Error> {
    print_line(format_args!(
        "# superstep: instructions per superstep and rank, counted by callgrind; {RANKS} ranks on 1 worker, cached \
         syncs, each with a window"
    ));
    for Part { name, work, .. } in PARTS.iter().chain([&HEAP]) {
        print_line(format_args!("# {name}: {work}"));
    }
    let mut report = Report::new("");
    let counts = Counts::of(&["superstep-counted"])?;
    for (count, puts) in PUTS.into_iter().enumerate() {
        let name = |what: &str| format!("superstep.{puts}_puts.{what}");
        report.add(&name("all"), "", vec![counts.total(count)?]);
        for (part, cost) in parts(counts.functions(count)?) {
            report.add(&name(part), "", vec![cost]);
        }
    }
    Ok(report)
}

/// Adds up the costs of the functions of each part.
fn parts(functions: impl IntoIterator<Item = (String, f64)>) -> BTreeMap<&'static str, f64> {
    let mut parts = BTreeMap::new();
    for (name, cost) in functions {
        *parts.entry(part_of(&name)).or_default() += cost;
    }
    parts
}

fn part_of(function: &str) -> &'static str {
    let places = PARTS.iter().filter_map(|part| Some((function.find(part.path)?, part.name)));
    places.min_by_key(|(place, _)| *place).map_or(HEAP.name, |(_, name)| name)
}

/// Runs the supersteps inside the counted process, and prints the number of them, for both ranks.
///
/// **Errors**: those of the program.
pub fn measure_counted() -> Result<(), Error> {
    for puts in PUTS {
        let mut config = Config { ranks: RANKS, check_conflicts: false, ..Config::default() };
        config.runtime.workers = 1;
        config.runtime.idle = IdlePolicy::Park;
        config.runtime.hang_after = Duration::ZERO;
        exec(config, |ctx| supersteps(ctx, puts))?;
        print_line(format_args!("{puts}_puts {}", STEPS[1] * RANKS as usize));
    }
    Ok(())
}

async fn supersteps(ctx: Context, puts: usize) -> Result<(), talpf::Error> {
    let next = Rank((ctx.rank().0 + 1) % RANKS);
    let inbox = Array::new(ctx.group(), vec![0u64; PUTS[2]], PUTS[2])?;
    let slot = ctx.register_global(&inbox).await?;
    let counts = ctx.rank() == Rank(0);
    for (pass, steps) in STEPS.into_iter().enumerate() {
        if counts && pass == 1 {
            marker::begin();
        }
        for _ in 0..steps {
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::CACHED).window(&inbox.all()).spawn()?;
            for number in 0..puts {
                round.put_copy(&[7], slot.at(next, number)).await?;
            }
            drop(round);
            sync.await?;
        }
    }
    if counts {
        marker::end();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_of_the_first_path_in_its_name() {
        for (function, part) in [
            ("<talpf::sync::handle::SyncHandle as core::future::Future>::poll", "syncs"),
            ("talpf::operation::batch::Chain<talpf::window::Claim>::post", "operations"),
            ("core::ptr::drop_in_place<talpf::round::RoundOf>", "rest"),
            ("malloc", "heap"),
        ] {
            assert_eq!(part_of(function), part, "{function}");
        }
    }
}
