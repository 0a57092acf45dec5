//! Speed of the bare rails between two processes of this machine, and of programs over them.
//!
//! Two processes on two cores, each with memory that the other may write. A ping-pong of writes with
//! notices gives the time of one way, for short and long writes; streams of writes of 8 bytes and of
//! 1 to 16 MiB with notices give their rate, and streams of reads theirs. A program of one rank in each process
//! measures supersteps with puts of several sizes, puts, short and long, and long gets. In the same rounds, the peer is the least that any of it can cost: two threads on two cores
//! that pass a flag on a cache line, and copy before that. For the rail on libfabric it is a program in C
//! on the same provider as well, where that can be compiled.

mod bare;
mod end;
mod join;
mod libfabric;
mod program;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;

use ibverbs_sim::{OfiChoice, OfiProviders};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::conditions::machine;
use crate::core_to_core;
use crate::error::Error;
use crate::measure::{REPETITIONS, Report};
use crate::print_line::print_line;
use end::{End, SIZES};
use libfabric::Libfabric;
use program::Figures;

/// Bytes of long writes, reads, puts and gets.
const LONG: [usize; 3] = [1 << 20, 4 << 20, 16 << 20];
/// Names of these sizes.
const LONG_NAMES: [&str; LONG.len()] = ["1_mib", "4_mib", "16_mib"];
/// Bytes of puts in supersteps, beside 8.
const IN_SUPERSTEPS: [usize; 2] = [2 << 10, 64 << 10];
/// Names of these sizes.
const IN_SUPERSTEPS_NAMES: [&str; IN_SUPERSTEPS.len()] = ["2_kib", "64_kib"];

/// Options of the benchmark.
#[derive(Debug)]
pub struct Options {
    /// Rails that are measured; all if empty.
    pub kinds: Vec<Kind>,
    /// Provider of libfabric.
    pub choice: OfiChoice,
    /// Runs few and short rounds.
    pub quick: bool,
}

/// A rail, and the provider of libfabric for it if it is on that.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The rail.
    pub kind: Kind,
    /// Provider of libfabric.
    pub choice: OfiChoice,
}

/// Rails that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Shared memory.
    Shm,
    /// Packets over sockets.
    Packets,
    /// A provider of libfabric.
    Ofi,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Shm, Self::Packets, Self::Ofi];

    const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Packets => "packets",
            Self::Ofi => "ofi",
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("no rail is called `{name}`"))
    }
}

/// Measures the rails.
///
/// **Errors**: a process, or what it shares, cannot be made.
pub fn run(options: &Options) -> Result<Report, Error> {
    let core = sched_getcpu();
    print_line(format_args!("links: {}; one process on core {core}, one on the others", machine()));
    let (rounds, repetitions) = if options.quick { (50, 2) } else { (2_000, REPETITIONS) };
    let long_writes = LONG.map(|size| ((rounds << 20) / (20 * size)).max(8));
    let mut links = Vec::new();
    let is_wanted = |kind: &Kind| options.kinds.is_empty() || options.kinds.contains(kind);
    let mut libfabric = None;
    for kind in Kind::ALL.into_iter().filter(is_wanted) {
        let mut choice = options.choice.clone();
        if kind == Kind::Ofi {
            let Some(provider) = provider(&choice) else { continue };
            libfabric = Libfabric::find(provider.clone(), core);
            choice.provider = Some(provider);
        }
        links.push((kind, Link::start(Wanted { kind, choice }, core)?));
    }
    let mut figures: Vec<(String, &'static str, Vec<f64>)> = Vec::new();
    let mut add = |name: String, unit, value| match figures.iter_mut().find(|it| it.0 == name) {
        Some((.., values)) => values.push(value),
        None => figures.push((name, unit, vec![value])),
    };
    // The first repetition warms up.
    for repetition in 0..=repetitions {
        let mut add = |name: String, unit, value| {
            if repetition > 0 {
                add(name, unit, value);
            }
        };
        add("links.bare_8_ns".into(), "ns", core_to_core::sample());
        for (size, name) in SIZES.into_iter().zip(["8", "64_kib", "1_mib"]) {
            let times = (rounds * 8 / size.max(8)).max(rounds / 50).max(1);
            if size > 8 {
                add(format!("links.bare_{name}_ns"), "ns", bare::one_way_ns(size, times)?);
            }
            for (kind, link) in &mut links {
                let ns = link.sample(|here| here.one_way_ns(size, times))?;
                add(format!("links.{}_{name}_ns", kind.name()), "ns", ns);
            }
        }
        for (kind, link) in &mut links {
            let write_s = link.sample(|here| here.stream_s(8, rounds * 50))?;
            add(format!("links.{}_8_rate", kind.name()), "M/s", 1e-6 / write_s);
            let long = LONG.into_iter().zip(LONG_NAMES).zip(long_writes);
            let mut rates = Vec::new();
            for ((size, name), count) in long {
                let gbs = |seconds: f64| 1e-9 * size as f64 / seconds;
                let writes = gbs(link.sample(|here| here.stream_s(size, count))?);
                let reads = gbs(link.sample(|here| here.reads_s(size, count))?);
                add(format!("links.{}_{name}_rate", kind.name()), "GB/s", writes);
                add(format!("links.{}_read_{name}_rate", kind.name()), "GB/s", reads);
                rates.push((name, writes, reads));
            }
            if let (Kind::Ofi, Some(libfabric)) = (*kind, &libfabric) {
                let bare = libfabric.run(rounds, long_writes)?;
                add("links.libfabric_message_8_ns".into(), "ns", bare.one_way_ns);
                for (nth, (name, writes, reads)) in rates.into_iter().enumerate() {
                    let (bare_writes, bare_reads) = (bare.writes_gbs[nth], bare.reads_gbs[nth]);
                    add(format!("links.libfabric_{name}_rate"), "GB/s", bare_writes);
                    add(format!("links.libfabric_read_{name}_rate"), "GB/s", bare_reads);
                    add(format!("links.ofi_{name}_vs_libfabric"), "x", writes / bare_writes);
                    add(format!("links.ofi_read_{name}_vs_libfabric"), "x", reads / bare_reads);
                }
            }
            let figures = link.program(repetition as u8 + 1, rounds)?;
            add(format!("links.{}_superstep_us", kind.name()), "us", figures.superstep_us);
            for (name, us) in IN_SUPERSTEPS_NAMES.into_iter().zip(figures.supersteps_us) {
                add(format!("links.{}_superstep_{name}_us", kind.name()), "us", us);
            }
            add(format!("links.{}_put_8_rate", kind.name()), "M/s", figures.puts_m_s);
            for (nth, name) in LONG_NAMES.into_iter().enumerate() {
                let (puts, gets) = (figures.puts_gb_s[nth], figures.gets_gb_s[nth]);
                add(format!("links.{}_put_{name}_rate", kind.name()), "GB/s", puts);
                add(format!("links.{}_get_{name}_rate", kind.name()), "GB/s", gets);
            }
        }
    }
    let mut report = Report::new("");
    for (name, unit, samples) in figures {
        report.add(&name, unit, samples);
    }
    Ok(report)
}

/// Returns the provider that the rail on libfabric is measured on, and says so; says why if there is none.
fn provider(choice: &OfiChoice) -> Option<String> {
    let found = OfiProviders::find();
    let found = found
        .inspect_err(|reason| print_line(format_args!("links: without ofi: {reason}")))
        .ok()?;
    let best = match &choice.provider {
        Some(name) => found.all.iter().find(|provider| provider.name == *name),
        None => found.best(),
    };
    let Some(best) = best else {
        print_line(format_args!("links: without ofi: libfabric has no provider that is used"));
        return None;
    };
    let (major, minor) = found.version;
    print_line(format_args!("links: ofi is {best} of libfabric {major}.{minor}"));
    Some(best.name.clone())
}

/// Runs the other end of a link, which [`run`] has started, until this one ends.
///
/// **Errors**: those of [`run`].
pub fn run_peer(run: &Path, wanted: &Wanted, other_core: usize) -> Result<(), Error> {
    if let Ok(mut cores) = sched_getaffinity(None) {
        cores.unset(other_core);
        // Without another core, both share this one.
        let _ = sched_setaffinity(None, &cores);
    }
    let mut here = End::join(run, wanted, 1)?;
    // A byte for each sample, or a program; between them this process must not disturb others.
    let mut byte = [0];
    while std::io::stdin().read_exact(&mut byte).is_ok() {
        if byte == [SERVE] {
            here.serve();
            continue;
        }
        let mut steps = [0; size_of::<u64>()];
        if std::io::stdin().read_exact(&mut steps).is_ok() {
            let folder = program_folder(run, byte[0])?;
            program::run(&folder, wanted, 1, u64::from_le_bytes(steps) as usize)?;
        }
    }
    Ok(())
}

/// Byte that asks a peer to serve a sample. Others are numbers of programs.
const SERVE: u8 = 0;

/// Returns the folder in which the processes of a program meet.
fn program_folder(run: &Path, number: u8) -> Result<PathBuf, Error> {
    let folder = run.join(number.to_string());
    let made = fs::create_dir_all(&folder);
    made.map_err(|reason| Error::System { doing: "making a folder", reason })?;
    Ok(folder)
}

/// Runs `action` on one core.
fn on_core<T>(core: usize, action: impl FnOnce() -> T) -> T {
    let all = sched_getaffinity(None);
    let mut one = CpuSet::new();
    one.set(core);
    // A thread that moves measures worse, and nothing wrong.
    let _ = sched_setaffinity(None, &one);
    let result = action();
    let _ = all.and_then(|all| sched_setaffinity(None, &all));
    result
}

/// An end of a link in this process, and the process of the other one.
struct Link {
    here: End,
    process: Child,
    /// Core of this process while it measures.
    core: usize,
    wanted: Wanted,
    folder: tempfile::TempDir,
}

impl Link {
    fn start(wanted: Wanted, core: usize) -> Result<Self, Error> {
        let refused = |reason| Error::System { doing: "starting a peer", reason };
        let folder = tempfile::tempdir().map_err(refused)?;
        let program = std::env::current_exe().map_err(refused)?;
        let process = Command::new(program)
            .args(["links-peer", wanted.kind.name(), &core.to_string()])
            .arg(folder.path())
            .args(["--provider", &wanted.choice.to_string()])
            .stdin(Stdio::piped())
            .spawn()
            .map_err(refused)?;
        let here = End::join(folder.path(), &wanted, 0)?;
        Ok(Self { here, process, core, wanted, folder })
    }

    fn ask(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let go = self.process.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(bytes));
        go.map_err(|reason| Error::System { doing: "asking a peer", reason })
    }

    /// Runs a program in both processes, with so many supersteps.
    fn program(&mut self, number: u8, steps: usize) -> Result<Figures, Error> {
        let folder = program_folder(self.folder.path(), number)?;
        self.ask(&[number])?;
        self.ask(&(steps as u64).to_le_bytes())?;
        on_core(self.core, || program::run(&folder, &self.wanted, 0, steps))
    }

    /// Measures while the peer serves.
    fn sample(&mut self, measure: impl FnOnce(&mut End) -> f64) -> Result<f64, Error> {
        self.ask(&[SERVE])?;
        let here = &mut self.here;
        Ok(on_core(self.core, || {
            let value = measure(here);
            here.stop();
            value
        }))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The peer ends with its input. If it has ended otherwise it has said why.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
