use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use talpf_runtime::{Config as RuntimeConfig, Runtime};

use super::cell::Cell;
use super::polling::sleep;
use super::world::World;
use super::{Transport, Verbs};
use crate::config::Config;
use crate::protocols::Protocols;
use crate::rank::WorldRank;

/// Two ranks without polling tasks.
fn world(runtime: &Runtime) -> Arc<World> {
    let groups = (0..2).map(|number| runtime.group("rank", number)).collect();
    let protocols = Protocols { eager: 40, lazy: 0, offer: 2000 };
    World::new(&Config::default(), protocols, groups).expect("a world")
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

#[test]
fn a_rank_that_sleeps_wakes_for_a_message_whoever_looks_for_it() {
    const ROUNDS: u32 = 10_000;
    let runtime = Runtime::new(RuntimeConfig::default()).expect("a runtime");
    let world = world(&runtime);
    let sleeper = Verbs { world: Arc::clone(&world), rank: WorldRank(1) };
    let link = world.link(WorldRank(0), WorldRank(1)).expect("a link");
    let send = || {
        let notice = Cell::done(u64::MAX);
        let sent = link.sender.lock().notify(link, world.rank(WorldRank(0)), notice);
        sent.expect("a write");
    };
    let (begin, middle) = (Barrier::new(3), Barrier::new(2));
    let taken = || sleeper.state().inbox.lock().rings[0].ring.head;
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
                send();
                middle.wait();
                send();
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
    let runtime = Runtime::new(RuntimeConfig::default()).expect("a runtime");
    let world = world(&runtime);
    let link = world.link(WorldRank(0), WorldRank(1)).expect("a link");
    let back = world.link(WorldRank(1), WorldRank(0)).expect("its other end");
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
            let told = back.sender.lock().outlet.tell_credits(back, ring.head, 0);
            told.expect("a write");
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(late, 0);
    });
}
