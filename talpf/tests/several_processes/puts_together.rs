//! Short puts of one body to a rank of another process share messages.
#![allow(unsafe_code, reason = "calls `register_raw`")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ibverbs_sim::{SocketWire, Wire};
use talpf::{Config, Context, Error, Rank, SyncMode};

use crate::changed_wire::{ChangedWire, Changes};
use crate::common;

/// The messages that a wire has sent.
struct Sent(Arc<AtomicUsize>);

impl Changes for Sent {
    fn before_send(&self, _: &[u8]) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Puts of a body: fewer than may be under way without any having landed.
const PUTS: usize = 400;
/// Most of their messages: of the first put, of full batches, and of the rest.
const MESSAGES: usize = 1 + PUTS.div_ceil(127);

/// Runs a program of two ranks of which rank 0 puts to rank 1, one number after the other if `stride` is
/// 1. Returns what rank 1 has got, and the messages that rank 0 has sent by the end of the body.
fn puts(stride: usize, is_raw: bool) -> (Vec<u64>, usize) {
    let sent = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let wires = SocketWire::mesh(2).unwrap().into_iter().zip(&sent);
    let config = Config { check_conflicts: false, ..common::config(2, 1) };
    let ranks = wires.map(|(wire, sent)| {
        let wire: Arc<dyn Wire> = Arc::new(ChangedWire::new(wire, Sent(Arc::clone(sent))));
        (wire, config.clone())
    });
    let ends = common::on_wires(ranks.collect(), |ctx: Context| {
        let sent = Arc::clone(&sent[0]);
        async move {
            let inbox = common::array(&ctx, vec![0u64; PUTS * stride])?;
            let slot = match is_raw {
                // SAFETY: nobody uses the inbox in a round in which it is written.
                true => unsafe { ctx.register_raw(&inbox) }.await?,
                false => ctx.register_global(&inbox).await?,
            };
            // The queue pairs are connected by then.
            for _ in 0..2 {
                ctx.round().put_copy(&[0], slot.at(Rank(1 - ctx.rank().0), 0)).await?;
                let sync = ctx.sync(SyncMode::DEFAULT);
                if is_raw { sync.await? } else { sync.window(&inbox.all()).await? }
            }
            if ctx.rank() == Rank(1) {
                let sync = ctx.sync(SyncMode::msg(PUTS as u32));
                if is_raw {
                    sync.await?
                } else {
                    sync.window(&inbox.all()).await?
                }
                return Ok::<_, Error>((common::read(&ctx, &inbox).await?, 0));
            }
            let before = sent.load(Ordering::SeqCst);
            let round = ctx.round();
            for put in 0..PUTS {
                round.put_copy(&[put as u64 + 1], slot.at(Rank(1), put * stride)).await?;
            }
            drop(round);
            let messages = sent.load(Ordering::SeqCst) - before;
            ctx.sync(SyncMode::msg(0)).await?;
            Ok((vec![], messages))
        }
    });
    let ends: Result<Vec<_>, Error> = ends.into_iter().collect();
    let ends = ends.unwrap();
    (ends[1].0.clone(), ends[0].1)
}

#[test]
fn puts_of_a_body_into_a_window_share_messages_and_land() {
    for stride in [1, 2] {
        let (come, messages) = puts(stride, false);
        let come: Vec<u64> = come.into_iter().step_by(stride).collect();
        assert_eq!(come, Vec::from_iter(1..=PUTS as u64), "{stride} apart");
        assert!(messages <= MESSAGES, "{messages} messages");
    }
}

#[test]
fn puts_of_a_body_into_a_raw_slot_share_messages_and_land() {
    for stride in [1, 2] {
        let (come, messages) = puts(stride, true);
        let come: Vec<u64> = come.into_iter().step_by(stride).collect();
        assert_eq!(come, Vec::from_iter(1..=PUTS as u64), "{stride} apart");
        // Requests wait while many are under way, and go on in messages of their own.
        assert!(messages <= PUTS / 4, "{messages} messages");
    }
}

/// Puts that find no credit wait at their rank, and go together once there is some.
#[test]
fn many_puts_to_a_rank_that_is_late_share_messages_and_land() {
    const MANY: usize = 20_000;
    let config = Config { credits: 16, ..common::config(2, 1) };
    let ends = common::run(config, |ctx| async move {
        let inbox = common::array(&ctx, vec![0u64; MANY])?;
        let slot = ctx.register_global(&inbox).await?;
        if ctx.rank() == Rank(1) {
            let sync = ctx.sync(SyncMode::msg(MANY as u32)).window(&inbox.all());
            sync.await?;
            return common::read(&ctx, &inbox).await;
        }
        let round = ctx.round();
        for put in 0..MANY {
            // Not awaited: those beyond the credit are queued.
            drop(round.put_copy(&[put as u64 + 1], slot.at(Rank(1), put)));
        }
        drop(round);
        ctx.sync(SyncMode::msg(0)).await?;
        Ok::<_, Error>(vec![])
    });
    assert_eq!(ends.unwrap()[1], Vec::from_iter(1..=MANY as u64));
}
