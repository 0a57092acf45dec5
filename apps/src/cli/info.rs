//! `talpf info`: properties of the machine that affect a run.

use std::hint::black_box;

use clap::Args;
use ibverbs_sim::{OfiProviders, OfiRail};
use talpf_apps::caches::Caches;
use talpf_apps::jacobi::{self, kernel};
use talpf_apps::{Error, gauss_seidel, matmul, memory, nbody};
use talpf_runtime::cores;
use talpf_runtime::service;
use talpf_traces::counted;
use tampi_shim::{Costs, Protocols};

use super::measure::{costs, median};
use super::run_options::RuntimeOptions;

const MIB: usize = 1 << 20;

#[derive(Args, Debug)]
pub(super) struct Options {
    #[command(flatten)]
    runtime: RuntimeOptions,
}

/// Measures for about a second and prints one line per value.
pub(super) fn run(options: Options) -> Result<(), Error> {
    let settings = options.runtime.settings()?;
    let (runtime, polling) = (settings.runtime()?, settings.polling()?);
    // First, since later measurements would disturb it.
    let (messages, message_costs) = (Protocols::measured()?, Costs::measured());
    let conflicts = if settings.check_conflicts()? { "checked" } else { "not checked" };
    let costs = costs(settings)?;
    let memory = memory::available()
        .map_or_else(|| "unknown".to_owned(), |bytes| format!("{} MiB available", bytes >> 20));
    let put = costs.put_ns.map_or_else(
        || "needs two cores".to_owned(),
        |ns| format!("{ns:.0} ns until another core sees 8 bytes"),
    );
    let copy = |bytes, copies| format!("{:.1} GB/s", copy_rate(bytes, copies) / 1e9);
    let lines = [
        ("cores", cores().to_string()),
        ("caches", Caches::of_this_machine().to_string()),
        ("memory", memory),
        ("vectors", format!("{} x f64 in the kernel of jacobi", kernel::lanes())),
        ("clock", format!("{:.0} ns per reading", costs.clock_ns)),
        ("timer", format!("{:.1} us for a wait of 1 us", costs.timer_ns / 1e3)),
        ("workers", runtime.workers.to_string()),
        ("idle", runtime.idle.to_string()),
        ("throttle", throttle(runtime.throttle)),
        ("polling", polling.to_string()),
        ("patience", patience()),
        ("conflicts", conflicts.to_owned()),
        ("blocks", blocks()),
        ("memcpy 1 MiB", copy(MIB, 200)),
        ("memcpy 128 MiB", copy(128 * MIB, 1)),
        ("put", put),
        ("libfabric", libfabric()),
        ("l", format!("{:.2} us per superstep (2 ranks, 8 bytes each way)", costs.bsp.l_ns / 1e3)),
        ("g", cost_of_bytes(costs.bsp.g_ns)),
        ("messages", messages.to_string()),
        ("their costs", message_costs.to_string()),
    ];
    let text: String = lines.iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect();
    super::print(&text)
}

/// Lists the providers of libfabric, and why one is not used.
fn libfabric() -> String {
    match OfiProviders::find() {
        Ok(found) => {
            let (major, minor) = found.version;
            let all: Vec<_> = found.all.iter().map(ToString::to_string).collect();
            let (message, long) = (OfiRail::MESSAGE_BYTES >> 10, OfiRail::LONG_BYTES >> 10);
            format!(
                "{major}.{minor}: {}; messages of up to {message} KiB, puts and gets of {long} KiB or more by RMA",
                all.join("; ")
            )
        }
        Err(error) => format!("not for --transport ofi: {error}"),
    }
}

/// Returns the blocks of applications at their usual sizes.
fn blocks() -> String {
    format!(
        "jacobi {} at 256, {} at 1024 (one strip of blocks a core, if its part of both matrices is at \
         most three quarters of its second level of the cache; up to twice that level, an eighth of \
         it; otherwise 64 KiB, or one row), gauss-seidel {} (128 to 1024 rows, four blocks one above \
         the other a core; in a small matrix two, of at least 16 rows), nbody {} (four a core, of 64 \
         to 512), matmul {} (two a core, of 64 to 256)",
        jacobi::block(256),
        jacobi::block(1024),
        gauss_seidel::block(1024),
        nbody::block(4096),
        matmul::block(1024),
    )
}

/// Formats the cost of bytes, if it is more than the load of the machine hides.
fn cost_of_bytes(ns: f64) -> String {
    if ns > 0.0 {
        format!("{ns:.4} ns per further byte each way")
    } else {
        "hidden by other load on this machine".to_owned()
    }
}

/// Returns how long an adaptive polling task polls without success before it pauses.
fn patience() -> String {
    let [one, wire, oversubscribed] =
        [service::PATIENCE, service::PATIENCE_BEFORE_NAPS, service::PATIENCE_OVERSUBSCRIBED];
    format!(
        "{one:?} in one process, {wire:?} between processes, {oversubscribed:?} if these have more \
         workers than the machine has cores"
    )
}

fn throttle(tasks: usize) -> String {
    if tasks == usize::MAX { "off".to_owned() } else { format!("{} ahead", counted(tasks, "task")) }
}

/// Measures the rate of copies between two buffers of `bytes` by one thread.
///
/// **Units**: bytes copied (read and written count once) per second.
fn copy_rate(bytes: usize, copies: usize) -> f64 {
    let from = vec![1_u8; bytes];
    let mut to = vec![2_u8; bytes];
    let seconds = median(|| {
        for _ in 0..copies {
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
        }
    });
    (bytes * copies) as f64 / seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_of_bytes_that_load_hides_is_no_number() {
        assert_eq!(cost_of_bytes(0.1875), "0.1875 ns per further byte each way");
        assert_eq!(cost_of_bytes(0.0), "hidden by other load on this machine");
    }
}
