//! A process that waits for another one leaves its cores to others. The tests of this program run one after
//! another, as they measure the processor time of all threads.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ibverbs_sim::{
    OfiChoice, OfiRail, Packets, Rail, RoutedRail, ShmConfig, ShmRail, SocketWire, TcpMeeting,
};
use rustix::time::{ClockId, clock_gettime};
use talpf::{Config, Context, Error, Rank, SyncMode, exec_on_rail};
use talpf_runtime::Array;

/// Time in which the ranks that wait poll in vain and fall asleep.
const START: Duration = Duration::from_millis(200);
/// Time for which one rank keeps the others waiting after that.
const WORK: Duration = Duration::from_secs(1);
/// Most processor time of all ranks meanwhile: 1 % of a core on an idle machine, and some more on a
/// busy one, or without optimisations.
const MOST: Duration = Duration::from_millis(30);

/// Function that makes the rails of all processes.
type Rails = fn() -> Vec<Arc<dyn Rail>>;
/// As `Rails`, of a number of processes.
type RailsOf = fn(u32) -> Vec<Arc<dyn Rail>>;

/// Largest number of waits, of which one has to be short.
const ATTEMPTS: usize = 3;

/// Lock of the test that runs.
static RUNNING: Mutex<()> = Mutex::new(());

/// Returns the processor time of this program.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Takes a while without the processor. Returns the processor time that everything else took, once the other
/// ranks had fallen asleep.
fn work() -> Duration {
    thread::sleep(START);
    let before = processor_time();
    thread::sleep(WORK);
    processor_time() - before
}

/// Waits for a put of rank 1, which computes before. Returns the processor time meanwhile, at rank 1.
async fn wait(ctx: Context) -> Result<Duration, Error> {
    let mine = Array::new(ctx.group(), vec![7u64], 1)?;
    let inbox = Array::new(ctx.group(), vec![0u64], 1)?;
    let slot = ctx.register_global(&inbox).await?;
    ctx.sync(SyncMode::DEFAULT).await?;
    if ctx.rank() == Rank(1) {
        let work = ctx.group().task("work").inout(&mine.all()).run(|_| work())?;
        ctx.put(&mine.all(), slot.at(Rank(0), 0))?;
        ctx.sync(SyncMode::msg(0)).await?;
        return Ok(work.await?);
    }
    ctx.sync(SyncMode::msg(1)).window(&inbox.all()).await?;
    Ok(Duration::ZERO)
}

/// Puts from one rank to another one, which computes and to which the first sends nothing else in the exchange of
/// counts: it waits until its count is delivered. Returns the processor time meanwhile, at the target.
async fn deliver(
    ctx: Context,
    [source, target]: [Rank; 2],
    computes: Arc<AtomicBool>,
) -> Result<Duration, Error> {
    let mine = Array::new(ctx.group(), vec![7u64], 1)?;
    let inbox = Array::new(ctx.group(), vec![0u64], 1)?;
    let slot = ctx.register_global(&inbox).await?;
    let mut time = Duration::ZERO;
    ctx.sync(SyncMode::DEFAULT).await?;
    if ctx.rank() == target {
        let compute = ctx.group().task("work").inout(&mine.all()).run(move |_| {
            computes.store(true, Ordering::Release);
            work()
        })?;
        time = compute.await?;
    } else if ctx.rank() == source {
        while !computes.load(Ordering::Acquire) {
            ctx.group().wait_for(Duration::from_millis(1)).await;
        }
        ctx.put(&mine.all(), slot.at(target, 0))?;
    }
    ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).await?;
    Ok(time)
}

/// Runs a main on `ranks` ranks in each process, which has one worker. Returns the largest of their times.
fn longest<F>(rails: Vec<Arc<dyn Rail>>, ranks: u32, main: impl Fn(Context) -> F + Sync) -> Duration
where
    F: Future<Output = Result<Duration, Error>> + Send + 'static,
{
    thread::scope(|scope| {
        let start = |rail| {
            let mut config = Config { ranks, ..Config::default() };
            config.runtime.workers = 1;
            scope.spawn(|| exec_on_rail(rail, config, &main))
        };
        let threads: Vec<_> = rails.into_iter().map(start).collect();
        let times = threads.into_iter().flat_map(|thread| thread.join().unwrap().unwrap());
        times.max().unwrap_or_default()
    })
}

/// Checks that a wait takes little of the processor. What else the machine does makes it longer, and never
/// shorter.
fn check_short(name: &str, wait: impl Fn() -> Duration) {
    let is_short = (0..ATTEMPTS).any(|_| {
        let time = wait();
        println!("{name}: {time:?} of the processor in {WORK:?}");
        time < MOST
    });
    assert!(is_short, "{name}: more than {MOST:?} of the processor in {WORK:?}");
}

fn over_wires(wires: Vec<SocketWire>) -> Vec<Arc<dyn Rail>> {
    let rail = |wire| Arc::new(Packets::new(Arc::new(wire))) as Arc<dyn Rail>;
    wires.into_iter().map(rail).collect()
}

fn over_tcp() -> Vec<Arc<dyn Rail>> {
    let meetings = [0, 1].map(|_| TcpMeeting::listen(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap());
    let addresses = meetings.each_ref().map(|meeting| Some(meeting.address().unwrap()));
    let join = |(process, meeting): (u32, TcpMeeting)| {
        thread::spawn(move || meeting.join(process, &addresses, 7, Duration::from_secs(60)))
    };
    let threads: Vec<_> = (0..).zip(meetings).map(join).collect();
    over_wires(threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect())
}

fn over_shared_memory(processes: u32) -> Vec<Arc<ShmRail>> {
    ShmRail::mesh(processes, &ShmConfig::default()).unwrap().into_iter().map(Arc::new).collect()
}

/// Returns the rails of two machines with a process each.
fn over_both() -> Vec<Arc<dyn Rail>> {
    let routed = |(process, network)| {
        let machine = over_shared_memory(1).remove(0);
        Arc::new(RoutedRail::new(machine, &[process], network)) as Arc<dyn Rail>
    };
    (0..).zip(over_tcp()).map(routed).collect()
}

/// Returns no rails if libfabric is not installed.
fn over_libfabric() -> Vec<Arc<dyn Rail>> {
    match OfiRail::mesh(2, &OfiChoice::default()) {
        Ok(rails) => rails.into_iter().map(|rail| Arc::new(rail) as _).collect(),
        Err(error) => {
            eprintln!("skipped over libfabric: {error}");
            Vec::new()
        }
    }
}

#[test]
fn a_wait_for_a_process_that_computes_takes_a_hundredth_of_a_core() {
    let shm = || over_shared_memory(2).into_iter().map(|rail| rail as _).collect();
    let sockets = || over_wires(SocketWire::mesh(2).unwrap());
    let all: [(_, Rails); 5] = [
        ("shm", shm),
        ("sockets", sockets),
        ("tcp", over_tcp),
        ("both", over_both),
        ("libfabric", over_libfabric),
    ];
    let _running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, rails) in all {
        check_short(name, || longest(rails(), 1, wait));
    }
}

#[test]
fn a_sync_whose_count_is_not_delivered_takes_a_hundredth_of_a_core() {
    let shm = |processes| over_shared_memory(processes).into_iter().map(|rail| rail as _).collect();
    let sockets = |processes| over_wires(SocketWire::mesh(processes).unwrap());
    let all: [(_, RailsOf); 2] = [("shm", shm), ("sockets", sockets)];
    let _running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, rails) in all {
        // In the second case the source is not the rank that serves the others.
        for (ranks, processes, ends) in [(1, 4, [0, 3]), (2, 3, [1, 4])] {
            check_short(&format!("{name}, {ranks} x {processes}"), || {
                let computes = Arc::new(AtomicBool::new(false));
                let deliver = |ctx| deliver(ctx, ends.map(Rank), Arc::clone(&computes));
                longest(rails(processes), ranks, deliver)
            });
        }
    }
}
