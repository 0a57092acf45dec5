//! Long writes over libfabric: within one process, and between processes of which one is killed. This test
//! starts itself again.
#![allow(unsafe_code, reason = "memory of tests is registered and written")]

use std::{
    env, fs,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use ibverbs_sim::{
    Access, CompletionStatus, LossReason, OfiChoice, OfiEnd, OfiRail, Posted, Rail, RailError,
    RailEvent, RailKey, SocketWire, Wire,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    ends::{Ends, Memory, at},
    ofi,
};

const SUCCESS: CompletionStatus = CompletionStatus::Success;
const REFUSED: CompletionStatus = CompletionStatus::RemoteAccess;
const MIB: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Name of the variable with the folder of the run, for a child.
const FOLDER: &str = "IBVERBS_SIM_TEST_FOLDER";

#[test]
fn writes_of_every_length_arrive_whole_before_their_notices() {
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        let long = ends.rail(0).limits().long_bytes.unwrap();
        let memory = [0, 1].map(|_| Memory::private(5 * MIB));
        let keys = [0, 1].map(|end| ends.register(end, &memory[end], Access::ALL));
        let local = Memory::private(5 * MIB);
        let lengths = [long - 1, long, long + 1, MIB, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 5 * MIB];
        for (number, length) in lengths.into_iter().cycle().take(3 * lengths.len()).enumerate() {
            let (end, offset) = (number % 2, 5 * MIB - length);
            let bytes: Vec<u8> = (0..length).map(|byte| (byte * 7 + number) as u8).collect();
            local.fill(0, &bytes);
            let remote = at(keys[1 - end], offset as u64);
            let notice = Some(number as u32);
            let status = ends.carry_out(end, true, local.part(0, length), remote, notice);
            assert_eq!(status, SUCCESS);
            let arrived = ends.until(|events| events[1 - end].notices.pop_front());
            assert_eq!(arrived, number as u32);
            assert!(memory[1 - end].bytes_of(offset, length) == bytes, "{length} bytes");
        }
    }
}

#[test]
fn a_write_with_a_permit_needs_both_keys() {
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        let long = ends.rail(0).limits().long_bytes.unwrap();
        let (memory, local) = (Memory::private(MIB), Memory::private(MIB));
        local.fill(0, &vec![9; MIB]);
        let key = ends.register(1, &memory, Access::ALL);
        let nothing = Memory::private(0);
        let [permit, reads, closed] = [Access::ALL, Access::REMOTE_READ, Access::ALL]
            .map(|access| ends.register(1, &nothing, access));
        ends.rail(1).deregister(&closed).unwrap();
        let mut write = |length, offset, permit: &RailKey| {
            let (rail, local) = (ends.rail(0), local.part(0, length));
            // SAFETY: nobody changes the memory.
            let posted = unsafe { rail.write_long(1, local, &at(key, offset), permit, 3) };
            posted.unwrap().then(|| ends.until(|events| events[0].completions.pop_front()))
        };
        assert_eq!(write(long - 1, 0, &permit), None);
        for (length, offset, permit) in [
            (MIB, 0, &reads),
            (MIB, 0, &closed),
            (MIB, 1, &permit),
            (long, (MIB - long + 1) as u64, &permit),
            (long, u64::MAX, &permit),
        ] {
            assert_eq!(write(length, offset, permit), Some((3, REFUSED)));
        }
        assert!(memory.bytes().iter().all(|byte| *byte == 0));
        assert_eq!(write(MIB, 0, &permit), Some((3, SUCCESS)));
        assert!(memory.bytes() == local.bytes());
    }
}

#[test]
fn nothing_is_written_once_a_key_is_deregistered_and_other_writes_go_on() {
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        let memory = [0, 1].map(|_| Memory::private(MIB));
        let keys = [0, 1].map(|nth| ends.register(1, &memory[nth], Access::ALL));
        let local = Memory::private(MIB);
        local.fill(0, &vec![9; MIB]);
        for (nth, key) in (0..).zip(keys) {
            let posted = ends.post(0, true, local.all(), &at(key, 0), Some(nth), nth.into());
            assert_eq!(posted, Ok(Posted::UnderWay));
        }
        for _ in 0..2000 {
            ends.rail(1).poll(&mut |event| panic!("{event:?}"));
        }
        ends.rail(1).deregister(&keys[0]).unwrap();
        let mut ended: Vec<_> =
            (0..2).map(|_| ends.until(|events| events[0].completions.pop_front())).collect();
        ended.sort_unstable_by_key(|(context, _)| *context);
        assert_eq!(ended, [(0, REFUSED), (1, SUCCESS)]);
        assert_eq!(ends.events[1].notices, [1]);
        assert!(memory[0].bytes().iter().all(|byte| *byte == 0));
        assert!(memory[1].bytes() == local.bytes());
    }
}

/// A rail of two processes, and this end's part of what they exchange.
fn join(folder: &Path, process: u32) -> OfiRail {
    let wire = |name: &str| SocketWire::join(&folder.join(name), process, 2, TIMEOUT).unwrap();
    let exchange = wire("exchange");
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let end = OfiEnd::open(&OfiChoice::default(), loopback, 2).unwrap();
    let mut addresses = [const { None }; 2];
    addresses[process as usize] = Some(end.address().unwrap());
    exchange.send(1 - process, end.address().unwrap());
    while addresses.contains(&None) || exchange.has_unsent() {
        exchange.poll(&mut |from, address| addresses[from as usize] = Some(address.to_vec()));
    }
    end.join(&addresses, wire("control"), 7, TIMEOUT).unwrap()
}

/// Starts this program again, as process 1.
fn start(folder: &Path) -> Child {
    for name in ["exchange", "control"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "long_writes::child_that_writes_and_is_written_to", "--ignored"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Memory of one end that the other writes to for ever.
struct Writer {
    local: Memory,
    remote: Option<RailKey>,
    posted: u64,
    ended: Vec<CompletionStatus>,
    losses: Vec<LossReason>,
}

impl Writer {
    fn new() -> Self {
        let local = Memory::private(MIB);
        local.fill(0, &vec![9; MIB]);
        Self { local, remote: None, posted: 0, ended: Vec::new(), losses: Vec::new() }
    }

    /// Posts a write, unless there is no room, and polls.
    fn go_on(&mut self, rail: &OfiRail) -> Result<(), RailError> {
        if let Some(key) = self.remote {
            let to = 1 - rail.process();
            // SAFETY: the bytes stay until the rail has ended.
            match unsafe { rail.write(to, self.local.all(), &at(key, 0), None, self.posted) } {
                Ok(_) => self.posted += 1,
                Err(RailError::NoRoom { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        rail.poll(&mut |event| match event {
            RailEvent::Message { bytes, .. } => self.remote = RailKey::from_bytes(bytes),
            RailEvent::Completed { status, .. } => self.ended.push(status),
            RailEvent::Lost { reason, .. } => self.losses.push(reason),
            other => panic!("{other:?}"),
        });
        Ok(())
    }
}

/// A run of two processes that write to each other, of which this one has a part.
struct Run {
    folder: PathBuf,
    child: Child,
    rail: OfiRail,
    memory: Memory,
    key: RailKey,
    writer: Writer,
}

impl Run {
    /// Starts a run, and goes on until so many writes of this process have ended, and the other one has
    /// written as well.
    fn start(name: &str, writes: usize) -> Self {
        let name = format!("ibverbs-sim-long-{name}-{}", std::process::id());
        let folder = env::temp_dir().join(name);
        let child = start(&folder);
        let rail = join(&folder, 0);
        let memory = Memory::private(MIB);
        // SAFETY: the memory stays until it is deregistered.
        let key = unsafe { rail.register(memory.all(), Access::ALL) }.unwrap();
        rail.send(1, key.as_bytes()).unwrap();
        let mut writer = Writer::new();
        while writer.ended.len() < writes || memory.bytes_of(MIB - 1, 1) != [9] {
            writer.go_on(&rail).unwrap();
        }
        Self { folder, child, rail, memory, key, writer }
    }

    /// Goes on until the loss of the other process, after which the memory is given back.
    fn lose(&mut self) {
        let Self { rail, memory, key, writer, .. } = self;
        let error = loop {
            if let Err(error) = writer.go_on(rail) {
                break error;
            }
        };
        assert_eq!(error, RailError::Lost { process: 1 });
        while writer.losses.is_empty() {
            rail.poll(&mut |event| match event {
                RailEvent::Completed { status, .. } => writer.ended.push(status),
                RailEvent::Lost { reason, .. } => writer.losses.push(reason),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(writer.ended.len() as u64, writer.posted);
        assert_eq!(writer.ended.last(), Some(&CompletionStatus::RetryExceeded));
        rail.deregister(key).unwrap();
        memory.fill(0, &vec![1; MIB]);
    }

    /// Checks that nobody writes to memory that was given back.
    fn ends(mut self, reason: LossReason) {
        for _ in 0..20_000 {
            self.rail.poll(&mut |event| panic!("{event:?}"));
        }
        assert!(self.memory.bytes() == [1; MIB]);
        assert_eq!(self.writer.losses, [reason]);
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

#[test]
fn a_process_that_is_killed_within_writes_ends_them_and_writes_nothing_afterwards() {
    for round in 0..if ofi::providers().is_empty() { 0 } else { 4 } {
        let mut run = Run::start(&format!("killed-{round}"), 20 * (round + 1));
        run.child.kill().unwrap();
        run.child.wait().unwrap();
        run.lose();
        run.ends(LossReason::Ended);
    }
}

#[test]
fn a_process_that_is_stopped_and_given_up_writes_nothing_once_it_goes_on() {
    for round in 0..if ofi::providers().is_empty() { 0 } else { 4 } {
        let mut run = Run::start(&format!("stopped-{round}"), 20 * (round + 1));
        let process = Pid::from_child(&run.child);
        kill_process(process, Signal::STOP).unwrap();
        for _ in 0..1000 {
            run.writer.go_on(&run.rail).unwrap();
        }
        run.rail.give_up(1);
        run.lose();
        kill_process(process, Signal::CONT).unwrap();
        run.ends(LossReason::Silent);
    }
}

#[test]
#[ignore = "started by another test"]
fn child_that_writes_and_is_written_to() {
    let folder = PathBuf::from(env::var_os(FOLDER).unwrap());
    let rail = join(&folder, 1);
    let memory = Memory::private(MIB);
    // SAFETY: the memory stays until this process is killed.
    let key = unsafe { rail.register(memory.all(), Access::ALL) }.unwrap();
    rail.send(0, key.as_bytes()).unwrap();
    let mut writer = Writer::new();
    while writer.go_on(&rail).is_ok() {}
}
