//! Memory that is taken back while a process reads it, and operations with other processes meanwhile.
#![allow(unsafe_code, reason = "memory of tests is registered and written")]

use ibverbs_sim::{Access, CompletionStatus, OfiRail, Rail, RailError, RailEvent, RailKey};

use super::{
    ends::{Memory, at},
    ofi,
};

const LENGTH: usize = 3 << 20;
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
    const SUCCESS: CompletionStatus = CompletionStatus::Success;
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
