//! Ranks have to agree on what they share.

use std::sync::Arc;

use crate::common;
use ibverbs_sim::{LinkModel, SocketWire, Wire};
use talpf::{Config, Error, SyncMode, hook};
use talpf_runtime::Runtime;

/// Checks that two processes with these settings do not run, with an error that contains `what`.
fn check_refused(settings: [Config; 2], what: &str) {
    let wires = SocketWire::mesh(2).unwrap().into_iter();
    let wires = wires.map(|wire| Arc::new(wire) as Arc<dyn Wire>);
    let ranks = wires.zip(settings).collect();
    let ends = common::on_wires(ranks, |ctx| async move { ctx.sync(SyncMode::DEFAULT).await });
    assert!(ends.iter().all(Result::is_err));
    let has_reason = |end: &Result<(), Error>| end.as_ref().unwrap_err().to_string().contains(what);
    assert!(ends.iter().all(has_reason), "{ends:?}");
}

#[test]
fn processes_with_other_settings_do_not_run() {
    check_refused([7, 8].map(|credits| Config { credits, ..common::unwatched(2, 1) }), "credits");
    let checks = |check_conflicts| Config { check_conflicts, ..common::unwatched(2, 1) };
    check_refused([true, false].map(checks), "check of conflicts");
}

#[test]
fn a_link_model_is_for_ranks_in_one_process() {
    let mut config = common::unwatched(2, 1);
    config.device.link = Some(LinkModel::IDEAL);
    check_refused([config.clone(), config], "hook needs a run without a link model");
}

#[test]
fn the_wire_says_who_and_how_many() {
    let config = Config { ranks: 3, ..common::config(1, 1) };
    let wire = SocketWire::mesh(1).unwrap().pop().unwrap();
    let ranks: Vec<(Arc<dyn Wire>, Config)> = vec![(Arc::new(wire), config)];
    let ends = common::on_wires(ranks, |ctx| async move {
        ctx.sync(SyncMode::DEFAULT).await?;
        Ok((ctx.rank().0, ctx.size()))
    });
    assert_eq!(ends.into_iter().collect::<Result<Vec<_>, _>>().unwrap(), [(0, 1)]);
}

/// Slots of different element sizes.
#[test]
fn a_registration_that_does_not_match_is_an_error_everywhere() {
    let ends = common::run_all(common::unwatched(3, 1), |ctx| async move {
        if ctx.rank().0 == 1 {
            let narrow = common::array(&ctx, vec![0u32])?;
            ctx.register_global(&narrow).await?;
        } else {
            let wide = common::array(&ctx, vec![0u64])?;
            ctx.register_global(&wide).await?;
        }
        Ok(())
    });
    assert!(ends.iter().all(Result::is_err), "{ends:?}");
}

#[test]
fn hook_in_a_task_is_refused_before_it_asks_the_wire() {
    let mut wires = SocketWire::mesh(1).unwrap();
    let wire = Arc::new(wires.pop().unwrap());
    let runtime = Runtime::new(talpf_runtime::Config { workers: 1, ..Default::default() }).unwrap();
    let body = runtime.task("outer").run(move || {
        hook(wire, common::config(1, 1), async |_| -> Result<(), Error> { panic!("it has run") })
    });
    let refused = runtime.block_on(body.unwrap()).unwrap().unwrap().unwrap_err();
    let is_right = matches!(
        refused,
        Error::Runtime(talpf_runtime::Error::BlockingInTask { call: "hook", .. })
    );
    assert!(is_right, "{refused}");
    runtime.shut_down().unwrap();
}
