//! Memory that is taken back while long operations use it, and other operations meanwhile.
#![allow(unsafe_code, reason = "memory of tests is registered and written")]

use ibverbs_sim::{Access, CompletionStatus, OfiRail, Rail, RailError, RailEvent, RailKey};

use super::{
    ends::{Ends, Memory, at},
    ofi,
};

const SUCCESS: CompletionStatus = CompletionStatus::Success;
const MIB: usize = 1 << 20;
const LENGTH: usize = 3 * MIB;
/// Byte of memory that belongs to somebody else.
const OTHER: u8 = 5;

/// Ways in which process 0 takes memory back that process 1 reads.
#[derive(Clone, Copy, Debug)]
enum Way {
    Cancel,
    Deregister,
    GiveUp,
}

/// Rails of three processes, and the completions and losses of each.
struct Rails {
    rails: Vec<OfiRail>,
    completions: [Vec<(u64, CompletionStatus)>; 3],
    losses: [Vec<u32>; 3],
}

impl Rails {
    fn poll(&mut self) {
        for (nth, rail) in self.rails.iter().enumerate() {
            rail.poll(&mut |event| match event {
                RailEvent::Completed { context, status } => {
                    self.completions[nth].push((context, status));
                }
                RailEvent::Lost { process, .. } => self.losses[nth].push(process),
                other => panic!("{other:?}"),
            });
        }
    }

    fn until(&mut self, found: impl Fn(&Self) -> bool) {
        for _ in 0..10_000_000 {
            if found(self) {
                return;
            }
            self.poll();
        }
        panic!("nothing comes");
    }

    /// Posts an operation of a process, once there is room.
    fn with_room(&mut self, process: usize, post: impl Fn(&OfiRail) -> Result<bool, RailError>) {
        loop {
            match post(&self.rails[process]) {
                Err(RailError::NoRoom { .. }) => self.poll(),
                posted => return assert_eq!(posted, Ok(true)),
            }
        }
    }

    fn register(&self, process: usize, memory: &Memory) -> RailKey {
        // SAFETY: the memory outlives the rails, or is deregistered.
        unsafe { self.rails[process].register(memory.all(), Access::ALL) }.unwrap()
    }
}

#[test]
fn operations_with_other_processes_go_on_once_memory_is_taken_back() {
    for provider in ofi::providers() {
        for (way, polls) in [Way::Cancel, Way::Deregister, Way::GiveUp]
            .into_iter()
            .flat_map(|way| [0, 1, 3, 9, 27].map(|polls| (way, polls)))
        {
            println!("{provider}, {way:?} after {polls} polls");
            goes_on(&provider, way, polls);
        }
    }
}

/// Writes from process 0 to processes 1 and 2, reads from it by 2, and takes what goes to 1 back after so many polls.
fn goes_on(provider: &str, way: Way, polls: usize) {
    let memory: [Memory; 6] = std::array::from_fn(|_| Memory::private(LENGTH));
    let [to_1, to_2, source, at_1, at_2, read] = &memory;
    let rails = OfiRail::mesh(3, &ofi::choice(provider)).unwrap();
    let mut all = Rails { rails, completions: Default::default(), losses: Default::default() };
    if all.rails[0].limits().long_bytes.is_none() {
        return;
    }
    for (number, memory) in (10..).zip([to_1, to_2, source]) {
        memory.fill(0, &vec![number; LENGTH]);
    }
    let nothing = Memory::private(0);
    let targets = [(1, at_1), (2, at_2)].map(|(process, memory)| all.register(process, memory));
    let permits = [1, 2, 0].map(|process| all.register(process, &nothing));
    let local = [to_1, to_2].map(|memory| all.register(0, memory));
    for (nth, memory) in [to_1, to_2].into_iter().enumerate() {
        let (to, from) = (nth as u32 + 1, (memory.all(), &local[nth]));
        let (target, permit) = (at(targets[nth], 0), &permits[nth]);
        // SAFETY: the memory is changed once it was taken back, or the write has ended.
        let post =
            |rail: &OfiRail| unsafe { rail.write_long(to, from, &target, permit, u64::from(to)) };
        all.with_room(0, post);
    }
    let (source_key, read_key) = (all.register(0, source), all.register(2, read));
    let (from, into) = (at(source_key, 0), (read.all(), &read_key));
    // SAFETY: the memory is used once the read has ended.
    all.with_room(2, |rail| unsafe { rail.read_long(0, into, &from, &permits[2], 9) });
    (0..polls).for_each(|_| all.poll());
    match way {
        Way::Cancel => all.rails[0].cancel_long(1, 1),
        Way::Deregister => all.rails[0].deregister(&local[0]).unwrap(),
        Way::GiveUp => {
            all.rails[0].give_up(1);
            all.until(|all| all.losses[0] == [1]);
        }
    }
    to_1.fill(0, &vec![OTHER; LENGTH]);
    all.until(|all| all.completions[0].contains(&(2, SUCCESS)));
    all.until(|all| all.completions[2].contains(&(9, SUCCESS)));
    (0..2_000).for_each(|_| all.poll());
    assert!(at_2.bytes() == to_2.bytes() && read.bytes() == source.bytes());
    assert!(!at_1.bytes().contains(&OTHER), "read after it was taken back");
    let of_1: Vec<_> = all.completions[0].iter().filter(|(context, _)| *context == 1).collect();
    assert!(of_1.len() <= 1, "{of_1:?}");
}

/// Returns memory for two operations: that of process 1, with its keys, and that of process 0.
fn memory_of_two(
    ends: &mut Ends,
    length: usize,
) -> ([Memory; 2], [RailKey; 2], [(Memory, RailKey); 2]) {
    let remote = [0, 1].map(|_| Memory::private(length));
    let keys = [0, 1].map(|nth| ends.register(1, &remote[nth], Access::ALL));
    let local = [0, 1].map(|_| {
        let memory = Memory::private(length);
        let key = ends.register(0, &memory, Access::LOCAL_WRITE);
        (memory, key)
    });
    (remote, keys, local)
}

/// Posts operations of 6 MiB, of more pieces than are under way at a time, and polls so often.
fn begin_two(
    ends: &mut Ends,
    is_write: bool,
    local: &[(Memory, RailKey); 2],
    remote: [RailKey; 2],
    polls: usize,
) {
    let permit = ends.register(1, &Memory::private(0), Access::ALL);
    for (context, (memory, key)) in (0..).zip(local) {
        let (rail, at) = (ends.rail(0), at(remote[context as usize], 0));
        let local = (memory.all(), key);
        let posted = ends.with_room(|| {
            if is_write {
                // SAFETY: the tests use the memory after the operation.
                unsafe { rail.write_long(1, local, &at, &permit, context) }
            } else {
                // SAFETY: as above.
                unsafe { rail.read_long(1, local, &at, &permit, context) }
            }
        });
        assert!(posted);
    }
    (0..polls).for_each(|_| ends.poll());
}

#[test]
fn memory_of_an_operation_is_not_used_once_it_is_cancelled_or_its_own_key_closed() {
    const LENGTH: usize = 6 * MIB;
    for provider in ofi::providers() {
        for (is_write, closes) in [(true, true), (true, false), (false, true), (false, false)] {
            println!("{provider}, {is_write}, {closes}");
            let mut ends = Ends::new(ofi::pair(&provider));
            if ends.rail(0).limits().long_bytes.is_none() {
                continue;
            }
            let (remote, keys, local) = memory_of_two(&mut ends, LENGTH);
            for nth in 0..2 {
                let (from, to) = (&local[nth].0, &remote[nth]);
                let (from, to) = if is_write { (from, to) } else { (to, from) };
                from.fill(0, &vec![9; LENGTH]);
                to.fill(0, &vec![1; LENGTH]);
            }
            begin_two(&mut ends, is_write, &local, keys, 3);
            if closes {
                ends.rail(0).deregister(&local[0].1).unwrap();
            } else {
                ends.rail(0).cancel_long(1, 0);
                // A second time, and one that there is not.
                ends.rail(0).cancel_long(1, 0);
                ends.rail(0).cancel_long(1, 77);
            }
            // The memory belongs to somebody else now.
            local[0].0.fill(0, &vec![5; LENGTH]);
            let mut ended = Vec::new();
            while !ended.contains(&(1, SUCCESS)) {
                ended.push(ends.until(|events| events[0].completions.pop_front()));
            }
            (0..20_000).for_each(|_| ends.poll());
            ended.extend(ends.events[0].completions.drain(..));
            ended.sort_unstable_by_key(|(context, _)| *context);
            let closed = (0, CompletionStatus::LocalProtection);
            let expected = if closes { vec![closed, (1, SUCCESS)] } else { vec![(1, SUCCESS)] };
            assert_eq!(ended, expected);
            assert!(local[0].0.bytes() == [5; LENGTH]);
            assert!(!remote[0].bytes().contains(&5));
            assert!(local[1].0.bytes() == remote[1].bytes());
            // As many operations as before find room.
            for _ in 0..70 {
                let part = local[1].0.part(0, MIB);
                let status = ends.carry_out(0, is_write, part, at(keys[1], 0), None);
                assert_eq!(status, SUCCESS);
            }
            // Before the memory, which is registered.
            drop(ends);
        }
    }
}

#[test]
fn reads_bring_all_bytes_after_one_was_cancelled_while_its_bytes_arrived() {
    const LENGTH: usize = 6 * MIB;
    /// Bytes that the rail reads at once.
    const PIECE: usize = MIB / 2;
    for provider in ofi::providers() {
        println!("{provider}");
        let mut ends = Ends::new(ofi::pair(&provider));
        if ends.rail(0).limits().long_bytes.is_none() {
            continue;
        }
        let (remote, keys, local) = memory_of_two(&mut ends, LENGTH);
        for byte in 1..=16 {
            remote.iter().for_each(|memory| memory.fill(0, &vec![byte; LENGTH]));
            begin_two(&mut ends, false, &local, keys, 0);
            let is_there = |at| local[0].0.bytes_of(at, 1) == [byte];
            let arrives = |piece| is_there(piece * PIECE) && !is_there((piece + 1) * PIECE - 1);
            while !is_there(LENGTH - 1) && !(0..LENGTH / PIECE).any(arrives) {
                ends.poll();
            }
            ends.rail(0).cancel_long(1, 0);
            local[0].0.fill(0, &vec![99; LENGTH]);
            while ends.until(|events| events[0].completions.pop_front()) != (1, SUCCESS) {}
            assert!(local[1].0.bytes() == vec![byte; LENGTH]);
            assert!(local[0].0.bytes() == vec![99; LENGTH]);
        }
        // Before the memory, which is registered.
        drop(ends);
    }
}
