use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use talpf_runtime::{Config as RuntimeConfig, Runtime};

use super::aftermath::Aftermath;
use super::cell::{Cell, INLINE, Kind, cells_of};
use super::job::Short;
use super::link::Link;
use super::polling::sleep;
use super::world::World;
use super::{Transport, Verbs};
use crate::config::Config;
use crate::matching::Key;
use crate::protocols::Protocols;
use crate::rank::{Rank, WorldRank};
use crate::tag::Tag;
use crate::transport::ContextId;

mod hostile_cells;

const KEY: Key = Key { context: ContextId(0), source: Rank(0), tag: Tag(0) };

/// Two ranks without polling tasks.
fn two_ranks() -> (Runtime, Arc<World>) {
    let runtime = Runtime::new(RuntimeConfig::default()).expect("a runtime");
    let groups = (0..2).map(|number| runtime.group("rank", number)).collect();
    let protocols = Protocols { eager: 40, lazy: 0, rtr: 2000 };
    let world = World::new(&Config::default(), protocols, groups).expect("a world");
    (runtime, world)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for `future`, and says whether it ended before `patience` had.
fn ends_within<F: Future>(patience: Duration, future: F) -> Option<F::Output> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    let start = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        let left = patience.checked_sub(start.elapsed())?;
        thread::park_timeout(left);
    }
}

/// The ends of the link from rank 0 to rank 1.
fn both_ends(world: &World) -> (&Link, &Link) {
    let link = world.link(WorldRank(0), WorldRank(1)).expect("a link");
    (link, world.link(WorldRank(1), WorldRank(0)).expect("its other end"))
}

fn send(world: &World, number: u64) -> Short {
    let (link, _) = both_ends(world);
    let bytes = number.to_ne_bytes();
    let sent = link.sender.lock().send_short(link, world.rank(WorldRank(0)), &KEY, &bytes);
    sent.expect("a write")
}

fn notify(world: &World, number: u64) {
    let (link, _) = both_ends(world);
    let sent = link.sender.lock().notify(link, world.rank(WorldRank(0)), Cell::done(number));
    sent.expect("a write");
}

/// The numbers of the cells that rank 1 finds, which tells rank 0 that they were taken.
fn take_all(world: &World) -> Vec<u64> {
    let (_, back) = both_ends(world);
    let ring = &mut world.rank(WorldRank(1)).inbox.lock().rings[0].ring;
    let mut numbers = Vec::new();
    while let Some(head) = ring.front() {
        if head.is_short() {
            let bytes = ring.short(head.length()).try_into().expect("a number");
            numbers.push(u64::from_ne_bytes(bytes));
            ring.take_short(&head);
            ring.released += 1;
            continue;
        }
        numbers.push(ring.cell().0[0]);
        let is_message = head.kind() == Some(Kind::Eager);
        let cells = if is_message { cells_of(head.length(), false) } else { 1 };
        ring.take(cells);
        ring.released += if is_message { cells as u64 } else { 0 };
    }
    let told = back.sender.lock().outlet.tell_credits(back, ring.head(), ring.released);
    told.expect("a write");
    numbers
}

fn write_collected(world: &World) {
    let mut after = Aftermath::default();
    world.rank(WorldRank(0)).write_collected(&mut after);
    assert!(after.is_empty());
}

/// Otherwise a bell of that peer could be taken as one of the others, and the polling task sleep with
/// messages in a ring that was made after that.
#[test]
fn a_peer_cannot_send_before_its_ring_is_where_bells_are_taken() {
    let (_runtime, world) = two_ranks();
    let (here, there) = (world.rank(WorldRank(0)), world.rank(WorldRank(1)));
    // A task takes bells.
    let inbox = here.inbox.lock();
    thread::scope(|scope| {
        let maker = scope.spawn(|| world.link(WorldRank(0), WorldRank(1)).is_ok());
        let patience = Instant::now() + Duration::from_millis(200);
        while there.link(WorldRank(0)).is_none() && Instant::now() < patience {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(there.link(WorldRank(0)).is_none() || inbox.rings.len() == 1);
        drop(inbox);
        assert!(maker.join().expect("no panic"));
    });
    assert!(there.link(WorldRank(0)).is_some() && here.inbox.lock().rings.len() == 1);
}

#[test]
fn the_first_message_of_a_turn_leaves_at_once_and_the_others_together() {
    let (_runtime, world) = two_ranks();
    assert!(matches!(send(&world, 0), Short::Sent));
    assert_eq!(take_all(&world), [0]);
    assert!(matches!(send(&world, 1), Short::Collected));
    assert!(matches!(send(&world, 2), Short::Sent));
    assert_eq!(take_all(&world), []);
    write_collected(&world);
    assert_eq!(take_all(&world), [1, 2]);
    assert!(!world.rank(WorldRank(0)).is_collecting());
    world.rank(WorldRank(0)).next_turn();
    assert!(matches!(send(&world, 3), Short::Sent));
    assert_eq!(take_all(&world), [3]);
}

#[test]
fn the_polling_task_writes_what_nobody_adds_to() {
    let (_runtime, world) = two_ranks();
    let rank = world.rank(WorldRank(0));
    let mut after = Aftermath::default();
    send(&world, 0);
    send(&world, 1);
    rank.write_unchanged(&mut after);
    send(&world, 2);
    rank.write_unchanged(&mut after);
    assert_eq!(take_all(&world), [0]);
    rank.write_unchanged(&mut after);
    assert_eq!(take_all(&world), [1, 2]);
    assert!(!rank.is_collecting() && after.is_empty());
}

#[test]
fn nothing_is_collected_while_the_polling_task_sleeps() {
    let (_runtime, world) = two_ranks();
    let rank = world.rank(WorldRank(0));
    rank.poller.falls_asleep();
    assert!(matches!(send(&world, 0), Short::Sent));
    assert_eq!(take_all(&world), [0]);
    for number in 1..3 {
        assert!(matches!(send(&world, number), Short::Alone));
        assert_eq!(take_all(&world), [number]);
    }
    assert!(!rank.is_collecting());
}

#[test]
fn what_is_collected_is_forgotten_when_the_run_fails() {
    let (_runtime, world) = two_ranks();
    for number in 0..3 {
        send(&world, number);
    }
    world.fail(crate::error::Error::Abandoned);
    assert!(!world.rank(WorldRank(0)).is_collecting());
    write_collected(&world);
    assert_eq!(take_all(&world), [0]);
}

#[test]
fn messages_that_follow_each_other_share_cells() {
    let (_runtime, world) = two_ranks();
    // Alone, then five to a cell.
    for number in 0..12 {
        send(&world, number);
    }
    let (link, _) = both_ends(&world);
    assert_eq!(link.sender.lock().outlet.tail(), 1 + 3);
    write_collected(&world);
    assert_eq!(take_all(&world), (0..12).collect::<Vec<_>>());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Short,
    Split(usize),
    Notice,
    Turn,
    Write,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Short),
        1 => (INLINE + 1..600).prop_map(Step::Split),
        1 => Just(Step::Notice),
        1 => Just(Step::Turn),
        1 => Just(Step::Write),
    ]
}

#[test]
fn cells_arrive_in_the_order_in_which_they_were_sent() {
    let (_runtime, world) = two_ranks();
    let (link, _) = both_ends(&world);
    let rank = world.rank(WorldRank(0));
    // The ring goes round from case to case.
    let sent = std::cell::Cell::new(0);
    proptest!(|(steps in prop::collection::vec(step(), 1..100))| {
        let mut under_way = std::collections::VecDeque::new();
        for step in steps {
            let next = sent.get();
            match step {
                Step::Turn => rank.next_turn(),
                Step::Write => write_collected(&world),
                Step::Short => {
                    send(&world, next);
                }
                Step::Notice => notify(&world, next),
                Step::Split(length) => {
                    let mut first = Cell::of_message(Kind::Eager, &KEY, length as u32);
                    first.0[0] = next;
                    let (bytes, cells) = (vec![0xff; length], cells_of(length, false));
                    let mut sender = link.sender.lock();
                    sender.outlet.write_split(link, first, &bytes, cells).expect("a write");
                }
            }
            if !matches!(step, Step::Turn | Step::Write) {
                under_way.push_back(next);
                sent.set(next + 1);
            }
            for number in take_all(&world) {
                prop_assert_eq!(under_way.pop_front(), Some(number));
            }
            // Only short messages wait, and not many.
            prop_assert!(under_way.is_empty() || matches!(step, Step::Short | Step::Turn));
            prop_assert!(under_way.len() < 16);
            prop_assert_eq!(rank.is_collecting(), !under_way.is_empty());
        }
        write_collected(&world);
        prop_assert_eq!(take_all(&world), Vec::from(under_way));
    });
}

#[test]
fn a_rank_that_sleeps_wakes_for_a_message_whoever_looks_for_it() {
    const ROUNDS: u32 = 10_000;
    let (_runtime, world) = two_ranks();
    both_ends(&world);
    let sleeper = Verbs { world: Arc::clone(&world), rank: WorldRank(1) };
    let (begin, middle) = (Barrier::new(3), Barrier::new(2));
    let taken = || sleeper.state().inbox.lock().rings[0].ring.head();
    let pause = |turns| (0..turns).for_each(|_| std::hint::spin_loop());
    thread::scope(|scope| {
        // A task of the same rank looks until the first message is there, whoever takes it.
        scope.spawn(|| {
            for round in 0..ROUNDS {
                begin.wait();
                while taken() <= 2 * u64::from(round) {
                    sleeper.progress();
                }
                middle.wait();
            }
        });
        // Only the sleeper can take the second one.
        scope.spawn(|| {
            for round in 0..ROUNDS {
                begin.wait();
                pause(round % 61);
                notify(&world, u64::MAX);
                middle.wait();
                notify(&world, u64::MAX);
            }
        });
        let mut slept_through = false;
        for round in 0..ROUNDS {
            begin.wait();
            while taken() < 2 * u64::from(round + 1) {
                if slept_through {
                    sleeper.progress();
                } else {
                    let woken = ends_within(Duration::from_secs(60), sleep(&sleeper));
                    slept_through = woken.is_none_or(|woken| woken.is_err());
                }
            }
        }
        assert!(!slept_through);
    });
}

#[test]
fn what_a_thread_writes_is_there_when_it_goes_on() {
    let (_runtime, world) = two_ranks();
    let (link, back) = both_ends(&world);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                link.sender.lock().outlet.tell_credits(link, 0, 0).expect("a write");
            }
        });
        let mut late = 0;
        for number in 0..100_000 {
            let notice = Cell::done(number);
            let sent = link.sender.lock().notify(link, world.rank(WorldRank(0)), notice);
            sent.expect("a write");
            let ring = &mut world.rank(WorldRank(1)).inbox.lock().rings[0].ring;
            late += u32::from(ring.front().is_none());
            while ring.front().is_none() {
                std::thread::yield_now();
            }
            ring.take(1);
            let told = back.sender.lock().outlet.tell_credits(back, ring.head(), 0);
            told.expect("a write");
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(late, 0);
    });
}

/// The numbers of cells go round at 2^32, where credits and stamps have 32 bits.
#[test]
fn cells_arrive_once_where_their_numbers_go_round() {
    let (_runtime, world) = two_ranks();
    let (link, back) = both_ends(&world);
    // The place of the last cell before that is still as it was made.
    let start = u64::from(u32::MAX) - 100;
    let rank = world.rank(WorldRank(1));
    rank.inbox.lock().rings[0].ring.skip_to(start);
    link.sender.lock().outlet.skip_to(start);
    back.sender.lock().outlet.tell_credits(back, start, 0).expect("a write");
    for number in start..start + 600 {
        let ring = &mut rank.inbox.lock().rings[0].ring;
        assert!(ring.front().is_none(), "a cell before cell {number} is written");
        let notice = Cell::done(number);
        let sent = link.sender.lock().notify(link, world.rank(WorldRank(0)), notice);
        sent.expect("a write");
        assert!(ring.front().is_some(), "cell {number}");
        assert_eq!(ring.cell().0[0], number);
        ring.take(1);
        back.sender.lock().outlet.tell_credits(back, ring.head(), 0).expect("a write");
    }
}
