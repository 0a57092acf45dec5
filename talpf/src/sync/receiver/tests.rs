//! Wake-ups of a polling task that sleeps, where no completion brings one.

use std::ops::Range;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use ibverbs_sim::{Operation, RemoteAddress, ShmConfig, ShmRail};
use talpf_runtime::{Array, Clock};

use super::*;
use crate::config::Config;
use crate::context::Context;
use crate::exec::exec;
use crate::hook::exec_on_rail;
use crate::immediate::{Immediate, Kind};
use crate::notification::{Notification, NotifiedClaim};
use crate::processes::WindowRequest;
use crate::window::{self, Claim, Landing, Outcome, Parked, Post, Together, TravelTogether};

/// So many that the exchange of counts is the barrier, and waits for what is delivered.
const RANKS: u32 = 4;
const BUSY: Rank = Rank(1);

/// Sends acknowledgements, which no sync waits for, until the target has no receive for one.
fn send_until_one_waits(ctx: &Context, target: Rank) {
    let own = &ctx.sender().own;
    let (lane, round) = (LaneNumber(7), Round(0));
    let immediate = Immediate::new(Kind::Ack, lane, round).to_bits();
    let (request, payload) =
        (Operation::SendWithImmediate { immediate }, Immediate::payload(round, 0).to_ne_bytes());
    while own.endpoint.is_drained(target) {
        // Without room in the send queue until the completions of earlier ones are taken.
        let _ = own.endpoint.post_inline(target, request, &payload);
        own.engine().unwrap().poll();
    }
}

/// Checks until something is so many times in a row, for longer than the last poll before a sleep takes,
/// or for ten seconds. Returns `true` if it is.
fn comes_to_stay(clock: &Clock, is_so: impl Fn() -> bool) -> bool {
    let (mut times, end) = (0, clock.now() + Duration::from_secs(10));
    while times < 10_000 && clock.now() < end {
        times = if is_so() { times + 1 } else { 0 };
        talpf_primitives::yield_now();
    }
    times == 10_000
}

#[test]
fn an_inspection_of_the_state_wakes_a_polling_task_that_sleeps_for_a_pass_left_to_it() {
    let mut config = Config { ranks: 1, ..Config::default() };
    config.runtime.workers = 2;
    let ends = exec(config, async |ctx| {
        let (receiver, clock) = (ctx.world().rank(Rank(0)), ctx.group().clock());
        let own = receiver.own();
        let sleeps = comes_to_stay(clock, || own.poller.is_asleep());
        let left = receiver.with_state(|_| receiver.progress().is_none());
        let is_answered = comes_to_stay(clock, || !own.doorbell.is_rung());
        assert!(sleeps && left && is_answered, "{sleeps}, {left}, {is_answered}");
        Ok::<_, Error>(())
    });
    ends.unwrap();
}

/// The put waits at its poster for a receive, and so does the sync, for that no completion announces.
#[test]
fn a_pass_that_has_to_be_repeated_wakes_a_polling_task_that_sleeps() {
    let busy = Arc::new([Barrier::new(2), Barrier::new(2)]);
    let mut config = Config { ranks: RANKS, check_conflicts: false, ..Config::default() };
    config.runtime.workers = RANKS as usize;
    let ends = exec(config, async move |ctx| {
        let array = Array::new(ctx.group(), vec![0u32; 1], 1)?;
        let slot = ctx.register_global(&array).await?;
        let round = ctx.round();
        let sync = ctx.sync(SyncMode::DEFAULT).window(&array.all()).spawn()?;
        let (own, clock) = (&ctx.sender().own, ctx.group().clock());
        if ctx.rank() == BUSY {
            drop(round);
            while !sync.round.is_declared() {
                talpf_primitives::yield_now();
            }
            ctx.world().rank(BUSY).with_state(|_| {
                for at in &*busy {
                    at.wait();
                }
            });
        } else if ctx.rank() == Rank(0) {
            busy[0].wait();
            send_until_one_waits(&ctx, BUSY);
            drop(round.put_copy(&[1], slot.at(BUSY, 0)));
            let sleeps = comes_to_stay(clock, || own.poller.is_asleep());
            drop(round);
            let is_woken = comes_to_stay(clock, || !own.poller.is_asleep());
            busy[1].wait();
            assert!(sleeps && is_woken, "{sleeps}, {is_woken}: nobody makes another pass");
        } else {
            drop(round);
        }
        sync.await
    });
    ends.unwrap();
}

/// An operation that sends nothing.
struct Nothing;

impl Parked for Nothing {
    fn post(&mut self) -> Post {
        Post::All
    }

    fn refuse(self: Box<Self>) {}
}

impl Landing for Nothing {
    fn post(&mut self) -> Post {
        Post::All
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(self)
    }
}

/// An operation that sends nothing, and calls a function while it is posted, with an outcome.
struct Calling<'a>(&'a (dyn Fn() + Sync), Post);

impl Landing for Calling<'_> {
    fn post(&mut self) -> Post {
        self.0();
        self.1
    }

    fn park(self) -> Box<dyn Parked> {
        Box::new(Nothing)
    }
}

impl Together for Nothing {
    fn len(&self) -> usize {
        1
    }

    fn claim(&self, _: usize) -> Claim {
        CLAIM
    }

    fn post(&self, _: Range<usize>) -> Post {
        Post::All
    }

    fn park(&self, _: Range<usize>) -> Box<dyn Parked> {
        Box::new(Nothing)
    }
}

impl TravelTogether for Nothing {
    fn with_bytes(&self, _: usize, _: impl FnOnce(RemoteAddress, &[u8])) {}

    fn trace_send(&self, _: Range<usize>) {}
}

/// Claim of the only element of the first slot.
const CLAIM: Claim = Claim {
    source: Rank(0),
    slot: 0,
    index: 0,
    end: 1,
    rows: 1,
    stride: 0,
    kind: window::Kind::Write,
    raw: false,
};

/// The thread that posts the first operation may take its time.
#[test]
fn an_operation_that_waits_for_another_one_to_land_wakes_a_polling_task_that_sleeps() {
    for together in [false, true] {
        let mut config = Config { ranks: 1, check_conflicts: false, ..Config::default() };
        config.runtime.workers = 2;
        let ends = exec(config, async move |ctx| {
            let array = Array::new(ctx.group(), vec![0u32; 1], 1)?;
            let _slot = ctx.register_global(&array).await?;
            let round = ctx.round();
            let sync = ctx.sync(SyncMode::msg(0)).window(&array.all()).spawn()?;
            let (sender, clock) = (ctx.sender(), ctx.group().clock());
            let (own, peers) = (&sender.own, &sender.peers);
            while !sync.round.is_declared() {
                talpf_primitives::yield_now();
            }
            let request =
                WindowRequest { target: Rank(0), lane: LaneNumber::default(), round: Round(0) };
            let land_another = || {
                let sleeps = comes_to_stay(clock, || own.poller.is_asleep());
                if together {
                    assert!(peers.land_together(request, &Nothing).has_parked);
                } else {
                    let outcome = peers.land(request, CLAIM, true, Nothing);
                    assert!(matches!(outcome, Outcome::Parked));
                }
                let is_woken = comes_to_stay(clock, || !own.poller.is_asleep());
                assert!(sleeps && is_woken, "{sleeps}, {is_woken}");
            };
            let outcome = peers.land(request, CLAIM, false, Calling(&land_another, Post::All));
            assert!(matches!(outcome, Outcome::Posted(_)));
            drop(round);
            sync.await
        });
        ends.unwrap();
    }
}

#[test]
fn a_notification_that_finds_no_room_wakes_a_polling_task_that_sleeps() {
    let mut config = Config { ranks: 1, ..Config::default() };
    config.runtime.workers = 2;
    let ends = exec(config, async |ctx| {
        let (sender, clock) = (ctx.sender(), ctx.group().clock());
        let (own, here) = (&sender.own, Rank(0));
        let notification = Notification { source: here, id: 0, value: 0 };
        let notified = NotifiedClaim { notification, claim: Claim { raw: true, ..CLAIM } };
        let sleeps = comes_to_stay(clock, || own.poller.is_asleep());
        let operation = Calling(&|| {}, Post::Nothing);
        let outcome = sender.peers.land_notified(here, notified, here, true, operation);
        assert!(matches!(outcome, Outcome::Parked));
        let is_settled = comes_to_stay(clock, || !own.notifications.has_delayed());
        assert!(sleeps && is_settled, "{sleeps}, {is_settled}");
        Ok::<_, Error>(())
    });
    ends.unwrap();
}

/// Of two processes with two ranks each, the polling task of rank 0 posts the second put of rank 1 once
/// its window opens: no completion announces that to rank 1, whose sync waits for it.
#[test]
fn a_put_that_another_rank_of_its_process_posts_wakes_a_polling_task_that_sleeps() {
    // The first put travels with its claim, and takes the credit for that.
    let mut config = Config { ranks: 2, credits: 1, check_conflicts: false, ..Config::default() };
    config.runtime.workers = 3;
    let may_open = Arc::new(AtomicBool::new(false));
    let main = |ctx: Context| {
        let may_open = Arc::clone(&may_open);
        async move {
            let array = Array::new(ctx.group(), vec![0u32; 2], 1)?;
            let slot = ctx.register_global(&array).await?;
            let group = ctx.group().clone();
            if ctx.rank() != Rank(1) {
                if ctx.rank() == Rank(2) {
                    let keep = ctx.group().task("keep").inout(&array.all());
                    keep.spawn_async(move |array| async move {
                        while !may_open.load(Ordering::Acquire) {
                            group.wait_for(Duration::from_millis(1)).await;
                        }
                        drop(array);
                    })?;
                }
                return ctx.sync(SyncMode::DEFAULT).window(&array.all()).await;
            }
            let round = ctx.round();
            drop(round.put_copy(&[1], slot.at(Rank(2), 0)));
            drop(round.put_copy(&[2], slot.at(Rank(2), 1)));
            drop(round);
            let sync = ctx.sync(SyncMode::DEFAULT).window(&array.all()).spawn()?;
            let (own, world) = (&ctx.sender().own, ctx.world());
            let sleeps = comes_to_stay(group.clock(), || own.poller.is_asleep());
            may_open.store(true, Ordering::Release);
            let has_ended = comes_to_stay(group.clock(), || world.rank(Rank(1)).syncs() == 0);
            own.wake_poller();
            assert!(sleeps && has_ended, "{sleeps}, {has_ended}: nobody makes a pass");
            sync.await
        }
    };
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    thread::scope(|scope| {
        let run = |rail| exec_on_rail(Arc::new(rail), config.clone(), &main).unwrap();
        rails.into_iter().for_each(|rail| drop(scope.spawn(move || run(rail))));
    });
}
