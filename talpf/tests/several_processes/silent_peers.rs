//! A sync that waits for a process which shows no life ends with an error that names its rank.

use std::sync::{Arc, Barrier};
use std::thread;

use ibverbs_sim::{Packets, Rail, SocketWire};
use talpf::{Context, Error, Rank, SyncMode, hook_on_rail};

use crate::common;

#[test]
fn a_sync_with_a_process_that_is_given_up_names_its_rank() {
    let rails = SocketWire::mesh(2).unwrap().into_iter();
    let rails: Vec<_> = rails.map(|wire| Arc::new(Packets::new(Arc::new(wire)))).collect();
    let has_begun = Arc::new(Barrier::new(3));
    let main = |ctx: Context| {
        let has_begun = Arc::clone(&has_begun);
        async move {
            let inbox = common::array(&ctx, vec![0u64])?;
            ctx.register_global(&inbox).await?;
            let handle = ctx.sync(SyncMode::msg(1)).window(&inbox.all()).spawn()?;
            has_begun.wait();
            handle.await
        }
    };
    let ends: Vec<Result<(), Error>> = thread::scope(|scope| {
        let start = |rail: &Arc<Packets>| {
            let (rail, main) = (Arc::clone(rail), &main);
            scope.spawn(move || hook_on_rail(rail, common::unwatched(2, 1), main))
        };
        let threads: Vec<_> = rails.iter().map(start).collect();
        has_begun.wait();
        rails[0].give_up(1);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let error = ends[0].as_ref().unwrap_err();
    assert!(matches!(error, Error::PeerFailed { rank: Rank(1), .. }), "{error}");
    assert!(error.to_string().contains("shown no life"), "{error}");
    // The other one only sees that its connection has ended.
    assert!(matches!(ends[1], Err(Error::PeerFailed { rank: Rank(0), .. })), "{:?}", ends[1]);
}
