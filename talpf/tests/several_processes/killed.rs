//! A process that is killed while it registers memory, while it holds a grant or a ticket, in a superstep, or as it says
//! that it has finished: each other one ends with an error that names its rank, and soon. The processes are ones of the
//! system: this test starts itself again.
#![allow(unsafe_code, reason = "passes the calls of a rail on")]

use std::env;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ibverbs_sim::{
    Access, Armed, OfiEnd, OfiProviders, Posted, Rail, RailAddress, RailError, RailEvent, RailKey,
    RailLimits, RailMemory, ShmConfig, ShmRail, SocketWire, Wire,
};
use rustix::process::{Signal, getpid, kill_process};
use talpf::{Config, Context, Error, Rank, SyncMode, hook_on_rail};
use talpf_runtime::Array;

use crate::common;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time between the end of a process and that of all others. Measured on two idle cores: 1 to 6 ms over shared
/// memory, 2 to 165 ms over libfabric.
const SOON: Duration = Duration::from_secs(1);
/// Time that a machine which does much else may add to [`SOON`].
const MARGIN: Duration = Duration::from_secs(2);
/// Variables for a child: its rail, its process, the folder of the run, the process that is killed and at which point, and
/// the times that this passes it before.
const RAIL: &str = "TALPF_KILLED_RAIL";
const PROCESS: &str = "TALPF_KILLED_PROCESS";
const FOLDER: &str = "TALPF_KILLED_FOLDER";
const PROCESSES: &str = "TALPF_KILLED_PROCESSES";
const VICTIM: &str = "TALPF_KILLED_VICTIM";
const POINT: &str = "TALPF_KILLED_POINT";
const TIMES: &str = "TALPF_KILLED_TIMES";

/// Elements that each rank puts to each other one: they travel by themselves, after a grant or by a ticket.
const PART: usize = 20_000;
/// Rounds of a program that ends.
const ROUNDS: usize = 20;
/// Numbers of control messages.
const WINDOW_GRANT: u8 = 1;
const FINISHED: u8 = 5;
const TICKET: u8 = 19;

/// Point at which a process kills itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// Within the registration of an array, for which all others wait.
    Registration,
    /// After a window of a peer has granted an operation, which has not begun.
    Grant,
    /// After a window of a peer has given a ticket, which was not used.
    Ticket,
    /// Before a message of a superstep of short puts.
    Superstep,
    /// Before it says that its program has ended.
    Finish,
}

/// A run in which a process is killed.
#[derive(Clone, Copy)]
struct Kill {
    processes: u32,
    victim: u32,
    point: Point,
    /// Times that the point is passed before.
    times: usize,
}

impl Point {
    const ALL: [(Self, &str); 5] = [
        (Self::Registration, "registration"),
        (Self::Grant, "grant"),
        (Self::Ticket, "ticket"),
        (Self::Superstep, "superstep"),
        (Self::Finish, "finish"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(point, _)| *point == self).unwrap().1
    }

    fn from_name(name: &str) -> Self {
        Self::ALL.into_iter().find(|(_, its_name)| *its_name == name).unwrap().0
    }
}

/// A rail whose process kills itself at a point.
struct DeadlyRail {
    rail: Arc<dyn Rail>,
    point: Point,
    /// Times that the point is passed before.
    left: AtomicUsize,
}

impl DeadlyRail {
    fn pass(&self, point: Point) {
        if point == self.point && self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    }
}

/// Returns `true` if a message of the device has a control message of a kind.
fn has(kind: u8, mut message: &[u8]) -> bool {
    while let Some((length, rest)) = message.split_first_chunk() {
        let Some((packet, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)
        else {
            return false;
        };
        if packet.starts_with(&[0, kind]) {
            return true;
        }
        message = rest;
    }
    false
}

// SAFETY of the calls in it: each passes the contract on.
impl Rail for DeadlyRail {
    fn process(&self) -> u32 {
        self.rail.process()
    }

    fn processes(&self) -> u32 {
        self.rail.processes()
    }

    fn limits(&self) -> RailLimits {
        self.rail.limits()
    }

    unsafe fn register(&self, memory: NonNull<[u8]>, access: Access) -> Result<RailKey, RailError> {
        // Those of no bytes are permits.
        if !memory.is_empty() {
            self.pass(Point::Registration);
        }
        // SAFETY: passed on.
        unsafe { self.rail.register(memory, access) }
    }

    fn allocate(&self, bytes: usize) -> Option<Box<dyn RailMemory>> {
        self.rail.allocate(bytes)
    }

    fn deregister(&self, key: &RailKey) -> Result<(), RailError> {
        self.rail.deregister(key)
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), RailError> {
        self.pass(Point::Superstep);
        if has(FINISHED, bytes) {
            self.pass(Point::Finish);
        }
        self.rail.send(to, bytes)
    }

    unsafe fn write(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        notice: Option<u32>,
        context: u64,
    ) -> Result<Posted, RailError> {
        // SAFETY: passed on.
        unsafe { self.rail.write(to, local, remote, notice, context) }
    }

    unsafe fn read(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError> {
        // SAFETY: passed on.
        unsafe { self.rail.read(to, local, remote, context) }
    }

    unsafe fn write_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        // SAFETY: passed on.
        unsafe { self.rail.write_at_once(to, local, remote, permit) }
    }

    unsafe fn write_long(
        &self,
        to: u32,
        local: (NonNull<[u8]>, &RailKey),
        remote: &RailAddress,
        permit: &RailKey,
        context: u64,
    ) -> Result<bool, RailError> {
        // SAFETY: passed on.
        unsafe { self.rail.write_long(to, local, remote, permit, context) }
    }

    fn cancel_long(&self, to: u32, context: u64) {
        self.rail.cancel_long(to, context);
    }

    fn poll(&self, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize {
        self.rail.poll(&mut |event| {
            if let RailEvent::Message { bytes, .. } = event {
                for (kind, point) in [(WINDOW_GRANT, Point::Grant), (TICKET, Point::Ticket)] {
                    if has(kind, bytes) {
                        self.pass(point);
                    }
                }
            }
            sink(event);
        })
    }

    fn has_unsent(&self) -> bool {
        self.rail.has_unsent()
    }

    fn is_lost(&self, process: u32) -> bool {
        self.rail.is_lost(process)
    }

    fn give_up(&self, process: u32) {
        self.rail.give_up(process);
    }

    fn arm(&self) -> Armed<'_> {
        self.rail.arm()
    }
}

/// Joins the processes of a run, which meet in a folder.
fn join(rail: &str, folder: &Path, (process, processes): (u32, u32)) -> Arc<dyn Rail> {
    if rail == "shm" {
        let run = folder.display().to_string();
        let config = ShmConfig::default();
        return Arc::new(ShmRail::join(&run, process, processes, TIMEOUT, &config).unwrap());
    }
    let choice = rail.strip_prefix("ofi:").unwrap().parse().unwrap();
    let wire =
        |name: &str| SocketWire::join(&folder.join(name), process, processes, TIMEOUT).unwrap();
    let exchange = wire("exchange");
    let end = OfiEnd::open(&choice, IpAddr::V4(Ipv4Addr::LOCALHOST), processes).unwrap();
    let mut addresses = vec![None; processes as usize];
    addresses[process as usize] = Some(end.address().unwrap());
    for other in (0..processes).filter(|other| *other != process) {
        exchange.send(other, end.address().unwrap());
    }
    while addresses.contains(&None) || exchange.has_unsent() {
        exchange.poll(&mut |from, address| addresses[from as usize] = Some(address.to_vec()));
    }
    Arc::new(end.join(&addresses, wire("control"), 7, TIMEOUT).unwrap())
}

/// Registers arrays, or puts to all other ranks, for ever or for some rounds.
async fn main(ctx: Context, point: Point) -> Result<(), Error> {
    let (me, processes) = (ctx.rank().0, ctx.size());
    let inbox = || Array::new(ctx.group(), vec![9u64; PART * processes as usize], PART);
    if point == Point::Registration {
        let mut all = Vec::new();
        loop {
            let inbox = inbox()?;
            all.push(ctx.register_global(&inbox).await?);
        }
    }
    let source = Array::new(ctx.group(), vec![u64::from(me); PART], PART)?;
    ctx.register_local(&source)?;
    let inbox = inbox()?;
    let slot = ctx.register_global(&inbox).await?;
    let (all, one) = (source.all(), source.region(..1));
    let (mode, part) = match point {
        Point::Superstep => (SyncMode::CACHED, &one),
        _ => (SyncMode::DEFAULT, &all),
    };
    let rounds = if point == Point::Finish { ROUNDS } else { usize::MAX };
    for _ in 0..rounds {
        for peer in (0..processes).filter(|peer| *peer != me) {
            ctx.put(part, slot.at(Rank(peer), PART * me as usize))?;
        }
        ctx.sync(mode).window(&inbox.all()).await?;
    }
    Ok(())
}

fn config(processes: u32, point: Point) -> Config {
    // There are no tickets if conflicts are checked.
    Config { check_conflicts: point != Point::Ticket, ..common::unwatched(processes, 1) }
}

/// Runs a process that is to outlive another one.
fn outlive(rail: Arc<dyn Rail>, Kill { victim, point, .. }: Kill) {
    let config = config(rail.processes(), point);
    let error = hook_on_rail(rail, config, |ctx| main(ctx, point)).unwrap_err();
    assert!(matches!(error, Error::PeerFailed { .. }), "{error}");
    assert!(error.to_string().contains(&format!("rank {victim}")), "{error}");
}

/// Starts a process.
fn start(rail: &str, folder: &Path, process: u32, kill: Kill) -> Child {
    let Kill { processes, victim, point, times } = kill;
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "killed::child_of_a_run", "--ignored", "--nocapture"])
        .env(RAIL, rail)
        .env(PROCESS, process.to_string())
        .env(PROCESSES, processes.to_string())
        .env(FOLDER, folder)
        .env(VICTIM, victim.to_string())
        .env(POINT, point.name())
        .env(TIMES, times.to_string())
        .stdout(Stdio::null());
    command.spawn().unwrap()
}

/// Has a process killed, over each rail and after each number of times. This process is one that outlives it.
fn kills<const N: usize>(point: Point, [processes, victim]: [u32; 2], all_times: [usize; N]) {
    let providers = OfiProviders::find().map(|found| found.best().map(|best| best.name.clone()));
    let ofi = providers.ok().flatten().map(|name| format!("ofi:{name}"));
    if ofi.is_none() {
        eprintln!("skipped over libfabric, which is not installed");
    }
    for rail in ["shm".to_owned()].into_iter().chain(ofi) {
        for times in all_times {
            let folder = tempfile::tempdir().unwrap();
            for name in ["exchange", "control"] {
                fs::create_dir_all(folder.path().join(name)).unwrap();
            }
            let kill = Kill { processes, victim, point, times };
            let this = (victim + 1) % processes;
            let mut killed = start(&rail, folder.path(), victim, kill);
            let others = (0..processes).filter(|process| ![victim, this].contains(process));
            let others: Vec<_> =
                others.map(|process| start(&rail, folder.path(), process, kill)).collect();
            let death = std::thread::spawn(move || {
                let status = killed.wait().unwrap();
                (status, Instant::now())
            });
            outlive(join(&rail, folder.path(), (this, processes)), kill);
            let here = Instant::now();
            let mut exits = others.into_iter().map(|mut other| other.wait().unwrap());
            assert!(exits.all(|status| status.success()));
            let all = Instant::now();
            let (status, killed) = death.join().unwrap();
            assert!(!status.success());
            // The end of this process, and that of all: those need time to leave as well.
            let [here, all] = [here, all].map(|end| end.saturating_duration_since(killed));
            println!("{rail}, {victim} of {processes}, {point:?} {times}: {here:?}, all {all:?}");
            assert!(all < SOON + MARGIN, "{all:?} over {rail}");
        }
    }
}

#[test]
fn a_process_that_is_killed_as_it_registers_memory_is_named_by_all_others() {
    kills(Point::Registration, [3, 1], [0, 7, 23]);
}

#[test]
fn a_process_that_is_killed_with_a_grant_is_named_by_all_others() {
    kills(Point::Grant, [3, 1], [0, 7, 23]);
}

#[test]
fn a_process_that_is_killed_with_a_ticket_is_named_by_all_others() {
    kills(Point::Ticket, [3, 2], [0, 7, 23]);
}

#[test]
fn a_process_that_is_killed_before_it_has_finished_is_named_by_all_others() {
    for victim in 0..3 {
        kills(Point::Finish, [3, victim], [0]);
    }
}

#[test]
fn a_process_that_is_killed_in_a_superstep_is_named_by_all_others() {
    for processes_and_victim in [[2, 1], [3, 0], [3, 2]] {
        kills(Point::Superstep, processes_and_victim, [100, 1_000, 3_001]);
    }
}

#[test]
#[ignore = "started by another test"]
fn child_of_a_run() {
    let of = |name| env::var(name).unwrap();
    let [process, processes, victim, times] =
        [PROCESS, PROCESSES, VICTIM, TIMES].map(|name| of(name).parse().unwrap());
    let rail = join(&of(RAIL), of(FOLDER).as_ref(), (process, processes));
    let point = Point::from_name(&of(POINT));
    if process != victim {
        let times = times as usize;
        return outlive(rail, Kill { processes, victim, point, times });
    }
    let rail = DeadlyRail { rail, point, left: AtomicUsize::new(times as usize) };
    let ended = hook_on_rail(Arc::new(rail), config(processes, point), |ctx| main(ctx, point));
    panic!("the process is not killed: {ended:?}");
}
