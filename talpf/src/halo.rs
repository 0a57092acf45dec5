//! Exchange of the halos of a distributed matrix with puts or gets.

use std::fmt;

use bytemuck::Pod;
use talpf_runtime::{Ix2, Matrix, Rect, Region};

use crate::all_gather::Call;
use crate::context::Context;
use crate::decomposition::{Decomposition, Face, ranges};
use crate::error::{DecompositionError, Error};
use crate::numbers::Rank;
use crate::one_sided::OneSided;
use crate::slot::{MemorySlot, RemoteRegion, Use};
use crate::sync::{EachStep, SyncBuilder, SyncMode};

/// The matrix of a rank in a [`Decomposition`], registered to exchange its halos with the ranks
/// around it. A program that alternates between two matrices has one of each.
///
/// In one line, [`Halo::exchange`] declares all of it: a put of every edge into the halo of a
/// neighbour, and the sync with a window on every halo here. [`Halo::put`] and [`Halo::windows`]
/// are its parts; [`Halo::exchange_by_gets`] does the same with gets. Each put waits for the tasks
/// that write its edge, and tasks that read a halo wait for the round, by their regions.
///
/// ```
/// use talpf::{Config, Decomposition, Error, Halo, SyncMode, exec};
/// use talpf_runtime::{Matrix, Tiling};
///
/// // A cell becomes the largest one around it, on a grid of 2 x 3 ranks.
/// let largest = exec(Config { ranks: 6, ..Config::default() }, async |ctx| {
///     let parts = Decomposition::grid([2, 3], [8, 9], 1)?;
///     let [rows, cols] = parts.local_shape(ctx.rank())?;
///     let values = vec![ctx.rank().0; rows * cols];
///     let matrix = Matrix::new(ctx.group(), values, cols, Tiling::new(rows, cols))?;
///     let halo = Halo::new(&ctx, &parts, &matrix).await?;
///     ctx.iterate(20, |step| {
///         halo.exchange(step, SyncMode::CACHED)?;
///         let task = step.task("largest").inout(&matrix.all());
///         Ok::<_, Error>(task.spawn(move |mut cells| {
///             let old = cells.view().to_owned();
///             for ((row, col), cell) in cells.view_mut().indexed_iter_mut() {
///                 let around = [(row.wrapping_sub(1), col), (row + 1, col),
///                     (row, col.wrapping_sub(1)), (row, col + 1)];
///                 *cell = around.iter().filter_map(|at| old.get(*at)).fold(*cell, |a, b| a.max(*b));
///             }
///         })?)
///     })?;
///     ctx.group().wait().await?;
///     let read = ctx.group().task("read").input(&matrix.all());
///     Ok::<_, Error>(read.run(|cells| *cells.view().iter().min().unwrap())?.await?)
/// })?;
/// assert_eq!(largest, [5; 6]);
/// # Ok::<(), Error>(())
/// ```
pub struct Halo<T> {
    matrix: Matrix<T>,
    slot: MemorySlot<T>,
    faces: Vec<Face>,
}

/// A sync that is spawned once or in every step.
type OneSidedSync<'s, 'r> = SyncBuilder<'s, 'r, EachStep<'s, 'r>>;

impl<T: Pod + Send + Sync> Halo<T> {
    /// Registers `matrix`, which has the [shape](Decomposition::local_shape) of this rank.
    /// Collective: all ranks give the same decomposition.
    ///
    /// **Completion**, **Errors**: as [`Context::register_global`]; a decomposition of another
    /// number of ranks than the run has; a matrix of another shape.
    pub async fn new(
        ctx: &Context,
        decomposition: &Decomposition,
        matrix: &Matrix<T>,
    ) -> Result<Self, Error> {
        let checked = check(ctx, decomposition, matrix);
        let slot = ctx.register_if(checked, matrix, Use::Windowed, Call::RegisterGlobal).await?;
        let faces = decomposition.faces(ctx.rank())?;
        Ok(Halo { matrix: matrix.clone(), slot, faces })
    }

    /// Declares the exchange of all faces with puts, and the sync of `mode` that ends the round:
    /// [`Halo::put`], and a sync with [`Halo::windows`]. Under [`SyncMode::msg`] the number of
    /// arrivals is that of the faces, whatever it is in `mode`. A rank without neighbours is the
    /// only one of the run, and declares nothing.
    ///
    /// **Completion**: returns at once. Tasks that read a halo wait until the round has ended.
    /// **Errors**: those of a spawn; at the sync, those of puts and syncs.
    /// **Cost**: a put for each face, and a sync.
    pub fn exchange<'r>(&'r self, scope: &impl OneSided<'r>, mode: SyncMode) -> Result<(), Error> {
        self.put(scope)?;
        self.end_round(scope, mode, Halo::windows)
    }

    /// Declares the exchange of all faces with gets, as [`Halo::exchange`] with puts: [`Halo::get`],
    /// and a sync with [`Halo::exposed`].
    ///
    /// **Completion**, **Errors**: as [`Halo::exchange`].
    pub fn exchange_by_gets<'r>(
        &'r self,
        scope: &impl OneSided<'r>,
        mode: SyncMode,
    ) -> Result<(), Error> {
        self.get(scope)?;
        self.end_round(scope, mode, Halo::exposed)
    }

    fn end_round<'s, 'r>(
        &'r self,
        scope: &'s impl OneSided<'r>,
        mode: SyncMode,
        open: impl FnOnce(&'r Self, OneSidedSync<'s, 'r>) -> OneSidedSync<'s, 'r>,
    ) -> Result<(), Error>
    where
        'r: 's,
    {
        let faces = self.faces.len() as u32;
        if faces == 0 {
            return Ok(());
        }
        open(self, scope.sync(mode.expecting(faces))).spawn()
    }

    /// Declares the puts of all edges into the halos of the neighbours.
    ///
    /// **Completion**, **Errors**: as [`OneSided::put`].
    pub fn put<'r>(&'r self, scope: &impl OneSided<'r>) -> Result<(), Error> {
        self.faces
            .iter()
            .try_for_each(|face| scope.put(&face.edge_of(&self.matrix), self.neighbours_halo(face)))
    }

    /// Declares the gets of all halos from the edges of the neighbours, which
    /// [expose](Halo::exposed) them.
    ///
    /// **Completion**, **Errors**: as [`OneSided::get`].
    pub fn get<'r>(&'r self, scope: &impl OneSided<'r>) -> Result<(), Error> {
        self.faces
            .iter()
            .try_for_each(|face| scope.get(self.neighbours_edge(face), &face.halo_of(&self.matrix)))
    }

    /// Returns a sync with a window on every halo, for the puts of the neighbours.
    pub fn windows<'s, 'r, S>(&'r self, sync: SyncBuilder<'s, 'r, S>) -> SyncBuilder<'s, 'r, S> {
        self.halos().fold(sync, |sync, halo| sync.window(&halo))
    }

    /// Returns a sync that exposes every edge, for the gets of the neighbours.
    pub fn exposed<'s, 'r, S>(&'r self, sync: SyncBuilder<'s, 'r, S>) -> SyncBuilder<'s, 'r, S> {
        self.edges().fold(sync, |sync, edge| sync.expose(&edge))
    }

    /// Returns the halo of the neighbour that the edge of `face` goes to, for a put of one face.
    pub fn neighbours_halo(&self, face: &Face) -> RemoteRegion<'_, T> {
        self.remote(face.neighbour, &face.its_halo)
    }

    /// Returns the edge of the neighbour that the halo of `face` comes from, for a get of one face.
    pub fn neighbours_edge(&self, face: &Face) -> RemoteRegion<'_, T> {
        self.remote(face.neighbour, &face.its_edge)
    }

    fn remote(&self, rank: Rank, rect: &Rect) -> RemoteRegion<'_, T> {
        let [rows, cols] = ranges(rect);
        self.slot.region(rank, rows, cols)
    }
}

impl<T> Halo<T> {
    /// Returns the matrix.
    pub fn matrix(&self) -> &Matrix<T> {
        &self.matrix
    }

    /// Returns the slot of the matrix, for other operations on it.
    pub fn slot(&self) -> &MemorySlot<T> {
        &self.slot
    }

    /// Returns the faces: what this rank exchanges with each neighbour.
    pub fn faces(&self) -> &[Face] {
        &self.faces
    }

    /// Iterates over the edges, in the order of the faces.
    pub fn edges(&self) -> impl Iterator<Item = Region<'_, T, Ix2>> {
        self.faces.iter().map(|face| face.edge_of(&self.matrix))
    }

    /// Iterates over the halos, in the order of the faces.
    pub fn halos(&self) -> impl Iterator<Item = Region<'_, T, Ix2>> {
        self.faces.iter().map(|face| face.halo_of(&self.matrix))
    }
}

/// Checks that a matrix is that of this rank in a decomposition of all ranks.
fn check<T>(ctx: &Context, decomposition: &Decomposition, matrix: &Matrix<T>) -> Result<(), Error> {
    if decomposition.ranks() != ctx.size() {
        let [rows, cols] = decomposition.grid_shape();
        return Err(DecompositionError::OtherGrid { rows, cols, ranks: ctx.size() }.into());
    }
    let (rank, array) = (ctx.rank(), matrix.label());
    let (expected, shape) = (decomposition.local_shape(rank)?, [matrix.rows(), matrix.cols()]);
    if shape != expected {
        return Err(DecompositionError::OtherShape { array, shape, rank, expected }.into());
    }
    Ok(())
}

impl<T> fmt::Debug for Halo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Halo of {} ({} faces)", self.matrix.label(), self.faces.len())
    }
}
