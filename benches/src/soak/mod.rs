//! Does everything hold for hours? Random programs, each checked against what running it serially
//! gives, until the time is over.
//!
//! An *episode* is one program with a seed of its own, from which all of it follows: how it is
//! run and what it computes. `EPISODES` lists the kinds; a new kind is a line there and a file
//! with a function that draws a program, runs it, and compares. A run whose first seed is that of
//! an episode begins with that episode.
//!
//! Hostile programs misuse everything that safe code can reach. There is no serial run of them:
//! they end well, with an error that was to be expected, or with a hang report. Each runs in a
//! process of its own, so that one that aborts is named with its seed, and what it leaves behind
//! does not add up.

mod dice;
mod graph;
mod hostile;
mod messages;
mod puts;
mod tasks;
#[cfg(test)]
mod tests;
mod wrong;

use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use talpf_runtime::{Config, IdlePolicy};

use self::dice::Dice;
use self::wrong::{PLANNED, Wrong};
use crate::error::Error;
use crate::measure::Report;
use crate::say::say;

/// How long to go on, and with what.
#[derive(Clone, Debug)]
pub struct Options {
    /// For how long episodes are begun.
    pub seconds: u64,
    /// The seed of the first episode.
    pub seed: u64,
    /// Only the kinds whose names begin with one of these; all if there are none.
    pub only: Vec<String>,
    /// Whether to run the first episode only, in this process.
    pub once: bool,
}

/// Draws a program, runs it, and says how many tasks, puts or messages were checked.
type Episode = fn(&mut Dice) -> Result<u64, Wrong>;

/// Random programs, each with its weight.
const RANDOM: [(u32, &str, Episode); 3] = [
    (3 * EACH, "tasks", tasks::episode),
    (2 * EACH, "puts", puts::episode),
    (2 * EACH, "messages", messages::episode),
];
/// The weight of a random program against that of one hostile one.
const EACH: u32 = 5;

/// Between lines that say how far it is.
const PROGRESS: Duration = Duration::from_secs(10);
/// An episode that takes longer is named: something may have been noticed late.
const SLOW: Duration = Duration::from_secs(5);
/// No episode takes that long.
const PATIENCE: Duration = Duration::from_secs(300);

/// A kind of episode.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: &'static str,
    episode: Episode,
    is_hostile: bool,
}

impl Kind {
    fn all() -> Vec<(u32, Kind)> {
        let random = RANDOM
            .map(|(weight, name, episode)| (weight, Kind { name, episode, is_hostile: false }));
        let hostile =
            hostile::PROGRAMS.map(|(name, episode)| (1, Kind { name, episode, is_hostile: true }));
        random.into_iter().chain(hostile).collect()
    }

    /// The line of the totals that it counts in.
    fn total(&self) -> &'static str {
        if self.is_hostile { "hostile" } else { self.name }
    }

    /// Runs the episode of a seed, whose dice have chosen this kind.
    fn run(&self, seed: u64, dice: &mut Dice, once: bool) -> Result<u64, Wrong> {
        if self.is_hostile && !once {
            return apart(self.name, seed);
        }
        let ends = watchdog(self.name, seed);
        let checked = (self.episode)(dice);
        drop(ends);
        checked
    }
}

/// Runs episodes until the time is over.
///
/// **Errors**: no such kind; the first episode that went wrong, with its seed. One that hangs ends
/// the process.
pub fn run(options: &Options) -> Result<Report, Error> {
    let kinds = chosen(&options.only)?;
    if !options.once {
        say(format_args!(
            "# soak of {} s, seed {}, {}",
            options.seconds,
            options.seed,
            crate::conditions::machine()
        ));
    }
    keep_planned_panics_quiet();
    let start = Instant::now();
    let end = Duration::from_secs(options.seconds);
    let (mut said, mut seeds) = (start, Dice::new(options.seed));
    let mut seed = options.seed;
    let mut totals = [("tasks", 0u64, 0u64), ("puts", 0, 0), ("messages", 0, 0), ("hostile", 0, 0)];
    while start.elapsed() < end {
        let dice = &mut Dice::new(seed);
        let kind = dice.weigh(&kinds);
        let began = Instant::now();
        let checked = kind.run(seed, dice, options.once);
        let name = kind.name;
        let checked = checked.map_err(|wrong| Error::Soak { name, seed, wrong: wrong.0 })?;
        if began.elapsed() > SLOW {
            say(format_args!("# {name}, seed {seed}: took {} s", began.elapsed().as_secs()));
        }
        for (_, episodes, sum) in totals.iter_mut().filter(|(other, ..)| *other == kind.total()) {
            *episodes += 1;
            *sum += checked;
        }
        if options.once {
            return Ok(Report::new(""));
        }
        seed = seeds.roll();
        if said.elapsed() >= PROGRESS {
            said = Instant::now();
            say(format_args!("# {} s: {}", start.elapsed().as_secs(), text(&totals)));
        }
    }
    say(format_args!("# {}, all as they should be", text(&totals)));
    let mut report = Report::new("");
    for (name, episodes, checked) in totals {
        report.add(&format!("soak.{name}.episodes"), "", vec![episodes as f64]);
        report.add(&format!("soak.{name}.checked"), "", vec![checked as f64]);
    }
    Ok(report)
}

/// The kinds whose names begin with one of `only`.
fn chosen(only: &[String]) -> Result<Vec<(u32, Kind)>, Error> {
    let all = Kind::all();
    let begins = |name: &str, kind: &Kind| kind.name.starts_with(name);
    let unknown = only.iter().find(|name| !all.iter().any(|(_, kind)| begins(name, kind)));
    if let Some(name) = unknown {
        let kinds = all.iter().map(|(_, kind)| kind.name).collect::<Vec<_>>().join(", ");
        return Err(Error::NoSuchEpisode { name: name.clone(), kinds });
    }
    let named = |kind: &Kind| only.is_empty() || only.iter().any(|name| begins(name, kind));
    Ok(all.into_iter().filter(|(_, kind)| named(kind)).collect())
}

/// Runs a hostile program in a process of its own.
fn apart(name: &'static str, seed: u64) -> Result<u64, Wrong> {
    let program = std::env::current_exe().map_err(|error| Wrong(error.to_string()))?;
    let seed = seed.to_string();
    let arguments = ["soak", "--once", "--only", name, "--seed", &seed];
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| Wrong(error.to_string()))?;
    if output.status.success() {
        return Ok(1);
    }
    Err(Wrong(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr))))
}

fn text(totals: &[(&str, u64, u64)]) -> String {
    let each = |(name, episodes, sum): &(&str, u64, u64)| format!("{episodes} x {name} ({sum})");
    totals.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// A runtime as programs may meet it.
fn runtime(dice: &mut Dice) -> Config {
    let idle = [
        (3, IdlePolicy::default()),
        (2, IdlePolicy::Park),
        (1, IdlePolicy::Adaptive { spin: Duration::from_millis(1) }),
    ];
    Config {
        workers: 1 + dice.below(4),
        idle: *dice.weigh(&idle),
        throttle: dice.pick(&[1, 4, 256, usize::MAX]),
        // On a machine that others keep busy, a thread may be away for long.
        hang_after: PATIENCE / 3,
        ..Config::default()
    }
}

/// Ends the process if an episode hangs where the hang watch of the runtime does not see it.
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
