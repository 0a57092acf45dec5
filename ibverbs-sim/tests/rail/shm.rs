//! The rail through shared memory, between ends of one process.

use std::{sync::Arc, thread};

use ibverbs_sim::{Access, Armed, Rail, RailEvent, ShmConfig, ShmRail};

use super::{
    conformance, counting_allocator,
    ends::{Ends, Memory, at},
};

/// Makes two rails, with room for segments of 64 MiB each.
pub(crate) fn pair() -> [Arc<ShmRail>; 2] {
    with_kernel_copies(true)
}

fn with_kernel_copies(kernel_copies: bool) -> [Arc<ShmRail>; 2] {
    let mut config = ShmConfig::default();
    config.segment_bytes = 64 << 20;
    config.kernel_copies = kernel_copies;
    let rails: Vec<_> = ShmRail::mesh(2, &config).unwrap().into_iter().map(Arc::new).collect();
    rails.try_into().unwrap_or_else(|_| panic!("two rails"))
}

fn ends(rails: &[Arc<ShmRail>; 2]) -> Ends {
    Ends::new(rails.each_ref().map(|rail| Arc::clone(rail) as Arc<dyn Rail>))
}

fn segments(rails: &[Arc<ShmRail>; 2]) -> Ends {
    let mut ends = ends(rails);
    ends.memory = rails.each_ref().map(|rail| {
        let rail = Arc::clone(rail);
        Box::new(move |bytes| segment(&rail, bytes)) as Box<dyn Fn(usize) -> Memory + Send + Sync>
    });
    ends
}

pub(crate) fn segment(rail: &ShmRail, bytes: usize) -> Memory {
    let segment = rail.allocate(bytes).unwrap();
    Memory::new(segment.memory(), segment)
}

#[test]
fn segments_keep_the_rules_of_rails() {
    conformance::all(&mut segments(&pair()));
}

#[test]
fn memory_that_is_no_segment_keeps_the_rules_of_rails() {
    conformance::all(&mut ends(&pair()));
}

#[test]
fn memory_that_the_kernel_does_not_copy_keeps_the_rules_of_rails() {
    conformance::all(&mut ends(&with_kernel_copies(false)));
    conformance::all(&mut segments(&with_kernel_copies(false)));
}

/// More than one call of the kernel names.
#[test]
fn peers_that_end_together_are_all_lost() {
    let mut config = ShmConfig::default();
    config.segment_bytes = 1 << 20;
    let mut rails = ShmRail::mesh(19, &config).unwrap();
    let first = rails.remove(0);
    drop(rails);
    let mut lost = Vec::new();
    while lost.len() < 18 {
        first.poll(&mut |event| match event {
            RailEvent::Lost { process, .. } => lost.push(process),
            event => panic!("{event:?}"),
        });
    }
    lost.sort_unstable();
    assert_eq!(lost, Vec::from_iter(1..19));
}

#[test]
fn operations_by_messages_end_with_the_loss_of_their_peer() {
    let mut ends = ends(&with_kernel_copies(false));
    conformance::the_loss_of_a_peer_ends_what_is_under_way(&mut ends);
}

#[test]
fn the_end_of_a_rail_is_the_loss_of_its_process() {
    let mut ends = segments(&pair());
    conformance::the_loss_of_a_peer_ends_what_is_under_way(&mut ends);
}

#[test]
fn a_segment_is_zero_and_its_room_is_used_again() {
    let [rail, _] = pair();
    let half = 40 << 20;
    for _ in 0..3 {
        let memory = segment(&rail, half);
        assert!(memory.bytes().iter().all(|byte| *byte == 0));
        memory.fill(0, &vec![1; half]);
        let refused = rail.allocate(half).err().unwrap().to_string();
        assert!(refused.contains("41943040 bytes: 25165824 of the 67108864"), "{refused}");
    }
    assert!(rail.allocate(64 << 20).is_ok());
    assert!(rail.allocate((64 << 20) + 1).is_err());
    assert!(rail.allocate(usize::MAX).is_err());
    let parts: Vec<_> = (0..16).map(|_| rail.allocate(4 << 20).unwrap()).collect();
    assert!(rail.allocate(1).is_err());
    drop(parts);
    assert!(rail.allocate(64 << 20).is_ok());
}

#[test]
fn a_rail_of_no_such_process_is_refused() {
    let config = ShmConfig::default();
    let run = format!("nobody-{}", std::process::id());
    let refused = ShmRail::join(&run, 2, 2, std::time::Duration::ZERO, &config);
    assert!(refused.err().unwrap().to_string().contains("process 2 of 2"));
}

#[test]
fn operations_allocate_nothing() {
    let rails = pair();
    let memory = segment(&rails[1], 1 << 16);
    let local = Memory::private(1 << 16);
    let ends = segments(&rails);
    let key = ends.register(1, &memory, Access::ALL);
    let one_of_each = || {
        rails[0].send(1, &[1; 5000]).unwrap();
        for length in [8, 1 << 16] {
            ends.post(0, true, local.part(0, length), &at(key, 0), Some(1), 0).unwrap();
            ends.post(0, false, local.part(0, length), &at(key, 0), None, 0).unwrap();
        }
        let mut count = 0;
        rails[1].poll(&mut |event| {
            count +=
                usize::from(matches!(event, RailEvent::Message { .. } | RailEvent::Notice { .. }));
        });
        assert_eq!(count, 3);
    };
    // Debug builds of locks note where they were taken, in lists that grow once.
    one_of_each();
    assert_eq!(counting_allocator::peak_during(|| (0..2000).for_each(|_| one_of_each())), 0);
    rails[1].deregister(&key).unwrap();
}

#[test]
fn bytes_are_there_when_their_notice_is() {
    const COUNT: u32 = 20_000;
    let rails = pair();
    let memory = segment(&rails[1], 8 * 64);
    let ends = segments(&rails);
    let key = ends.register(1, &memory, Access::ALL);
    thread::scope(|scope| {
        scope.spawn(|| {
            let local = Memory::private(8);
            for number in 0..COUNT {
                // At most 32 of the 64 words are under way.
                local.fill(0, &u64::from(number).to_ne_bytes());
                let remote = at(key, u64::from(number % 64) * 8);
                while ends.post(0, true, local.all(), &remote, Some(number), 0).is_err() {
                    thread::yield_now();
                }
                if number % 32 == 31 {
                    while rails[0].poll(&mut |_| ()) == 0 {
                        thread::yield_now();
                    }
                }
            }
        });
        let mut next = 0;
        while next < COUNT {
            let mut answers = 0;
            let polled = rails[1].poll(&mut |event| {
                let RailEvent::Notice { notice, .. } = event else { panic!("{event:?}") };
                assert_eq!(notice, next);
                let word = memory.bytes_of((next % 64) as usize * 8, 8);
                assert_eq!(word, u64::from(next).to_ne_bytes());
                next += 1;
                answers += u32::from(next % 32 == 0);
            });
            for _ in 0..answers {
                rails[1].send(0, b"taken").unwrap();
            }
            if polled == 0 {
                thread::yield_now();
            }
        }
    });
    rails[1].deregister(&key).unwrap();
}

#[test]
fn nobody_writes_to_memory_that_was_deregistered() {
    let rails = pair();
    let memory = segment(&rails[1], 4096 * 8);
    let ends = segments(&rails);
    thread::scope(|scope| {
        let (keys, next) = std::sync::mpsc::channel();
        let (rails, ends) = (&rails, &ends);
        scope.spawn(move || {
            let local = Memory::private(4096 * 8);
            local.fill(0, &[1; 4096 * 8]);
            while let Ok(key) = next.recv() {
                for length in [8, 4096 * 8, 64, 4096] {
                    ends.post(0, true, local.part(0, length), &at(key, 0), None, 0).unwrap();
                }
            }
        });
        for _ in 0..2000 {
            let key = ends.register(1, &memory, Access::ALL);
            keys.send(key).unwrap();
            if keys.send(key).is_ok() {
                thread::yield_now();
            }
            rails[1].deregister(&key).unwrap();
            memory.fill(0, &[0; 4096 * 8]);
            for _ in 0..3 {
                assert!(memory.bytes().iter().all(|byte| *byte == 0));
            }
        }
        drop(keys);
    });
}

#[test]
fn a_rail_that_has_something_is_ready_and_does_not_sleep() {
    let [a, b] = pair();
    assert!(matches!(b.arm(), Armed::Descriptor(_)));
    assert_eq!(b.poll(&mut |_| ()), 0);
    a.send(1, b"x").unwrap();
    assert!(matches!(b.arm(), Armed::Ready));
    assert_eq!(b.poll(&mut |_| ()), 1);
}
