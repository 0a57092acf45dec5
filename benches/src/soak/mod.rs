//! Does everything hold for hours? Random programs, each checked against what running it serially
//! gives, until the time is over.
//!
//! An *episode* is one program with a seed of its own, from which all of it follows: how it is
//! run and what it computes. `EPISODES` lists the kinds; a new kind is a line there and a file
//! with a function that draws a program, runs it, and compares. A run whose first seed is that of
//! an episode begins with that episode.

mod dice;
mod graph;
mod messages;
mod puts;
mod tasks;
#[cfg(test)]
mod tests;
mod wrong;

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
    /// Only the kinds whose names begin with this.
    pub only: String,
}

/// Draws a program, runs it, and says how many tasks, puts or messages were checked.
type Episode = fn(&mut Dice) -> Result<u64, Wrong>;

/// The kinds of episode, each with its weight.
const EPISODES: [(u32, (&str, Episode)); 3] = [
    (3, ("tasks", tasks::episode)),
    (2, ("puts", puts::episode)),
    (2, ("messages", messages::episode)),
];

/// Between lines that say how far it is.
const PROGRESS: Duration = Duration::from_secs(10);
/// An episode that takes longer is named: something may have been noticed late.
const SLOW: Duration = Duration::from_secs(5);
/// No episode takes that long.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs episodes until the time is over.
///
/// **Errors**: no such kind; the first episode that went wrong, with its seed. One that hangs ends the process.
pub fn run(options: &Options) -> Result<Report, Error> {
    let named = |&(_, (name, _)): &(u32, (&str, Episode))| name.starts_with(&*options.only);
    let kinds: Vec<_> = EPISODES.into_iter().filter(named).collect();
    if kinds.is_empty() {
        let kinds = EPISODES.map(|(_, (name, _))| name).join(", ");
        return Err(Error::NoSuchEpisode { name: options.only.clone(), kinds });
    }
    say(format_args!(
        "# soak of {} s, seed {}, {}",
        options.seconds,
        options.seed,
        crate::conditions::machine()
    ));
    keep_planned_panics_quiet();
    let start = Instant::now();
    let end = Duration::from_secs(options.seconds);
    let (mut said, mut seeds) = (start, Dice::new(options.seed));
    let mut seed = options.seed;
    let mut totals = EPISODES.map(|(_, (name, _))| (name, 0u64, 0u64));
    while start.elapsed() < end {
        let dice = &mut Dice::new(seed);
        let &(name, episode) = dice.weigh(&kinds);
        let ends = watchdog(name, seed);
        let began = Instant::now();
        let checked = episode(dice).map_err(|wrong| Error::Soak { name, seed, wrong: wrong.0 })?;
        drop(ends);
        if began.elapsed() > SLOW {
            say(format_args!("# {name}, seed {seed}: took {} s", began.elapsed().as_secs()));
        }
        for (_, episodes, sum) in totals.iter_mut().filter(|(other, ..)| *other == name) {
            *episodes += 1;
            *sum += checked;
        }
        seed = seeds.roll();
        if said.elapsed() >= PROGRESS {
            said = Instant::now();
            say(format_args!("# {} s: {}", start.elapsed().as_secs(), text(&totals)));
        }
    }
    say(format_args!("# {}, all as the serial oracle says", text(&totals)));
    let mut report = Report::new("");
    for (name, episodes, checked) in totals {
        report.add(&format!("soak.{name}.episodes"), "", vec![episodes as f64]);
        report.add(&format!("soak.{name}.checked"), "", vec![checked as f64]);
    }
    Ok(report)
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
    let (ends, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("error: {name}, seed {seed}: not ended after {} s", PATIENCE.as_secs());
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
