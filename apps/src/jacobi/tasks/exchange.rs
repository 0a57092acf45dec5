//! Exchange of the outermost cells between neighbours.

use parking_lot::Mutex;
use talpf::{Context, DoubleBufferedChannel, Face, Halo, Link, Rank};
use talpf_runtime::{Matrix, Region};

use super::band::Band;
use crate::Error;
use crate::run::{Messages, Protocol, RankContext, Step, Transfer};

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
pub(super) enum Exchange {
    /// Halos of the matrices that even and odd steps write.
    Windows {
        ctx: Context,
        protocol: Protocol,
        halos: [Halo<f64>; 2],
    },
    /// A link for every face, which is a piece of a row.
    Links {
        links: Mutex<DoubleBufferedChannel<f64>>,
        faces: Vec<Face>,
    },
    Messages {
        messages: Messages,
        faces: Vec<Face>,
    },
}

impl Exchange {
    /// Prepares the exchange of the halos of `band`. Collective.
    pub(super) async fn new(
        ctx: &RankContext,
        method: PutMethod,
        band: &Band,
    ) -> Result<Self, Error> {
        let faces = band.parts().faces(Rank(ctx.rank() as u32))?;
        let (ctx, protocol) = match ctx {
            RankContext::TwoSided(messages) => {
                return Ok(Self::Messages { messages: messages.clone(), faces });
            }
            RankContext::OneSided(ctx, protocol) => (ctx.clone(), *protocol),
        };
        let even = Halo::new(&ctx, band.parts(), band.after(0)).await?;
        let halos = [even, Halo::new(&ctx, band.parts(), band.after(1)).await?];
        match method {
            PutMethod::Windows => Ok(Self::Windows { ctx, protocol, halos }),
            PutMethod::Links => {
                let link = |face: &Face| {
                    let buffers = [0, 1].map(|step| halo_row(band.after(step), face));
                    Link { peer: face.neighbour, buffers }
                };
                let links: Vec<_> = faces.iter().map(link).collect();
                let links = ctx.double_buffered_channel(ctx.lane(LANE)?, &links).await?;
                Ok(Self::Links { links: Mutex::new(links), faces })
            }
        }
    }

    /// Declares the exchange of the cells that step `number` writes in `band`, a piece for each
    /// strip, and the end of its round, if it has one.
    ///
    /// **Panics**: links in a replayed step. Their buffers are in use from one step to the next, so
    /// a graph would never get them.
    pub(super) fn declare<'a>(
        &'a self,
        band: &'a Band,
        number: usize,
        step: Step<'_, 'a>,
    ) -> Result<(), Error> {
        let (newest, other) = (band.after(number), band.before(number));
        match self {
            Self::Windows { ctx, protocol, halos } => {
                let (scope, halo) = (step.on(ctx)?, &halos[number % 2]);
                if let Some(mut bsp) = step.queue() {
                    return Ok(halo.queue(&mut bsp)?);
                }
                Ok(match protocol.transfer {
                    Transfer::Put => halo.exchange(&scope, protocol.mode),
                    Transfer::Get => halo.exchange_by_gets(&scope, protocol.mode),
                }?)
            }
            Self::Links { links, faces } => {
                assert!(matches!(step, Step::Spawned(..)), "links are not replayed");
                let mut links = links.lock();
                for (link, face) in faces.iter().enumerate() {
                    links.put(link, &face.edge_of(newest), &halo_row(other, face))?;
                }
                links.sync()?;
                Ok(())
            }
            Self::Messages { messages, faces } => {
                for face in faces {
                    // Messages of two steps may overtake each other, those of three cannot.
                    let (rank, tag) = (face.neighbour.0 as usize, 2 * face.piece + number % 2);
                    messages.declare_send(&step, &face.edge_of(newest), rank, tag)?;
                    messages.declare_receive(&step, &face.halo_of(newest), rank, tag)?;
                }
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
