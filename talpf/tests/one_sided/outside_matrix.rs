//! An operation on a rectangle that the target does not have names it, the rank and its shape.

use crate::common;
use talpf::{Context, Error, MemorySlot, Rank, RemoteRegion, SyncMode};
use talpf_runtime::{Matrix, Tiling};

/// Puts the 6 elements of a 2 x 3 matrix to a part of the 4 x 5 matrix of rank 1, whose window is
/// all of it but its last column.
fn error_of(to: fn(&MemorySlot<u32>) -> RemoteRegion<'_, u32>) -> Error {
    let put = move |ctx: Context| async move {
        let (rows, cols) = if ctx.rank() == Rank(1) { (4, 5) } else { (2, 3) };
        let values = vec![0; rows * cols];
        let matrix = Matrix::new(ctx.group(), values, cols, Tiling::new(rows, cols))?;
        let slot = ctx.register_global(&matrix).await?;
        let mut sync = ctx.sync(SyncMode::DEFAULT);
        if ctx.rank() == Rank(1) {
            sync = sync.window(&matrix.region(.., ..4));
        } else {
            ctx.put(&matrix.all(), to(&slot))?;
        }
        sync.await
    };
    common::run(common::unwatched(2, 2), put).unwrap_err()
}

#[test]
fn rows_beyond_the_last_one() {
    let error = error_of(|slot| slot.region(Rank(1), 3..5, 0..3));
    let text =
        "rows 3..5, columns 0..3 of slot 0 at rank 1 do not exist: the matrix is 4 x 5 there";
    common::says(&error, &[text]);
}

#[test]
fn columns_beyond_the_last_one() {
    common::says(
        &error_of(|slot| slot.region(Rank(1), 2..4, 3..6)),
        &["rows 2..4, columns 3..6 of slot 0 at rank 1 do not exist", "4 x 5"],
    );
    common::says(&error_of(|slot| slot.row(Rank(1), 4, ..)), &["rows 4..5, columns 0..5"]);
    let huge = error_of(|slot| slot.row(Rank(1), usize::MAX, ..));
    common::says(&huge, &["rows 4294967295..4294967295", "4 x 5"]);
}

#[test]
fn a_rectangle_of_another_length() {
    let error = error_of(|slot| slot.region(Rank(1), 1.., ..3));
    let text =
        "rows 1..4, columns 0..3 of slot 0 at rank 1 are 9 elements, but the local region has 6";
    common::says(&error, &[text]);
}

#[test]
fn a_range_that_ends_before_it_begins() {
    #[allow(clippy::reversed_empty_ranges, reason = "the mistake")]
    let error = error_of(|slot| slot.region(Rank(1), 3..1, ..));
    common::says(&error, &["rows 3..1, columns 0..5 of slot 0 at rank 1 do not exist"]);
}

#[test]
fn no_such_rank() {
    let error = error_of(|slot| slot.region(Rank(2), .., ..));
    common::says(&error, &["rank 2 does not exist, there are 2 ranks"]);
}

#[test]
fn a_rectangle_that_no_window_covers() {
    let error = error_of(|slot| slot.region(Rank(1), 1..4, 3..));
    let text = "rank 0 reaches rows 1..4, columns 3..5 of slot 0 at rank 1 in lane 0 round 0";
    common::says(&error, &[text, "outside every window"]);
}
