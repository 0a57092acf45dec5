//! Failure of a task in a replayed graph: it ends the run of all ranks, with its name.

use talpf_runtime::current_step;

use super::super::ranks::on_ranks;
use super::super::{Machine, Part, Ring, Shape, Variant};
use super::*;

/// Returns the error of three ranks that pass a number round, one of which fails in step 3 of 1000.
fn error_of(variant: Variant, workers: usize) -> String {
    let machine = Machine::new(3, workers).unwrap();
    let program = |ctx: RankContext| async move {
        let started = ctx.now();
        let shape = Shape { pieces: 1, rows: 1, cols: 100, tile_cols: 100 };
        let ring = Ring::new(&ctx, machine, shape, vec![1.0; 100]).await?;
        let is_unlucky = ctx.rank() == 1;
        ctx.iterate(1000, 1, |step, _| {
            let task = step.task("unlucky").inout(&ring.own().all());
            task.spawn(move |_numbers| {
                let step = current_step().unwrap();
                assert!(!(is_unlucky && step == 3), "that was the fourth");
            })?;
            for hop in 0..2 {
                ring.pass_on(hop, step)?;
            }
            Ok(())
        })?;
        ctx.group().wait().await?;
        Ok(Part { result: Vec::new(), started, ended: ctx.now() })
    };
    let ended = on_ranks(machine, variant, &Observer::default(), program);
    ended.map(|_| ()).expect_err("a task has failed").to_string()
}

#[test]
fn a_task_that_fails_is_named_whatever_carries_the_data() {
    for variant in [
        Variant::TalpfDefault,
        Variant::TalpfCached,
        Variant::TalpfCachedBarrier,
        Variant::TalpfCachedAck,
        Variant::TalpfMsg,
        Variant::TalpfGet,
        Variant::Tampi,
        Variant::TampiBlocking,
    ] {
        for workers in [1, 3] {
            let error = error_of(variant, workers);
            let named = error.contains("unlucky") && error.contains("that was the fourth");
            assert!(named, "{variant:?}: {error}");
        }
    }
}
