//! Long writes and reads over libfabric: within one process, and between processes of which one is killed. This
//! test starts itself again. It has over 400 lines, as writes and reads keep the same rules.
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
/// Bytes of the writes and reads between processes, in several pieces.
const LONG: usize = 5 * MIB / 4;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Name of the variable with the folder of the run, for a child.
const FOLDER: &str = "IBVERBS_SIM_TEST_FOLDER";
/// Name of the variable with the provider, for a child.
const PROVIDER: &str = "IBVERBS_SIM_TEST_PROVIDER";

/// Returns lengths around those at which writes and reads go otherwise: as one piece, as several, as more than are
/// under way at a time.
fn lengths(long: usize) -> [usize; 9] {
    [long - 1, long, long + 1, MIB / 2, MIB / 2 + 1, MIB, 2 * MIB + 1, 5 * MIB, 9 * MIB]
}

#[test]
fn writes_of_every_length_arrive_whole_before_their_notices() {
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        let Some(long) = ends.rail(0).limits().long_bytes else { continue };
        let memory = [0, 1].map(|_| Memory::private(9 * MIB));
        let keys = [0, 1].map(|end| ends.register(end, &memory[end], Access::ALL));
        let local = Memory::private(9 * MIB);
        let lengths = lengths(long);
        for (number, length) in lengths.into_iter().cycle().take(3 * lengths.len()).enumerate() {
            let (end, offset) = (number % 2, 9 * MIB - length);
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
fn polls_count_the_pieces_of_a_long_write() {
    const PIECE: usize = MIB / 2;
    for provider in ofi::providers() {
        println!("{provider}");
        let ends = Ends::new(ofi::pair(&provider));
        if ends.rail(0).limits().long_bytes.is_none() {
            continue;
        }
        let [target, local] = [0, 1].map(|_| Memory::private(9 * MIB));
        let key = ends.register(1, &target, Access::ALL);
        ends.post(0, true, local.all(), &at(key, 0), Some(7), 0).unwrap();
        let (mut counted, mut has_come) = (0, false);
        while !has_come {
            ends.rail(0).poll(&mut |_| {});
            let mut sink =
                |event: RailEvent<'_>| has_come |= matches!(event, RailEvent::Notice { .. });
            counted += ends.rail(1).poll(&mut sink);
        }
        assert!(counted >= 9 * MIB / PIECE, "{counted}");
    }
}

#[test]
fn reads_of_every_length_bring_all_bytes() {
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        let Some(long) = ends.rail(0).limits().long_bytes else { continue };
        let memory = [0, 1].map(|_| Memory::private(9 * MIB));
        let keys = [0, 1].map(|end| ends.register(end, &memory[end], Access::ALL));
        let local = Memory::private(9 * MIB + 2);
        let lengths = lengths(long);
        for (number, length) in lengths.into_iter().cycle().take(3 * lengths.len()).enumerate() {
            let (end, offset) = (number % 2, 9 * MIB - length);
            let bytes: Vec<u8> = (0..length).map(|byte| (byte * 7 + number) as u8).collect();
            memory[1 - end].fill(offset, &bytes);
            local.fill(0, &vec![0; 9 * MIB + 2]);
            let remote = at(keys[1 - end], offset as u64);
            let status = ends.carry_out(end, false, local.part(1, length), remote, None);
            assert_eq!(status, SUCCESS);
            assert!(local.bytes_of(1, length) == bytes, "{length} bytes");
            assert_eq!([local.bytes_of(0, 1), local.bytes_of(length + 1, 1)], [[0], [0]]);
        }
    }
}

#[test]
fn many_writes_and_reads_of_both_ends_are_under_way_at_once() {
    const LENGTH: usize = 3 * MIB / 2;
    const COUNT: usize = 24;
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        let memory = [0, 1].map(|_| Memory::private(2 * COUNT * LENGTH));
        let keys = [0, 1].map(|end| ends.register(end, &memory[end], Access::ALL));
        let local = [0, 1].map(|_| Memory::private(2 * COUNT * LENGTH));
        let byte = |end: usize, number: usize| (1 + end * COUNT + number) as u8;
        for end in 0..2 {
            for number in 0..COUNT {
                local[end].fill(number * LENGTH, &vec![byte(end, number); LENGTH]);
                memory[end].fill((COUNT + number) * LENGTH, &vec![byte(end, number); LENGTH]);
            }
        }
        // The first half of each memory is written, and the second one read.
        for number in 0..2 * COUNT {
            for end in 0..2 {
                let (is_write, offset) = (number < COUNT, number * LENGTH);
                let (part, remote) =
                    (local[end].part(offset, LENGTH), at(keys[1 - end], offset as u64));
                let notice = is_write.then_some(number as u32);
                let (rail, to) = (ends.rail(end), 1 - end as u32);
                ends.with_room(|| {
                    if is_write {
                        // SAFETY: the memory stays, and is used after the operation.
                        unsafe { rail.write(to, part, &remote, notice, number as u64) }
                    } else {
                        // SAFETY: as above.
                        unsafe { rail.read(to, part, &remote, number as u64) }
                    }
                });
            }
        }
        for end in 0..2 {
            let mut ended = Vec::new();
            while ended.len() < 2 * COUNT {
                ended.push(ends.until(|events| events[end].completions.pop_front()));
            }
            ended.sort_unstable_by_key(|(number, _)| *number);
            assert!(ended.into_iter().eq((0..2 * COUNT as u64).map(|number| (number, SUCCESS))));
            let mut notices: Vec<_> = ends.events[1 - end].notices.drain(..).collect();
            notices.sort_unstable();
            assert!(notices.into_iter().eq(0..COUNT as u32));
            for number in 0..COUNT {
                let expected = vec![byte(end, number); LENGTH];
                assert!(memory[1 - end].bytes_of(number * LENGTH, LENGTH) == expected);
                let expected = vec![byte(1 - end, number); LENGTH];
                assert!(local[end].bytes_of((COUNT + number) * LENGTH, LENGTH) == expected);
            }
        }
    }
}

#[test]
fn more_reads_than_may_be_under_way_find_room_one_behind_the_other() {
    const COUNT: usize = 400;
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        let Some(long) = ends.rail(0).limits().long_bytes else { continue };
        let (memory, local) = (Memory::private(long), Memory::private(COUNT * long));
        memory.fill(0, &vec![7; long]);
        let key = ends.register(1, &memory, Access::REMOTE_READ);
        for number in 0..COUNT {
            let (rail, part) = (ends.rail(0), local.part(number * long, long));
            // SAFETY: the memory stays, and is used after the read.
            ends.with_room(|| unsafe { rail.read(1, part, &at(key, 0), number as u64) });
        }
        let ended = (0..COUNT).map(|_| ends.until(|events| events[0].completions.pop_front()));
        assert!(ended.into_iter().all(|(_, status)| status == SUCCESS));
        assert!(local.bytes() == vec![7; COUNT * long]);
    }
}

#[test]
fn an_operation_with_a_permit_needs_both_keys() {
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        let Some(long) = ends.rail(0).limits().long_bytes else { continue };
        let nothing = Memory::private(0);
        for is_write in [true, false] {
            let (memory, local) = (Memory::private(3 * MIB), Memory::private(3 * MIB));
            let (from, to) = if is_write { (&local, &memory) } else { (&memory, &local) };
            from.fill(0, &vec![9; 3 * MIB]);
            let key = ends.register(1, &memory, Access::ALL);
            let local_key = ends.register(0, &local, Access::LOCAL_WRITE);
            let other = if is_write { Access::REMOTE_READ } else { Access::REMOTE_WRITE };
            let [permit, other, closed] =
                [Access::ALL, other, Access::ALL].map(|access| ends.register(1, &nothing, access));
            ends.rail(1).deregister(&closed).unwrap();
            let closed_here = ends.register(0, &local, Access::ALL);
            ends.rail(0).deregister(&closed_here).unwrap();
            let mut post = |length, offset, permit: &RailKey, local_key: &RailKey| {
                let (rail, local) = (ends.rail(0), (local.part(0, length), local_key));
                let remote = at(key, offset);
                let posted = ends.with_room(|| {
                    if is_write {
                        // SAFETY: nobody changes the memory.
                        unsafe { rail.write_long(1, local, &remote, permit, 3) }
                    } else {
                        // SAFETY: nobody uses the memory.
                        unsafe { rail.read_long(1, local, &remote, permit, 3) }
                    }
                });
                posted.then(|| ends.until(|events| events[0].completions.pop_front()))
            };
            assert_eq!(post(long - 1, 0, &permit, &local_key), None);
            assert_eq!(post(long, 0, &permit, &closed_here), None);
            for (length, offset, permit) in [
                (MIB, 0, &other),
                (MIB, 0, &closed),
                (3 * MIB, 1, &permit),
                (long, (3 * MIB - long + 1) as u64, &permit),
                (long, u64::MAX, &permit),
            ] {
                assert_eq!(post(length, offset, permit, &local_key), Some((3, REFUSED)));
            }
            assert!(to.bytes().iter().all(|byte| *byte == 0));
            assert_eq!(post(3 * MIB, 0, &permit, &local_key), Some((3, SUCCESS)));
            assert!(memory.bytes() == local.bytes());
        }
    }
}

#[test]
fn nothing_is_read_once_a_key_is_deregistered_and_other_reads_go_on() {
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        let memory = [0, 1].map(|_| Memory::private(3 * MIB));
        memory.iter().for_each(|memory| memory.fill(0, &vec![9; 3 * MIB]));
        let keys = [0, 1].map(|nth| ends.register(1, &memory[nth], Access::ALL));
        let local = [0, 1].map(|_| Memory::private(3 * MIB));
        for nth in 0..2 {
            let (local, remote) = (local[nth].all(), at(keys[nth], 0));
            let posted = ends.post(0, false, local, &remote, None, nth as u64);
            assert_eq!(posted, Ok(Posted::UnderWay));
        }
        ends.rail(1).deregister(&keys[0]).unwrap();
        let mut ended: Vec<_> =
            (0..2).map(|_| ends.until(|events| events[0].completions.pop_front())).collect();
        ended.sort_unstable_by_key(|(context, _)| *context);
        assert_eq!(ended, [(0, REFUSED), (1, SUCCESS)]);
        assert!(local[0].bytes().iter().all(|byte| *byte == 0));
        assert!(local[1].bytes() == memory[1].bytes());
    }
}

#[test]
fn nothing_is_written_once_a_key_is_deregistered_and_other_writes_go_on() {
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        if ends.rail(0).limits().long_bytes.is_none() {
            continue;
        }
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
fn join(folder: &Path, process: u32, choice: &OfiChoice) -> OfiRail {
    let wire = |name: &str| SocketWire::join(&folder.join(name), process, 2, TIMEOUT).unwrap();
    let exchange = wire("exchange");
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let end = OfiEnd::open(choice, loopback, 2).unwrap();
    let mut addresses = [const { None }; 2];
    addresses[process as usize] = Some(end.address().unwrap());
    exchange.send(1 - process, end.address().unwrap());
    while addresses.contains(&None) || exchange.has_unsent() {
        exchange.poll(&mut |from, address| addresses[from as usize] = Some(address.to_vec()));
    }
    end.join(&addresses, wire("control"), 7, TIMEOUT).unwrap()
}

/// Starts this program again, as process 1. A library that is left in the middle of operations may
/// crash as it closes, and leaves a report in the current folder: that of the run, which is removed.
fn start(folder: &Path, provider: &str) -> Child {
    for name in ["exchange", "control"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "long_operations::child_that_writes_and_is_written_to", "--ignored"])
        .env(FOLDER, folder)
        .env(PROVIDER, provider)
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Memory of one end that the other writes to, and reads, for ever.
struct Writer {
    local: Memory,
    target: Memory,
    remote: Option<RailKey>,
    posted: u64,
    ended: Vec<CompletionStatus>,
    losses: Vec<LossReason>,
}

impl Writer {
    fn new() -> Self {
        let [local, target] = [0, 1].map(|_| Memory::private(LONG));
        local.fill(0, &vec![9; LONG]);
        Self { local, target, remote: None, posted: 0, ended: Vec::new(), losses: Vec::new() }
    }

    /// Posts a write or a read alternately, unless there is no room, and polls.
    fn go_on(&mut self, rail: &OfiRail) -> Result<(), RailError> {
        if let Some(key) = self.remote {
            let to = 1 - rail.process();
            let posted = if self.posted.is_multiple_of(2) {
                // SAFETY: the bytes stay until the rail has ended.
                unsafe { rail.write(to, self.local.all(), &at(key, 0), None, self.posted) }
            } else {
                // SAFETY: as above; nobody uses what is read.
                unsafe { rail.read(to, self.target.all(), &at(key, 0), self.posted) }
            };
            match posted {
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
    fn start(name: &str, provider: &str, writes: usize) -> Self {
        let name = format!("ibverbs-sim-long-{name}-{}", std::process::id());
        let folder = env::temp_dir().join(name);
        let child = start(&folder, provider);
        let rail = join(&folder, 0, &provider.parse().unwrap());
        let memory = Memory::private(LONG);
        // SAFETY: the memory stays until it is deregistered.
        let key = unsafe { rail.register(memory.all(), Access::ALL) }.unwrap();
        rail.send(1, key.as_bytes()).unwrap();
        let mut writer = Writer::new();
        while writer.ended.len() < writes || memory.bytes_of(LONG - 1, 1) != [9] {
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
        memory.fill(0, &vec![1; LONG]);
        writer.target.fill(0, &vec![1; LONG]);
    }

    /// Checks that nobody writes to memory that was given back.
    fn ends(mut self, reason: LossReason) {
        for _ in 0..20_000 {
            self.rail.poll(&mut |event| panic!("{event:?}"));
        }
        assert!(self.memory.bytes() == [1; LONG]);
        assert!(self.writer.target.bytes() == [1; LONG]);
        assert_eq!(self.writer.losses, [reason]);
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

/// Returns the providers, each with the numbers of its runs.
fn rounds() -> impl Iterator<Item = (String, usize)> {
    ofi::providers()
        .into_iter()
        .flat_map(|provider| (0..4).map(move |round| (provider.clone(), round)))
}

#[test]
fn a_process_that_is_killed_within_operations_ends_them_and_writes_nothing_afterwards() {
    for (provider, round) in rounds() {
        let mut run = Run::start(&format!("killed-{round}"), &provider, 20 * (round + 1));
        run.child.kill().unwrap();
        run.child.wait().unwrap();
        run.lose();
        run.ends(LossReason::Ended);
    }
}

#[test]
fn a_process_that_is_stopped_and_given_up_writes_nothing_once_it_goes_on() {
    for (provider, round) in rounds() {
        let mut run = Run::start(&format!("stopped-{round}"), &provider, 20 * (round + 1));
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
    let rail = join(&folder, 1, &env::var(PROVIDER).unwrap().parse().unwrap());
    let memory = Memory::private(LONG);
    // SAFETY: the memory stays until this process is killed.
    let key = unsafe { rail.register(memory.all(), Access::ALL) }.unwrap();
    rail.send(0, key.as_bytes()).unwrap();
    let mut writer = Writer::new();
    while writer.go_on(&rail).is_ok() {}
}
