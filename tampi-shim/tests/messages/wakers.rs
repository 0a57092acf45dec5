//! Wakers of the program, which may do anything.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use tampi_shim::{Communicator, Error, Tag};

use crate::common::{config, nothing_is_left, run_well};

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker of the program");
    }
}

/// Receives and a probe that wakers wait for which panic, and others behind them.
async fn panicking_wakers(world: Communicator) -> Result<(), Error> {
    let (me, waker) = (world.rank(), Waker::from(Arc::new(Panics)));
    for length in [1usize, 10_000] {
        let mut first = Box::pin(world.irecv(vec![0u8; length], me, Tag(0)));
        let mut probe = Box::pin(world.probe(me, Tag(2)));
        assert!(first.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(probe.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let second = world.irecv(vec![0u8; length], me, Tag(1));
        for tag in [0, 1, 2] {
            drop(world.isend(vec![tag as u8 + 1; length], me, Tag(tag)));
        }
        assert_eq!(second.await?.0, vec![2; length]);
        assert_eq!(first.await?.0, vec![1; length]);
        assert_eq!(probe.await?.tag, Tag(2));
        assert_eq!(world.recv(vec![0u8; length], me, Tag(2)).await?.0, vec![3; length]);
    }
    nothing_is_left(&world).await;
    Ok(())
}

#[test]
fn a_waker_that_panics_stops_neither_its_rank_nor_other_operations() {
    for workers in [1, 2] {
        run_well(config(2, workers), panicking_wakers);
    }
}
