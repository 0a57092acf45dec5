//! Puts and gets between rectangles of matrices whose shapes differ from rank to rank.

use std::ops::Range;

use crate::common;
use proptest::prelude::*;
use proptest::sample::Index;
use talpf::{Arrivals, Config, Context, Error, MemorySlot, Rank, SyncMode};
use talpf_runtime::{Ix2, Matrix, Region, Tiling};

/// Rows and columns.
type Shape = (usize, usize);

#[derive(Clone, Debug, PartialEq)]
struct Rectangle {
    rows: Range<usize>,
    cols: Range<usize>,
}

impl Rectangle {
    fn len(&self) -> usize {
        self.rows.len() * self.cols.len()
    }

    fn overlaps(&self, other: &Rectangle) -> bool {
        let meets = |one: &Range<usize>, other: &Range<usize>| {
            one.start.max(other.start) < one.end.min(other.end)
        };
        meets(&self.rows, &other.rows) && meets(&self.cols, &other.cols)
    }

    fn of<'m>(&self, matrix: &'m Matrix<u32>) -> Region<'m, u32, Ix2> {
        matrix.region(self.rows.clone(), self.cols.clone())
    }

    /// Iterates over the positions of the elements in a matrix of `cols` columns, row after row.
    fn positions(&self, cols: usize) -> impl Iterator<Item = usize> + '_ {
        self.rows.clone().flat_map(move |row| self.cols.clone().map(move |col| row * cols + col))
    }
}

/// An operation of rank `me` between its rectangle and one of `peer`.
#[derive(Clone, Debug)]
struct Operation {
    is_put: bool,
    me: usize,
    own: Rectangle,
    peer: usize,
    other: Rectangle,
}

#[derive(Clone, Debug)]
struct Program {
    /// Shape of the matrices of each rank.
    shapes: Vec<Shape>,
    operations: Vec<Operation>,
    /// `true` if each put has a window of its own, `false` if one window is the whole matrix.
    many_windows: bool,
    mode: SyncMode,
    check_conflicts: bool,
}

const ROUNDS: usize = 3;

/// The matrices of a rank, element after element: source of puts, destination of puts, source of
/// gets, destination of gets.
type Memory = [Vec<u32>; 4];

fn memory(rank: usize, (rows, cols): Shape) -> Memory {
    let numbers =
        |salt: usize| (0..rows * cols).map(|at| (at * 100 + salt * 10 + rank) as u32).collect();
    [1, 2, 3, 4].map(numbers)
}

/// Changes what a rank puts and exposes between two rounds.
fn compute(source: &mut [u32], inbox: &[u32], shown: &mut [u32], got: &[u32]) {
    for at in 0..source.len() {
        source[at] = source[at].wrapping_mul(5).wrapping_add(inbox[at]);
        shown[at] = shown[at].wrapping_mul(3).wrapping_add(got[at]);
    }
}

fn serial(program: &Program) -> Vec<Memory> {
    let shapes = &program.shapes;
    let memories = shapes.iter().enumerate().map(|(rank, shape)| memory(rank, *shape));
    let mut ranks: Vec<Memory> = memories.collect();
    for _ in 0..ROUNDS {
        for Operation { is_put, me, own, peer, other } in &program.operations {
            let (from, to) = if *is_put { ((*me, 0), (*peer, 1)) } else { ((*peer, 2), (*me, 3)) };
            let (read, write) = if *is_put { (own, other) } else { (other, own) };
            let positions = read.positions(shapes[from.0].1);
            let values: Vec<u32> = positions.map(|at| ranks[from.0][from.1][at]).collect();
            for (at, value) in write.positions(shapes[to.0].1).zip(values) {
                ranks[to.0][to.1][at] = value;
            }
        }
        for [source, inbox, shown, got] in &mut ranks {
            compute(source, inbox, shown, got);
        }
    }
    ranks
}

async fn run_rank(ctx: Context, program: Program) -> Result<Memory, Error> {
    let me = ctx.rank().0 as usize;
    let (rows, cols) = program.shapes[me];
    let tiling = Tiling::new(rows.div_ceil(2), cols.div_ceil(3));
    let matrix = |values| Matrix::new(ctx.group(), values, cols, tiling);
    let [source, inbox, shown, got] = memory(me, (rows, cols)).map(matrix);
    let (source, inbox, shown, got) = (source?, inbox?, shown?, got?);
    let slot = ctx.register_global(&inbox).await?;
    let exposed = ctx.register_global(&shown).await?;
    ctx.register_local(&got)?;
    let mut mode = program.mode;
    if let Arrivals::Msg(count) = &mut mode.arrivals {
        *count = program.operations.iter().filter(|operation| operation.peer == me).count() as u32;
    }
    for _ in 0..ROUNDS {
        for Operation { is_put, own, peer, other, .. } in
            program.operations.iter().filter(|operation| operation.me == me)
        {
            let slot = if *is_put { &slot } else { &exposed };
            let remote = slot.region(Rank(*peer as u32), other.rows.clone(), other.cols.clone());
            match is_put {
                true => ctx.put(&own.of(&source), remote)?,
                false => ctx.get(remote, &own.of(&got))?,
            }
        }
        let mut sync = ctx.sync(mode).expose(&shown.all());
        if program.many_windows {
            let puts = program.operations.iter().filter(|operation| operation.is_put);
            for put in puts.filter(|put| put.peer == me) {
                sync = sync.window(&put.other.of(&inbox));
            }
        } else {
            sync = sync.window(&inbox.all());
        }
        sync.spawn()?;
        let task = ctx.group().task("compute").inout(&source.all()).input(&inbox.all());
        task.inout(&shown.all()).input(&got.all()).spawn(|mut source, inbox, mut shown, got| {
            let [inbox, got] = [inbox, got].map(|guard| flat(&guard));
            compute(
                source.view_mut().into_slice().unwrap(),
                &inbox,
                shown.view_mut().into_slice().unwrap(),
                &got,
            );
        })?;
    }
    let mut memory = Memory::default();
    for (values, matrix) in memory.iter_mut().zip([&source, &inbox, &shown, &got]) {
        *values = ctx.group().task("read").input(&matrix.all()).run(|all| flat(&all))?.await?;
    }
    Ok(memory)
}

fn flat(guard: &talpf_runtime::In<u32, Ix2>) -> Vec<u32> {
    guard.view().iter().copied().collect()
}

/// Makes a rectangle of the length of `other` in a matrix, if it can have one: of the same shape,
/// or of one row, or of one column.
fn alike(other: &Rectangle, (rows, cols): Shape, at: [&Index; 2], form: u8) -> Option<Rectangle> {
    let (height, width) = match form {
        0 => (other.rows.len(), other.cols.len()),
        1 => (1, other.len()),
        _ => (other.len(), 1),
    };
    let row = at[0].index((rows + 1).checked_sub(height)?.max(1));
    let col = at[1].index((cols + 1).checked_sub(width)?.max(1));
    let fits = row + height <= rows && col + width <= cols;
    fits.then(|| Rectangle { rows: row..row + height, cols: col..col + width })
}

fn programs() -> impl Strategy<Value = Program> {
    let operation = (any::<[Index; 8]>(), any::<bool>(), 0..4u8);
    let shapes = prop::collection::vec((1..12usize, 1..12usize), 1..5);
    (shapes, prop::collection::vec(operation, 0..24), any::<[bool; 2]>(), 0..10usize).prop_map(
        |(shapes, drawn, [many_windows, check_conflicts], mode)| {
            let mut operations: Vec<Operation> = Vec::new();
            for (draw, is_put, form) in &drawn {
                let (me, peer) = (draw[0].index(shapes.len()), draw[1].index(shapes.len()));
                let (rows, cols) = shapes[peer];
                let (row, col) = (draw[2].index(rows), draw[3].index(cols));
                let (height, width) =
                    (draw[4].index(rows - row + 1), draw[5].index(cols - col + 1));
                let other = Rectangle { rows: row..row + height, cols: col..col + width };
                let Some(own) = alike(&other, shapes[me], [&draw[6], &draw[7]], *form) else {
                    continue;
                };
                let operation = Operation { is_put: *is_put, me, own, peer, other };
                // What is written is written once.
                let collides = |before: &Operation| match (before.is_put, operation.is_put) {
                    (true, true) => before.peer == peer && before.other.overlaps(&operation.other),
                    (false, false) => before.me == me && before.own.overlaps(&operation.own),
                    _ => false,
                };
                if !operations.iter().any(collides) {
                    operations.push(operation);
                }
            }
            let mode = common::modes(0)[mode];
            Program { shapes, operations, many_windows, mode, check_conflicts }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 150 } else { 400 }))]
    #[test]
    fn as_the_serial_oracle(program in programs(), workers in 1usize..4) {
        let Program { check_conflicts, .. } = program;
        let config = Config {
            check_conflicts, ..common::config(program.shapes.len() as u32, workers)
        };
        let ends = common::run(config, |ctx| run_rank(ctx, program.clone()));
        prop_assert_eq!(ends.unwrap(), serial(&program));
    }
}

/// Makes a matrix of `rows x cols` zeros with its slot.
async fn zeros(
    ctx: &Context,
    (rows, cols): Shape,
) -> Result<(Matrix<u64>, MemorySlot<u64>), Error> {
    let tiling = Tiling::new(rows.max(1), cols);
    let matrix = Matrix::new(ctx.group(), vec![0; rows * cols], cols, tiling)?;
    let slot = ctx.register_global(&matrix).await?;
    Ok((matrix, slot))
}

/// A column of more rows than a send queue has room for, from a column and from an array.
#[test]
fn a_column_is_one_operation_however_long_it_is() {
    for (rows, workers) in [(1_022, 2), (1_023, 2), (1_024, 2), (5_000, 2), (5_000, 1)] {
        let ends = common::run(common::config(2, workers), move |ctx| async move {
            let (matrix, slot) = zeros(&ctx, (rows, 3)).await?;
            let peer = Rank(1 - ctx.rank().0);
            let fill = ctx.group().task("fill").output(&matrix.region(.., 0..1));
            fill.spawn(|mut column| {
                column.view_mut().iter_mut().zip(1..).for_each(|(cell, row)| *cell = row)
            })?;
            let packed = common::array(&ctx, (0..rows as u64).collect())?;
            ctx.put(&matrix.region(.., 0..1), slot.region(peer, .., 1..2))?;
            ctx.put(&packed.all(), slot.region(peer, .., 2..))?;
            ctx.sync(SyncMode::msg(2)).window(&matrix.region(.., 1..)).await?;
            let read = ctx.group().task("read").input(&matrix.all());
            Ok::<_, Error>(read.run(|all| all.view().iter().copied().collect::<Vec<_>>())?.await?)
        });
        let expected: Vec<u64> = (0..rows as u64).flat_map(|row| [row + 1, row + 1, row]).collect();
        assert_eq!(ends.unwrap(), [expected.clone(), expected], "{rows} rows");
    }
}

/// Values outside arrays go to a rectangle too, among short puts that are posted together.
#[test]
fn copied_values_go_to_a_column() {
    let ends = common::run(common::config(2, 1), |ctx| async move {
        let (matrix, slot) = zeros(&ctx, (4, 3)).await?;
        let peer = Rank(1 - ctx.rank().0);
        let round = ctx.round();
        for row in 0..4 {
            round.put_copy(&[row as u64], slot.row(peer, row, 0..1)).await?;
        }
        round.put_copy(&[5u64, 6, 7, 8], slot.region(peer, .., 2..)).await?;
        round.put_copy(&[9u64], slot.row(peer, 3, 1..2)).await?;
        drop(round);
        ctx.sync(SyncMode::msg(6)).window(&matrix.all()).await?;
        let read = ctx.group().task("read").input(&matrix.all());
        Ok::<_, Error>(read.run(|all| all.view().iter().copied().collect::<Vec<_>>())?.await?)
    });
    let expected = vec![0, 0, 5, 1, 0, 6, 2, 0, 7, 3, 9, 8];
    assert_eq!(ends.unwrap(), [expected.clone(), expected]);
}
