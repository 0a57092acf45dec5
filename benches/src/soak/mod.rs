//! Soak test: random programs until the time is over, each compared with its serial run.
//!
//! An *episode* is one program with a seed of its own, which determines its configuration and its
//! computation. `EPISODES` lists the kinds; a new kind is an entry there and a file with a function
//! that draws a program, runs it, and compares. A run whose first seed is that of an episode begins
//! with that episode.
//!
//! Programs that put and get run within one process, and in several that shared memory joins, or libfabric where that
//! is installed. Each is a kind of its own.
//!
//! Hostile programs misuse the safe interfaces. They have no serial run: each ends well, with an
//! expected error, or with a hang report. Each runs in a process of its own, so that a program that
//! aborts is reported with its seed, and leaked resources do not add up.

mod episode_error;
mod graph;
mod hostile;
mod messages;
mod puts;
mod rails;
mod rng;
mod tasks;
#[cfg(test)]
mod tests;

use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use talpf_runtime::{Config, IdlePolicy};

use self::episode_error::{EpisodeError, PLANNED};
use self::rng::Rng;
use crate::error::Error;
use crate::measure::Report;
use crate::print_line::print_line;

/// Duration, seed and selection of a soak.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seconds after which no episode begins.
    pub seconds: u64,
    /// Seed of the first episode.
    pub seed: u64,
    /// Beginnings of names of kinds; empty for all kinds.
    pub only: Vec<String>,
    /// `true` to run only the first episode, in this process.
    pub once: bool,
}

/// Function that draws a program, runs it, and returns the number of checked tasks, puts or
/// messages.
type Episode = fn(&mut Rng) -> Result<u64, EpisodeError>;

/// Random programs with their weights.
const RANDOM: [(u32, &str, Episode); 5] = [
    (3 * EACH, "tasks", tasks::episode),
    (EACH, "puts-in-process", puts::episode_in_process),
    (EACH, "puts-shm", puts::episode_over_shm),
    (EACH, OVER_LIBFABRIC, puts::episode_over_ofi),
    (2 * EACH, "messages", messages::episode),
];
/// Name of programs that need libfabric.
const OVER_LIBFABRIC: &str = "puts-ofi";
/// Weight of a random program relative to one hostile program.
const EACH: u32 = 5;

/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(10);
/// Duration from which an episode is reported as slow: an event may have been noticed late.
const SLOW: Duration = Duration::from_secs(5);
/// Time limit of an episode.
const PATIENCE: Duration = Duration::from_secs(300);

/// EpisodeKind of episode.
#[derive(Clone, Copy, Debug)]
struct EpisodeKind {
    name: &'static str,
    episode: Episode,
    is_hostile: bool,
}

impl EpisodeKind {
    fn all() -> Vec<(u32, EpisodeKind)> {
        let random = RANDOM.map(|(weight, name, episode)| {
            (weight, EpisodeKind { name, episode, is_hostile: false })
        });
        let hostile = hostile::PROGRAMS
            .map(|(name, episode)| (1, EpisodeKind { name, episode, is_hostile: true }));
        random.into_iter().chain(hostile).collect()
    }

    /// Returns the name of the total that the kind counts in.
    fn total(&self) -> &'static str {
        if self.is_hostile { "hostile" } else { self.name }
    }

    /// Runs the episode of a seed whose random numbers have chosen this kind.
    fn run(&self, seed: u64, rng: &mut Rng, once: bool) -> Result<u64, EpisodeError> {
        if self.is_hostile && !once {
            return apart(self.name, seed);
        }
        let ends = watchdog(self.name, seed);
        let checked = (self.episode)(rng);
        drop(ends);
        checked
    }
}

/// Runs episodes until the time is over.
///
/// **Errors**: no such kind, or a kind that needs libfabric where that is not installed; the first episode that
/// failed, with its seed. An episode that hangs ends the process.
pub fn run(options: &Options) -> Result<Report, Error> {
    let mut kinds = chosen(&options.only)?;
    leave_out_libfabric(&mut kinds)?;
    if !options.once {
        print_line(format_args!(
            "# soak of {} s, seed {}, {}",
            options.seconds,
            options.seed,
            crate::conditions::machine()
        ));
    }
    keep_planned_panics_quiet();
    let start = Instant::now();
    let end = Duration::from_secs(options.seconds);
    let (mut said, mut seeds) = (start, Rng::new(options.seed));
    let mut seed = options.seed;
    let names = RANDOM.iter().map(|(_, name, _)| *name).chain(["hostile"]);
    let mut totals = Vec::from_iter(names.map(|name| (name, 0u64, 0u64)));
    while start.elapsed() < end {
        let rng = &mut Rng::new(seed);
        let kind = rng.pick_weighted(&kinds);
        let began = Instant::now();
        let checked = kind.run(seed, rng, options.once);
        let name = kind.name;
        let checked = checked.map_err(|error| Error::Soak { name, seed, reason: error.0 })?;
        if began.elapsed() > SLOW {
            print_line(format_args!("# {name}, seed {seed}: took {} s", began.elapsed().as_secs()));
        }
        for (_, episodes, sum) in totals.iter_mut().filter(|(other, ..)| *other == kind.total()) {
            *episodes += 1;
            *sum += checked;
        }
        if options.once {
            return Ok(Report::new(""));
        }
        seed = seeds.next();
        if said.elapsed() >= PROGRESS {
            said = Instant::now();
            print_line(format_args!("# {} s: {}", start.elapsed().as_secs(), text(&totals)));
        }
    }
    print_line(format_args!("# {}, all passed", text(&totals)));
    let mut report = Report::new("");
    for (name, episodes, checked) in totals {
        let name = name.replace('-', "_");
        report.add(&format!("soak.{name}.episodes"), "", vec![episodes as f64]);
        report.add(&format!("soak.{name}.checked"), "", vec![checked as f64]);
    }
    Ok(report)
}

/// Returns the kinds whose names begin with one of `only`.
fn chosen(only: &[String]) -> Result<Vec<(u32, EpisodeKind)>, Error> {
    let all = EpisodeKind::all();
    let begins = |name: &str, kind: &EpisodeKind| kind.name.starts_with(name);
    let unknown = only.iter().find(|name| !all.iter().any(|(_, kind)| begins(name, kind)));
    if let Some(name) = unknown {
        let kinds = all.iter().map(|(_, kind)| kind.name).collect::<Vec<_>>().join(", ");
        return Err(Error::NoSuchEpisode { name: name.clone(), kinds });
    }
    let named = |kind: &EpisodeKind| only.is_empty() || only.iter().any(|name| begins(name, kind));
    Ok(all.into_iter().filter(|(_, kind)| named(kind)).collect())
}

/// Leaves out programs that need libfabric if that is not installed, and says so.
///
/// **Errors**: no other programs were chosen.
fn leave_out_libfabric(kinds: &mut Vec<(u32, EpisodeKind)>) -> Result<(), Error> {
    if !kinds.iter().any(|(_, kind)| kind.name == OVER_LIBFABRIC) {
        return Ok(());
    }
    let Err(reason) = rails::find_libfabric() else { return Ok(()) };
    kinds.retain(|(_, kind)| kind.name != OVER_LIBFABRIC);
    if kinds.is_empty() {
        return Err(Error::System { doing: "finding libfabric", reason });
    }
    print_line(format_args!("# without {OVER_LIBFABRIC}: {reason}"));
    Ok(())
}

/// Runs a hostile program in a process of its own.
fn apart(name: &'static str, seed: u64) -> Result<u64, EpisodeError> {
    let program = std::env::current_exe().map_err(|error| EpisodeError(error.to_string()))?;
    let seed = seed.to_string();
    let arguments = ["soak", "--once", "--only", name, "--seed", &seed];
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| EpisodeError(error.to_string()))?;
    if output.status.success() {
        return Ok(1);
    }
    Err(EpisodeError(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr))))
}

fn text(totals: &[(&str, u64, u64)]) -> String {
    let each = |(name, episodes, sum): &(&str, u64, u64)| format!("{episodes} x {name} ({sum})");
    totals.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// Draws a configuration of the runtime.
fn runtime(rng: &mut Rng) -> Config {
    let idle = [
        (3, IdlePolicy::default()),
        (2, IdlePolicy::Park),
        (1, IdlePolicy::Adaptive { spin: Duration::from_millis(1) }),
    ];
    Config {
        workers: 1 + rng.below(4),
        idle: *rng.pick_weighted(&idle),
        throttle: rng.pick(&[1, 4, 256, usize::MAX]),
        // On a busy machine a thread may lose its core for a long time.
        hang_after: PATIENCE / 3,
        ..Config::default()
    }
}

/// Ends the process if an episode hangs and the runtime's hang watch does not notice.
fn watchdog(name: &'static str, seed: u64) -> mpsc::Sender<()> {
    let patience = if name.starts_with("hostile") { hostile::PATIENCE } else { PATIENCE };
    let (ends, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            eprintln!("error: {name}, seed {seed}: not ended after {} s", patience.as_secs());
            std::process::exit(1);
        }
    });
    ends
}

fn keep_planned_panics_quiet() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&PLANNED) {
            print(info);
        }
    }));
}
