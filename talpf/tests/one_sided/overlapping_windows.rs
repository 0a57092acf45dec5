//! Windows of one sync that would wait for each other are refused.

use crate::common;
use talpf::{Context, Error, SyncBuilder, SyncMode};
use talpf_runtime::Array;

/// Declares windows of a sync on an array.
type Declare = for<'s, 'r> fn(&'r Array<u64>, SyncBuilder<'s, 'r>) -> SyncBuilder<'s, 'r>;

/// Returns the result of a sync whose windows on an array of eight elements `declare` declares.
fn end(declare: Declare) -> Result<(), Error> {
    let ends = common::run(common::unwatched(1, 1), move |ctx: Context| async move {
        let array = common::array(&ctx, vec![0u64; 8])?;
        ctx.register_global(&array).await?;
        declare(&array, ctx.sync(SyncMode::msg(0))).await
    });
    ends.map(drop)
}

#[test]
fn overlapping_windows_are_an_error() {
    let overlapping: [Declare; 4] = [
        |array, sync| sync.window(&array.all()).expose(&array.all()),
        |array, sync| sync.expose(&array.region(..5)).window(&array.region(4..)),
        |array, sync| sync.window(&array.region(2..3)).window(&array.all()),
        |array, sync| {
            sync.window(&array.region(..2)).expose(&array.region(2..)).window(&array.region(1..3))
        },
    ];
    for declare in overlapping {
        let error = end(declare).unwrap_err();
        assert!(matches!(error, Error::WindowsOverlap { .. }), "{error}");
        common::says(&error, &["lane 0 round 0", "overlaps"]);
    }
}

#[test]
fn windows_that_do_not_wait_for_each_other_are_not() {
    end(|array, sync| sync.window(&array.region(..4)).expose(&array.region(4..))).unwrap();
    end(|array, sync| sync.expose(&array.all()).expose(&array.region(2..3))).unwrap();
    end(|array, sync| sync.window(&array.all()).window(&array.region(3..3))).unwrap();
}
