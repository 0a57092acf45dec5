//! Tasks that write together with others: commutative accesses and reductions by exclusive or.

use std::sync::Arc;

use talpf_runtime::operator::Xor;
use talpf_runtime::{Commutative, In, Ix2, Reduction, Region, TaskBuilder};

use super::drafts::{Joins, Task, Use};
use super::{COLS, LEN, Run, mix};

pub(super) fn spawn<'r>(
    builder: TaskBuilder<'_>,
    (task, joins): (&Arc<Task>, Joins),
    line: impl Fn(&Use) -> Region<'r, u64>,
    matrix: impl Fn(&Use) -> Region<'r, u64, Ix2>,
    run: &Run,
) {
    let of = |in_matrix: bool, writes: bool| {
        task.uses.iter().filter(move |u| (u.matrix, u.writes) == (in_matrix, writes))
    };
    let builder = builder.input(of(false, false).map(&line)).input(of(true, false).map(&matrix));
    let (lines, matrices) = (of(false, true).map(&line), of(true, true).map(&matrix));
    let (task, run) = (Arc::clone(task), run.clone());
    match joins {
        Joins::Commutes => builder.commutative(lines).commutative(matrices).spawn(
            move |reads, matrix_reads, lines, matrices| {
                run.begin(&task);
                let seed = seed(&task, reads, matrix_reads);
                for (mut all, access) in lines.into_iter().zip(writes(&task, false)) {
                    join(&mut all, seed, access, 0);
                }
                for (mut all, access) in matrices.into_iter().zip(writes(&task, true)) {
                    let all: &mut Commutative<u64, Ix2> = &mut all;
                    (0..all.rows()).for_each(|row| join(all.row_mut(row), seed, access, row));
                }
            },
        ),
        Joins::Reduces => builder.reduction(lines, Xor).reduction(matrices, Xor).spawn(
            move |reads, matrix_reads, lines, matrices| {
                run.begin(&task);
                let seed = seed(&task, reads, matrix_reads);
                for (mut all, access) in lines.into_iter().zip(writes(&task, false)) {
                    join(&mut all, seed, access, 0);
                }
                for (mut all, access) in matrices.into_iter().zip(writes(&task, true)) {
                    let all: &mut Reduction<u64, Ix2> = &mut all;
                    (0..all.rows()).for_each(|row| join(all.row_mut(row), seed, access, row));
                }
            },
        ),
    }
    .unwrap();
}

fn writes(task: &Task, in_matrix: bool) -> impl Iterator<Item = &Use> {
    task.uses.iter().filter(move |u| u.writes && u.matrix == in_matrix)
}

/// Returns the values of all reads, in the order of the uses.
fn seed(task: &Task, lines: Vec<In<u64>>, matrices: Vec<In<u64, Ix2>>) -> u64 {
    let (mut lines, mut matrices) = (lines.iter(), matrices.iter());
    task.uses.iter().filter(|u| !u.writes).fold(task.number, |seed, access| {
        let cells: Vec<u64> = if access.matrix {
            matrices.next().map(|all| all.view().iter().copied().collect()).unwrap_or_default()
        } else {
            lines.next().map(|all| all.to_vec()).unwrap_or_default()
        };
        cells.into_iter().fold(seed, mix)
    })
}

/// Joins row number `row` of an access.
fn join(cells: &mut [u64], seed: u64, access: &Use, row: usize) {
    let width = if access.matrix { COLS } else { LEN };
    let first = (access.rows.start + row) * width + access.cols.start;
    cells.iter_mut().zip(first..).for_each(|(cell, at)| *cell ^= mix(seed, at as u64));
}
