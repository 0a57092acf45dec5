//! Conditions of a comparison: machine, settings and time.

use std::fs;

use talpf_apps::Error;
use talpf_apps::run::{Dilation, Simulation};
use talpf_runtime::cores;
use talpf_traces::counted;

use super::super::run_options::MachineOptions;
use super::super::trace_output::utc_now;

/// Returns the conditions of real runs, or of those in virtual time, which are the same on any machine
/// and at any time.
pub(super) fn conditions(
    options: &MachineOptions,
    simulation: Option<Simulation>,
    dilation: Option<Dilation>,
) -> Result<Vec<(&'static str, String)>, Error> {
    let machine = options.with_ranks(1)?;
    let version = ("version", format!("talpf {}", env!("CARGO_PKG_VERSION")));
    if let Some(simulation) = simulation {
        let polling = machine.simulated(simulation).polling()?.to_string();
        let simulated = ("simulated", simulation.to_string());
        return Ok(vec![simulated, ("polling", polling), version]);
    }
    let slow = machine.slowdown().map_or("none".to_owned(), |slow| {
        let rank = slow.rank.map_or("all ranks".to_owned(), |rank| format!("rank {rank}"));
        format!("{rank}, {} times as slow, on simulated cores of its own", slow.factor)
    });
    let link = machine.link().map_or("in-process, one copy".to_owned(), |link| {
        let times = dilation.map(|dilation| format!(" {} times", dilation.factor));
        let times = times.unwrap_or_default();
        format!("simulated,{times} {}: messages arrive no earlier", link.text)
    });
    let workers = machine.workers_per_rank().map_or_else(
        || format!("{} of all ranks together", machine.workers()),
        |each| format!("{each} of each rank alone"),
    );
    let conflicts = if machine.checks_conflicts()? { "checked" } else { "not checked" };
    Ok(vec![
        ("machine", format!("{}, {}", processor(), counted(cores(), "core"))),
        ("system", format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)),
        ("load", load()),
        ("workers", workers),
        ("idle policy", machine.settings().idle()?.to_string()),
        ("polling", machine.settings().polling()?.to_string()),
        ("conflicts", conflicts.to_owned()),
        ("link", link),
        ("slow ranks", slow),
        ("virtual cores", dilation.map_or("none".to_owned(), |dilation| dilation.to_string())),
        version,
        ("date", format!("{} UTC", utc_now())),
    ])
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

/// Returns the load of the machine when the comparison began.
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).map_or("unknown".to_owned(), |load| {
        format!("{load} runnable threads in the minute before")
    })
}
