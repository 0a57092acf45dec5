//! Runs of a program on ranks of several processes, over each rail. The processes are threads.

use std::env;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ibverbs_sim::{
    OfiChoice, OfiRail, Packets, Rail, ShmConfig, ShmRail, SocketWire, TcpMeeting, Wire,
};
use talpf::{Config, Context, Error, Progress, exec_on_rail, hook, hook_on_rail};

use crate::changed_wire::ChangedWire;
use crate::in_one_process::{AnyProgram, AnyResult, any_main, typed, watchdog};

/// Number that strangers do not know.
const SECRET: u128 = 7;
const TIMEOUT: Duration = Duration::from_secs(60);

/// A main of all ranks whose types are erased.
type AnyMain<'a> = dyn Fn(Context) -> AnyProgram + Sync + 'a;

/// Returns the result of each rank, over the rail that the environment asks for: sockets, or what
/// `TALPF_TEST_RAIL` names.
pub(crate) fn run_all<R, F>(
    config: Config,
    main: impl Fn(Context) -> F + Sync,
) -> Vec<Result<R, Error>>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    all_typed(run_any(config, &any_main(main)))
}

fn run_any(config: Config, main: &AnyMain<'_>) -> Vec<Result<AnyResult, Error>> {
    match env::var("TALPF_TEST_RAIL").as_deref() {
        Err(_) => {
            let wires = SocketWire::mesh(config.ranks).unwrap();
            let wires = wires.into_iter().map(|wire| Arc::new(wire) as Arc<dyn Wire>);
            any_on_wires(wires.map(|wire| (wire, config.clone())).collect(), main)
        }
        Ok(name @ ("shm" | "shm-thread")) => {
            let progress = if name == "shm" { config.progress } else { Progress::Thread };
            let config = Config { progress, ..config };
            let rails = ShmRail::mesh(config.ranks, &ShmConfig::default()).unwrap();
            each_in_a_thread(rails, |rail| hook_on_rail(Arc::new(rail), config.clone(), main))
        }
        Ok("tcp") => {
            let listen = |_| TcpMeeting::listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
            let meetings: Vec<_> = (0..config.ranks).map(listen).collect();
            let addresses = meetings.iter().map(|meeting| Some(meeting.address().unwrap()));
            let addresses: Vec<_> = addresses.collect();
            let ranks = (0..).zip(meetings).collect();
            each_in_a_thread(ranks, |(process, meeting): (u32, TcpMeeting)| {
                let wire = meeting.join(process, &addresses, SECRET, TIMEOUT).unwrap();
                hook_on_rail(Arc::new(Packets::new(Arc::new(wire))), config.clone(), main)
            })
        }
        // Two ranks in each process, or three, as their number divides, or else one.
        Ok(name @ ("shm-ranks" | "packet-ranks")) => {
            let between = if name == "shm-ranks" { Between::Memory } else { Between::Packets };
            let divides = |each: &u32| config.ranks.is_multiple_of(*each) && config.ranks > *each;
            let each = [2, 3].into_iter().find(divides).unwrap_or(1);
            let processes = config.ranks / each;
            any_in_processes(between, processes, Config { ranks: each, ..config }, main)
        }
        Ok(name) if name.starts_with("ofi") => {
            let choice: OfiChoice = match name.strip_prefix("ofi:") {
                Some(choice) => choice.parse().unwrap(),
                None => OfiChoice::default(),
            };
            let rails = OfiRail::mesh(config.ranks, &choice).unwrap();
            each_in_a_thread(rails, |rail| hook_on_rail(Arc::new(rail), config.clone(), main))
        }
        Ok(other) => {
            let known = "shm, shm-thread, tcp, shm-ranks, packet-ranks, ofi or ofi:PROVIDER";
            panic!("TALPF_TEST_RAIL is {other}, not {known}")
        }
    }
}

/// As [`run_all`] over sockets, with a wire and settings for each rank.
pub(crate) fn on_wires<R, F>(
    ranks: Vec<(Arc<dyn Wire>, Config)>,
    main: impl Fn(Context) -> F + Sync,
) -> Vec<Result<R, Error>>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    all_typed(any_on_wires(ranks, &any_main(main)))
}

fn any_on_wires(
    ranks: Vec<(Arc<dyn Wire>, Config)>,
    main: &AnyMain<'_>,
) -> Vec<Result<AnyResult, Error>> {
    each_in_a_thread(ranks, |(wire, config)| hook(wire, config, main))
}

/// Connections of processes that have several ranks each.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Between {
    /// Memory that they share.
    Memory,
    /// Packets of a wire without an event, such as that of MPI.
    Packets,
}

impl Between {
    pub(crate) const ALL: [Self; 2] = [Self::Memory, Self::Packets];

    fn rails(self, processes: u32) -> Vec<Arc<dyn Rail>> {
        match self {
            Self::Memory => {
                let rails = ShmRail::mesh(processes, &ShmConfig::default()).unwrap();
                rails.into_iter().map(|rail| Arc::new(rail) as _).collect()
            }
            Self::Packets => {
                let wires = SocketWire::mesh(processes).unwrap().into_iter();
                let wires = wires.map(|wire| Arc::new(ChangedWire::new(wire, ())));
                wires.map(|wire| Arc::new(Packets::new(wire)) as _).collect()
            }
        }
    }
}

/// Returns the result of each rank of `processes` processes; one that fails has one error for all its
/// ranks.
pub(crate) fn in_processes<R, F>(
    between: Between,
    processes: u32,
    config: Config,
    main: impl Fn(Context) -> F + Sync,
) -> Vec<Result<R, Error>>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    all_typed(any_in_processes(between, processes, config, &any_main(main)))
}

fn any_in_processes(
    between: Between,
    processes: u32,
    config: Config,
    main: &AnyMain<'_>,
) -> Vec<Result<AnyResult, Error>> {
    let rails = between.rails(processes);
    let results = each_in_a_thread(rails, |rail| exec_on_rail(rail, config.clone(), main));
    let each = config.ranks as usize;
    let ranks = results.into_iter().flat_map(|results| match results {
        Ok(results) => results.into_iter().map(Ok).collect(),
        Err(error) => Vec::from_iter((0..each).map(|_| Err(error.clone()))),
    });
    ranks.collect()
}

fn all_typed<R: 'static>(results: Vec<Result<AnyResult, Error>>) -> Vec<Result<R, Error>> {
    results.into_iter().map(|result| result.map(typed)).collect()
}

/// Returns the result of each process.
fn each_in_a_thread<P: Send, R: Send>(processes: Vec<P>, run: impl Fn(P) -> R + Sync) -> Vec<R> {
    let _watchdog = watchdog(&format!("{} processes", processes.len()));
    let run = &run;
    thread::scope(|scope| {
        let start = |process| scope.spawn(move || run(process));
        let threads: Vec<_> = processes.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
