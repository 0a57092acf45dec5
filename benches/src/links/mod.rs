//! Speed of the bare rails between two processes of this machine, and of programs over them.
//!
//! Two processes on two cores, each with memory that the other may write. A ping-pong of writes with
//! notices gives the time of one way, for short and long writes; streams of writes of 8 bytes and of
//! 1 to 16 MiB with notices give their rate, and streams of reads theirs. A program of one rank in each process
//! measures supersteps with puts of several sizes, puts, short and long, and long gets; the application Jacobi
//! measures its steps.
//!
//! In the same rounds, the peer is the least that any of it can cost: two threads on two cores that pass a flag on a
//! cache line, and copy before that; of the programs, the same with both ranks in one process. For the rail on
//! libfabric it is a program in C on the same provider as well, where that can be compiled.
//!
//! Beside shared memory, eight processes on two cores are measured: their start, until they have met, and their
//! supersteps.

mod bare;
mod cores;
mod end;
mod jacobi;
mod join;
mod kind;
mod libfabric;
mod link;
mod many_processes;
mod program;
mod samples;

use ibverbs_sim::{OfiChoice, OfiProviders};
use rustix::thread::sched_getcpu;
use talpf_traces::counted;

use crate::conditions::machine;
use crate::core_to_core;
use crate::error::Error;
use crate::measure::{REPETITIONS, Report};
use crate::print_line::print_line;
use end::SIZES;
use libfabric::Libfabric;
use link::Link;
use samples::Samples;

pub use kind::{Kind, Wanted};
pub use link::run_peer;
pub use many_processes::run_member;

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

/// Measures the rails.
///
/// **Errors**: a process, or what it shares, cannot be made.
pub fn run(options: &Options) -> Result<Report, Error> {
    let core = sched_getcpu();
    print_line(format_args!("links: {}; one process on core {core}, one on the others", machine()));
    let (rounds, repetitions) = if options.quick { (50, 2) } else { (2_000, REPETITIONS) };
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
    let two_cores = cores::two(core);
    if is_wanted(&Kind::Shm) {
        let (processes, cores) = (many_processes::PROCESSES, two_cores.count());
        print_line(format_args!("links: {processes} processes on {}", counted(cores, "core")));
    }
    let mut samples = Samples::default();
    for repetition in 0..=repetitions {
        measure_short(&mut links, rounds, &mut samples)?;
        for (kind, link) in &mut links {
            let libfabric = libfabric.as_ref().filter(|_| *kind == Kind::Ofi);
            measure_streams(link, libfabric, rounds, &mut samples)?;
            link.operations(rounds)?.for_each(|name, unit, value| {
                samples.add(format!("{}_{name}", kind.name()), unit, value);
            });
        }
        program::run_in_one_process(rounds)?.for_each(|name, unit, value| {
            samples.add(format!("threads_{name}"), unit, value);
        });
        for size in jacobi::Size::all(rounds) {
            measure_jacobi(&mut links, size, &mut samples)?;
        }
        if is_wanted(&Kind::Shm) {
            let figures = cores::on(&two_cores, || many_processes::run(rounds))?;
            let processes = many_processes::PROCESSES;
            samples.add(format!("start_{processes}_processes_ms"), "ms", figures.start_ms);
            let name = format!("shm_superstep_{processes}_processes_us");
            samples.add(name, "us", figures.superstep_us);
        }
        if repetition == 0 {
            // It was to warm up.
            samples = Samples::default();
        }
    }
    Ok(samples.report())
}

/// Measures ping-pongs.
fn measure_short(
    links: &mut [(Kind, Link)],
    rounds: usize,
    samples: &mut Samples,
) -> Result<(), Error> {
    samples.add("bare_8_ns".into(), "ns", core_to_core::sample());
    for (size, name) in SIZES.into_iter().zip(["8", "64_kib", "1_mib"]) {
        let times = (rounds * 8 / size.max(8)).max(rounds / 50).max(1);
        if size > 8 {
            samples.add(format!("bare_{name}_ns"), "ns", bare::one_way_ns(size, times)?);
        }
        for (kind, link) in &mut *links {
            let ns = link.sample(|here| here.one_way_ns(size, times))?;
            samples.add(format!("{}_{name}_ns", kind.name()), "ns", ns);
        }
    }
    Ok(())
}

/// Measures writes and reads, one behind the other, also with the bare library if there is one.
fn measure_streams(
    link: &mut Link,
    libfabric: Option<&Libfabric>,
    rounds: usize,
    samples: &mut Samples,
) -> Result<(), Error> {
    let rail = link.name();
    let write_s = link.sample(|here| here.stream_s(8, rounds * 50))?;
    samples.add(format!("{rail}_8_rate"), "M/s", 1e-6 / write_s);
    let counts = LONG.map(|size| ((rounds << 20) / (20 * size)).max(8));
    let mut rates = Vec::new();
    for ((size, name), count) in LONG.into_iter().zip(LONG_NAMES).zip(counts) {
        let gbs = |seconds: f64| 1e-9 * size as f64 / seconds;
        let writes = gbs(link.sample(|here| here.stream_s(size, count))?);
        let reads = gbs(link.sample(|here| here.reads_s(size, count))?);
        samples.add(format!("{rail}_{name}_rate"), "GB/s", writes);
        samples.add(format!("{rail}_read_{name}_rate"), "GB/s", reads);
        rates.push((name, writes, reads));
    }
    let Some(libfabric) = libfabric else { return Ok(()) };
    let bare = libfabric.run(rounds, counts)?;
    samples.add("libfabric_message_8_ns".into(), "ns", bare.one_way_ns);
    for (nth, (name, writes, reads)) in rates.into_iter().enumerate() {
        let (bare_writes, bare_reads) = (bare.writes_gbs[nth], bare.reads_gbs[nth]);
        samples.add(format!("libfabric_{name}_rate"), "GB/s", bare_writes);
        samples.add(format!("libfabric_read_{name}_rate"), "GB/s", bare_reads);
        samples.add(format!("{rail}_{name}_vs_libfabric"), "x", writes / bare_writes);
        samples.add(format!("{rail}_read_{name}_vs_libfabric"), "x", reads / bare_reads);
    }
    Ok(())
}

/// Measures steps of Jacobi over all rails, and in one process: there workers compute for both ranks, which processes
/// cannot, or each for one, as `threads_apart`.
fn measure_jacobi(
    links: &mut [(Kind, Link)],
    size: jacobi::Size,
    samples: &mut Samples,
) -> Result<(), Error> {
    let side = size.side;
    let threads = jacobi::run_in_one_process(size, None)?;
    samples.add(format!("threads_jacobi_{side}_us"), "us", threads.step_us);
    let apart = jacobi::run_in_one_process(size, Some(1))?;
    samples.add(format!("threads_apart_jacobi_{side}_us"), "us", apart.step_us);
    for (kind, link) in links {
        let name = kind.name();
        let outcome = link.jacobi(size)?;
        threads.check(&outcome, name)?;
        samples.add(format!("{name}_jacobi_{side}_us"), "us", outcome.step_us);
        for (peer, other) in [("threads", &threads), ("threads_apart", &apart)] {
            let ratio = outcome.step_us / other.step_us;
            samples.add(format!("{name}_jacobi_{side}_vs_{peer}"), "x", ratio);
        }
    }
    Ok(())
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
