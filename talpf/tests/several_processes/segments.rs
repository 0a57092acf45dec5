//! Arrays lie in memory that the peers map: what is put or got needs no packets.
#![allow(unsafe_code, reason = "passes the calls of a rail on")]

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ibverbs_sim::{
    Access, Armed, Posted, Rail, RailAddress, RailError, RailEvent, RailKey, RailLimits,
    RailMemory, ShmConfig, ShmRail,
};
use talpf::{Context, Error, Rank, SyncMode, hook_on_rail};

use crate::common;

/// Elements of an array: far more bytes than travel with a claim.
const LEN: usize = 20_000;
const STEPS: usize = 5;

/// A rail that counts the bytes of its messages.
struct CountingRail {
    rail: ShmRail,
    sent: Arc<AtomicUsize>,
}

// SAFETY of the calls in it: each passes the contract on.
impl Rail for CountingRail {
    fn process(&self) -> u32 {
        self.rail.process()
    }

    fn processes(&self) -> u32 {
        self.rail.processes()
    }

    fn limits(&self) -> RailLimits {
        self.rail.limits()
    }

    unsafe fn register(&self, memory: NonNull<[u8]>, access: Access) -> Result<RailKey, RailError> {
        // SAFETY: passed on.
        unsafe { self.rail.register(memory, access) }
    }

    fn allocate(&self, bytes: usize) -> Option<Box<dyn RailMemory>> {
        Rail::allocate(&self.rail, bytes)
    }

    fn deregister(&self, key: &RailKey) -> Result<(), RailError> {
        self.rail.deregister(key)
    }

    fn send(&self, to: u32, bytes: &[u8]) -> Result<(), RailError> {
        self.rail.send(to, bytes)?;
        self.sent.fetch_add(bytes.len(), Ordering::SeqCst);
        Ok(())
    }

    unsafe fn write(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        notice: Option<u32>,
        context: u64,
    ) -> Result<Posted, RailError> {
        // SAFETY: passed on.
        unsafe { self.rail.write(to, local, remote, notice, context) }
    }

    unsafe fn read(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        context: u64,
    ) -> Result<Posted, RailError> {
        // SAFETY: passed on.
        unsafe { self.rail.read(to, local, remote, context) }
    }

    unsafe fn write_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        // SAFETY: passed on.
        unsafe { self.rail.write_at_once(to, local, remote, permit) }
    }

    unsafe fn read_at_once(
        &self,
        to: u32,
        local: NonNull<[u8]>,
        remote: &RailAddress,
        permit: &RailKey,
    ) -> bool {
        // SAFETY: passed on.
        unsafe { self.rail.read_at_once(to, local, remote, permit) }
    }

    fn poll(&self, sink: &mut dyn FnMut(RailEvent<'_>)) -> usize {
        self.rail.poll(sink)
    }

    fn has_unsent(&self) -> bool {
        self.rail.has_unsent()
    }

    fn arm(&self) -> Armed<'_> {
        self.rail.arm()
    }
}

/// Puts an array to the peer and gets one from it, in each step.
async fn exchange(ctx: Context) -> Result<(), Error> {
    let peer = Rank(1 - ctx.rank().0);
    let mine = common::array(&ctx, vec![u64::from(ctx.rank().0); LEN])?;
    let [inbox, got] = [0; 2].map(|_| common::array(&ctx, vec![9u64; LEN]));
    let (inbox, got) = (inbox?, got?);
    let (slot, source) = (ctx.register_global(&inbox).await?, ctx.register_global(&mine).await?);
    ctx.register_local(&got)?;
    for _ in 0..STEPS {
        ctx.put(&mine.all(), slot.at(peer, 0))?;
        ctx.get(source.at(peer, 0), &got.all())?;
        ctx.sync(SyncMode::DEFAULT).window(&inbox.all()).expose(&mine.all()).await?;
    }
    let expected = vec![u64::from(peer.0); LEN];
    assert_eq!(common::read(&ctx, &inbox).await?, expected);
    assert_eq!(common::read(&ctx, &got).await?, expected);
    Ok(())
}

#[test]
fn data_of_arrays_is_not_sent_as_packets() {
    let _watchdog = common::watchdog("two processes");
    let sent = Arc::new(AtomicUsize::new(0));
    let rails = ShmRail::mesh(2, &ShmConfig::default()).unwrap();
    thread::scope(|scope| {
        for rail in rails {
            let rail = CountingRail { rail, sent: Arc::clone(&sent) };
            let config = common::config(2, 1);
            scope.spawn(move || hook_on_rail(Arc::new(rail), config, exchange).unwrap());
        }
    });
    let data = 2 * 2 * STEPS * LEN * size_of::<u64>();
    let sent = sent.load(Ordering::SeqCst);
    // The first request of a connection may be sent before the permit of the peer has come.
    assert!(sent < data / 2, "{sent} bytes in messages, for {data} bytes of data");
}
