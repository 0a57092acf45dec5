//! Exchange of the outermost cells between neighbours.

use parking_lot::Mutex;
use talpf::{DoubleBufferedChannel, Face, Link, Rank};
use talpf_runtime::{Matrix, Region};

use super::band::Band;
use crate::Error;
use crate::heat::FieldHalo;
use crate::run::{Exchange, RankContext, Step};

/// Method by which puts reach the halos of a neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) enum PutMethod {
    /// Through windows.
    Windows,
    /// Through links that alternate between the halos of both matrices, unchecked; counts exchanged
    /// once.
    Links,
}

/// Lane of the links; the rounds of windows are those of lane 0.
const LANE: u8 = 1;

/// Exchange of one rank in every step.
pub(super) struct HaloExchange {
    /// Faces, each a piece.
    faces: Vec<Face>,
    method: Method,
}

enum Method {
    /// Pieces of the matrices that even and odd steps write.
    Pieces { exchange: Exchange, halos: [FieldHalo; 2] },
    /// A link for every face, which is a piece of a row.
    Links(Mutex<DoubleBufferedChannel<f64>>),
}

impl HaloExchange {
    /// Prepares the exchange of the halos of `band`. Collective.
    pub(super) async fn new(
        ctx: &RankContext,
        method: PutMethod,
        band: &Band,
    ) -> Result<Self, Error> {
        let faces = band.parts().faces(Rank(ctx.rank() as u32))?;
        let method = match (method, ctx) {
            (PutMethod::Links, RankContext::OneSided(ctx, _)) => {
                for step in [0, 1] {
                    ctx.register_global(band.after(step)).await?;
                }
                let link = |face: &Face| {
                    let buffers = [0, 1].map(|step| halo_row(band.after(step), face));
                    Link { peer: face.neighbour, buffers }
                };
                let links: Vec<_> = faces.iter().map(link).collect();
                let links = ctx.double_buffered_channel(ctx.lane(LANE)?, &links).await?;
                Method::Links(Mutex::new(links))
            }
            _ => {
                let even = FieldHalo::new(ctx, band.parts(), band.after(0)).await?;
                let odd = FieldHalo::new(ctx, band.parts(), band.after(1)).await?;
                Method::Pieces { exchange: Exchange::new(ctx), halos: [even, odd] }
            }
        };
        Ok(Self { faces, method })
    }

    /// Declares the exchange of the cells that step `number` writes in `band`, a piece for each
    /// strip, and the end of its round, if it has one. A rank without neighbours declares nothing.
    ///
    /// **Panics**: links in a replayed step. Their buffers are in use from one step to the next, so
    /// a graph would never get them.
    pub(super) fn declare<'a>(
        &'a self,
        band: &'a Band,
        number: usize,
        step: Step<'_, 'a>,
    ) -> Result<(), Error> {
        if self.faces.is_empty() {
            return Ok(());
        }
        match &self.method {
            Method::Pieces { exchange, halos } => {
                let halo = &halos[number % 2];
                // Messages of two steps may overtake each other, those of three cannot.
                let tag = |face: &Face| 2 * face.piece + number % 2;
                let sent = self.faces.iter().map(|face| halo.edge(face, tag(face)));
                exchange.declare(
                    step,
                    sent,
                    self.faces.iter().map(|face| halo.halo(face, tag(face))),
                )
            }
            Method::Links(links) => {
                assert!(matches!(step, Step::Spawned(..)), "links are not replayed");
                let (newest, other) = (band.after(number), band.before(number));
                let mut links = links.lock();
                for (link, face) in self.faces.iter().enumerate() {
                    links.put(link, &face.edge_of(newest), &halo_row(other, face))?;
                }
                links.sync()?;
                Ok(())
            }
        }
    }

    /// Waits for all tasks and exchanges.
    pub(super) async fn end(self, ctx: &RankContext) -> Result<(), Error> {
        // Links keep a task of each piece until they are dropped.
        drop(self);
        Ok(ctx.group().wait().await?)
    }
}

/// Returns the halo of a face that is a piece of one row.
fn halo_row<'a>(matrix: &'a Matrix<f64>, face: &Face) -> Region<'a, f64> {
    matrix.row(face.halo.row as usize, face.halo.col as usize..face.halo.col_end as usize)
}
