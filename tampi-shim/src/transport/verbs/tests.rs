use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use talpf_runtime::service::sleep;
use talpf_runtime::{Config as RuntimeConfig, Runtime};

use super::cell::{Cell, CellKind, INLINE, cells_of};
use super::deferred::DeferredActions;
use super::link::Link;
use super::polling::Poller;
use super::send_request::ShortSend;
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

/// Waits for `future`. Returns its output if it ends within `patience`.
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

/// Returns both ends of the link between ranks 0 and 1.
fn both_ends(world: &World) -> (&Link, &Link) {
    let link = world.link(WorldRank(0), WorldRank(1)).expect("a link");
    (link, world.link(WorldRank(1), WorldRank(0)).expect("its other end"))
}

fn send(world: &World, number: u64) -> ShortSend {
    let (link, _) = both_ends(world);
    let bytes = number.to_ne_bytes();
    let sent = link.sender.lock().send_short(link, world.rank(WorldRank(0)), &KEY, &bytes);
    sent.expect("a write")
}

fn notify(world: &World, number: u64) {
    let (link, _) = both_ends(world);
    let sent = link.sender.lock().notify(link, world.rank(WorldRank(0)), Cell::fin_send(number));
    sent.expect("a write");
}

/// Takes the cells that have arrived at rank 1, reports them to rank 0, and returns their numbers.
fn take_all(world: &World) -> Vec<u64> {
    let (_, back) = both_ends(world);
    let ring = &mut world.rank(WorldRank(1)).inbox.lock().rings[0].ring;
    let mut numbers = Vec::new();
    while let Some(head) = ring.peek() {
        if head.is_short() {
            let bytes = ring.short(head.length()).try_into().expect("a number");
            numbers.push(u64::from_ne_bytes(bytes));
            ring.take_short(&head);
            ring.released += 1;
            continue;
        }
        numbers.push(ring.cell().0[0]);
        let is_message = head.kind() == Some(CellKind::Eager);
        let cells = if is_message { cells_of(head.length(), false) } else { 1 };
        ring.take(cells);
        ring.released += if is_message { cells as u64 } else { 0 };
    }
    let reported = back.sender.lock().writer.report_credits(back, ring.head(), ring.released);
    reported.expect("a write");
    numbers
}

fn write_batch(world: &World) {
    let mut deferred = DeferredActions::default();
    world.rank(WorldRank(0)).write_batch(&mut deferred);
    assert!(deferred.is_empty());
}

/// Otherwise a doorbell of that peer could be taken as one of another, and the polling task could
/// sleep with messages in a ring that was created later.
#[test]
fn a_peer_cannot_send_before_its_ring_is_where_doorbells_are_taken() {
    let (_runtime, world) = two_ranks();
    let (here, there) = (world.rank(WorldRank(0)), world.rank(WorldRank(1)));
    // As a task that takes doorbells does.
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
fn the_first_message_of_a_burst_is_posted_at_once_and_the_others_together() {
    let (_runtime, world) = two_ranks();
    assert!(matches!(send(&world, 0), ShortSend::Sent));
    assert_eq!(take_all(&world), [0]);
    assert!(matches!(send(&world, 1), ShortSend::BatchOpened));
    assert!(matches!(send(&world, 2), ShortSend::Sent));
    assert_eq!(take_all(&world), []);
    write_batch(&world);
    assert_eq!(take_all(&world), [1, 2]);
    assert!(!world.rank(WorldRank(0)).is_batching());
    world.rank(WorldRank(0)).end_burst();
    assert!(matches!(send(&world, 3), ShortSend::Sent));
    assert_eq!(take_all(&world), [3]);
}

#[test]
fn the_polling_task_writes_a_batch_that_nobody_adds_to() {
    let (_runtime, world) = two_ranks();
    let rank = world.rank(WorldRank(0));
    let mut deferred = DeferredActions::default();
    send(&world, 0);
    send(&world, 1);
    rank.write_idle_batch(&mut deferred);
    send(&world, 2);
    rank.write_idle_batch(&mut deferred);
    assert_eq!(take_all(&world), [0]);
    rank.write_idle_batch(&mut deferred);
    assert_eq!(take_all(&world), [1, 2]);
    assert!(!rank.is_batching() && deferred.is_empty());
}

#[test]
fn nothing_is_batched_while_the_polling_task_sleeps() {
    let (_runtime, world) = two_ranks();
    let rank = world.rank(WorldRank(0));
    rank.poller.announce();
    assert!(matches!(send(&world, 0), ShortSend::Sent));
    assert_eq!(take_all(&world), [0]);
    for number in 1..3 {
        assert!(matches!(send(&world, number), ShortSend::Alone));
        assert_eq!(take_all(&world), [number]);
    }
    assert!(!rank.is_batching());
}

#[test]
fn a_batch_is_dropped_when_the_run_fails() {
    let (_runtime, world) = two_ranks();
    for number in 0..3 {
        send(&world, number);
    }
    world.fail(crate::error::Error::Abandoned);
    assert!(!world.rank(WorldRank(0)).is_batching());
    write_batch(&world);
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
    assert_eq!(link.sender.lock().writer.tail(), 1 + 3);
    write_batch(&world);
    assert_eq!(take_all(&world), (0..12).collect::<Vec<_>>());
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Short,
    Split(usize),
    Control,
    EndBurst,
    WriteBatch,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => Just(Action::Short),
        1 => (INLINE + 1..600).prop_map(Action::Split),
        1 => Just(Action::Control),
        1 => Just(Action::EndBurst),
        1 => Just(Action::WriteBatch),
    ]
}

#[test]
fn cells_arrive_in_the_order_in_which_they_were_sent() {
    let (_runtime, world) = two_ranks();
    let (link, _) = both_ends(&world);
    let rank = world.rank(WorldRank(0));
    // The position in the ring changes from case to case.
    let sent = std::cell::Cell::new(0);
    proptest!(|(actions in prop::collection::vec(action(), 1..100))| {
        let mut under_way = std::collections::VecDeque::new();
        for action in actions {
            let next = sent.get();
            match action {
                Action::EndBurst => rank.end_burst(),
                Action::WriteBatch => write_batch(&world),
                Action::Short => {
                    send(&world, next);
                }
                Action::Control => notify(&world, next),
                Action::Split(length) => {
                    let mut first = Cell::of_message(CellKind::Eager, &KEY, length as u32);
                    first.0[0] = next;
                    let (bytes, cells) = (vec![0xff; length], cells_of(length, false));
                    let mut sender = link.sender.lock();
                    sender.writer.write_split(link, first, &bytes, cells).expect("a write");
                }
            }
            if !matches!(action, Action::EndBurst | Action::WriteBatch) {
                under_way.push_back(next);
                sent.set(next + 1);
            }
            for number in take_all(&world) {
                prop_assert_eq!(under_way.pop_front(), Some(number));
            }
            // Only short messages wait, and not many.
            prop_assert!(under_way.is_empty() || matches!(action, Action::Short | Action::EndBurst));
            prop_assert!(under_way.len() < 16);
            prop_assert_eq!(rank.is_batching(), !under_way.is_empty());
        }
        write_batch(&world);
        prop_assert_eq!(take_all(&world), Vec::from(under_way));
    });
}

#[test]
fn a_rank_that_sleeps_wakes_for_a_message_whoever_polls_for_it() {
    const ROUNDS: u32 = 10_000;
    let (_runtime, world) = two_ranks();
    both_ends(&world);
    let sleeper = Arc::new(Verbs { world: Arc::clone(&world), rank: WorldRank(1) });
    let poller = Poller(Arc::clone(&sleeper));
    let (begin, middle) = (Barrier::new(3), Barrier::new(2));
    let taken = || sleeper.state().inbox.lock().rings[0].ring.head();
    let pause = |spins| (0..spins).for_each(|_| std::hint::spin_loop());
    thread::scope(|scope| {
        // A task of the same rank polls until the first message is there, whoever takes it.
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
                    let woken = ends_within(Duration::from_secs(60), sleep(&poller));
                    slept_through = woken.is_none() || world.has_failed();
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
                link.sender.lock().writer.report_credits(link, 0, 0).expect("a write");
            }
        });
        let mut late = 0;
        for number in 0..100_000 {
            let notice = Cell::fin_send(number);
            let sent = link.sender.lock().notify(link, world.rank(WorldRank(0)), notice);
            sent.expect("a write");
            let ring = &mut world.rank(WorldRank(1)).inbox.lock().rings[0].ring;
            late += u32::from(ring.peek().is_none());
            while ring.peek().is_none() {
                std::thread::yield_now();
            }
            ring.take(1);
            let reported = back.sender.lock().writer.report_credits(back, ring.head(), 0);
            reported.expect("a write");
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(late, 0);
    });
}

/// The numbers of cells wrap at 2^32, where credits and stamps have 32 bits.
#[test]
fn cells_arrive_once_where_their_numbers_go_round() {
    let (_runtime, world) = two_ranks();
    let (link, back) = both_ends(&world);
    // The line of the last cell before that was never written.
    let start = u64::from(u32::MAX) - 100;
    let rank = world.rank(WorldRank(1));
    rank.inbox.lock().rings[0].ring.skip_to(start);
    link.sender.lock().writer.skip_to(start);
    back.sender.lock().writer.report_credits(back, start, 0).expect("a write");
    for number in start..start + 600 {
        let ring = &mut rank.inbox.lock().rings[0].ring;
        assert!(ring.peek().is_none(), "a cell before cell {number} is written");
        let notice = Cell::fin_send(number);
        let sent = link.sender.lock().notify(link, world.rank(WorldRank(0)), notice);
        sent.expect("a write");
        assert!(ring.peek().is_some(), "cell {number}");
        assert_eq!(ring.cell().0[0], number);
        ring.take(1);
        back.sender.lock().writer.report_credits(back, ring.head(), 0).expect("a write");
    }
}
