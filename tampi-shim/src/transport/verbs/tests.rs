use std::sync::atomic::{AtomicBool, Ordering};

use talpf_runtime::{Config as RuntimeConfig, Runtime};

use super::cell::Cell;
use super::world::World;
use crate::config::Config;
use crate::protocols::Protocols;
use crate::rank::WorldRank;

#[test]
fn what_a_thread_writes_is_there_when_it_goes_on() {
    let runtime = Runtime::new(RuntimeConfig::default()).expect("a runtime");
    let groups = (0..2).map(|number| runtime.group("rank", number)).collect();
    let protocols = Protocols { eager: 40, lazy: 0, offer: 2000 };
    let world = World::new(&Config::default(), protocols, groups).expect("a world");
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
