//! Libraries need all ranks in one process.

use talpf::{Error, SyncMode};

use crate::common;

#[test]
fn a_library_is_refused_at_every_rank_and_the_program_goes_on() {
    let ends = common::run_all(common::config(2, 1), |mut ctx| async move {
        let refused = ctx.rehook(async |_ctx| Ok::<_, Error>(())).await;
        assert!(matches!(refused, Err(Error::OneProcess { call: "rehook" })), "{refused:?}");
        ctx.sync(SyncMode::DEFAULT).await
    });
    ends.into_iter().for_each(|ended| ended.unwrap());
}
