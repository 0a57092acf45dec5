//! Exchange of the outermost rows between neighbours.

use std::ops::Range;

use parking_lot::Mutex;
use talpf::{Context, DoubleBufferedChannel, Link, MemorySlot};

use super::band::Band;
use crate::Error;
use crate::heat::{Neighbour, Neighbours};
use crate::jacobi::Problem;
use crate::run::{Messages, Protocol, RankContext, RemotePiece, Round, Step, Transfer};

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
pub(super) struct Exchange {
    neighbours: Neighbours,
    means: Means,
}

/// Means of communication. Slots are those of the matrices that even and odd steps write.
enum Means {
    Windows { ctx: Context, protocol: Protocol, slots: [MemorySlot<f64>; 2] },
    Links { ctx: Context, links: Mutex<DoubleBufferedChannel<f64>>, slots: [MemorySlot<f64>; 2] },
    Messages(Messages),
}

impl Exchange {
    /// Prepares the exchange of the halos of `band`. Collective.
    pub(super) async fn new(
        ctx: &RankContext,
        problem: &Problem,
        method: PutMethod,
        band: &Band,
    ) -> Result<Self, Error> {
        let neighbours = Neighbours::new(ctx, problem);
        let means = match ctx {
            RankContext::TwoSided(messages) => Means::Messages(messages.clone()),
            RankContext::OneSided(ctx, protocol) => {
                let even = ctx.register_global(band.after(0)).await?;
                let slots = [even, ctx.register_global(band.after(1)).await?];
                match method {
                    PutMethod::Windows => {
                        Means::Windows { ctx: ctx.clone(), protocol: *protocol, slots }
                    }
                    PutMethod::Links => {
                        let links = Mutex::new(link(ctx, &neighbours, band).await?);
                        Means::Links { ctx: ctx.clone(), links, slots }
                    }
                }
            }
        };
        Ok(Self { neighbours, means })
    }

    /// Declares the exchange of the rows that step `number` writes in `band`, a piece for each
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
        let pieces = pieces(&self.neighbours, band);
        let (newest, other) = (band.after(number), band.before(number));
        let edge = |piece: &Piece<'_>| newest.row(piece.with.edge, piece.cols.clone());
        let halo = |piece: &Piece<'_>| newest.row(piece.with.halo, piece.cols.clone());
        match &self.means {
            Means::Windows { ctx, protocol, slots } => {
                let remote = |Piece { with, cols, .. }: Piece<'_>| {
                    let row = match protocol.transfer {
                        Transfer::Put => with.its_halo,
                        Transfer::Get => with.its_edge,
                    };
                    let (slot, rank) = (slots[number % 2].clone(), ctx.peer(with.rank as u32)?);
                    Ok(RemotePiece { slot, rank, rows: row..row + 1, cols })
                };
                let (protocol, lane) = (*protocol, &**ctx);
                let given = pieces.clone().map(|piece| edge(&piece)).collect();
                let taken = pieces.clone().map(|piece| halo(&piece)).collect();
                let remotes = pieces.map(remote).collect::<Result<_, Error>>()?;
                Round { protocol, lane, given, taken, remotes }.declare(step)
            }
            Means::Links { links, .. } => {
                assert!(matches!(step, Step::Spawned(..)), "links are not replayed");
                let mut links = links.lock();
                for (link, piece) in pieces.enumerate() {
                    let next = other.row(piece.with.halo, piece.cols.clone());
                    links.put(link, &edge(&piece), &next)?;
                }
                links.sync()?;
                Ok(())
            }
            Means::Messages(messages) => {
                for piece in pieces {
                    // Messages of two steps may overtake each other, those of three cannot.
                    let (rank, tag) = (piece.with.rank, 2 * piece.strip + number % 2);
                    messages.declare_send(&step, &edge(&piece), rank, tag)?;
                    messages.declare_receive(&step, &halo(&piece), rank, tag)?;
                }
                Ok(())
            }
        }
    }

    /// Waits for all tasks and exchanges, and releases the means of communication.
    pub(super) async fn end(self, ctx: &RankContext) -> Result<(), Error> {
        let registered = match self.means {
            Means::Windows { ctx, slots, .. } => Some((ctx, slots)),
            // Links keep a task of each piece until they are dropped.
            Means::Links { ctx, links, slots } => {
                drop(links);
                Some((ctx, slots))
            }
            Means::Messages(_) => None,
        };
        ctx.group().wait().await?;
        if let Some((ctx, slots)) = registered {
            slots.into_iter().try_for_each(|slot| ctx.deregister(slot))?;
        }
        Ok(())
    }
}

/// Creates a link for every piece.
async fn link(
    ctx: &Context,
    neighbours: &Neighbours,
    band: &Band,
) -> Result<DoubleBufferedChannel<f64>, Error> {
    let link = |Piece { with, cols, .. }: Piece| {
        let fields = [band.after(0), band.after(1)];
        let buffers = fields.map(|field| field.row(with.halo, cols.clone()));
        Ok(Link { peer: ctx.peer(with.rank as u32)?, buffers })
    };
    let links = pieces(neighbours, band).map(link).collect::<Result<Vec<_>, Error>>()?;
    Ok(ctx.double_buffered_channel(ctx.lane(LANE)?, &links).await?)
}

/// Piece of a row that is exchanged in a step, one for each neighbour and strip.
struct Piece<'a> {
    with: &'a Neighbour,
    strip: usize,
    cols: Range<usize>,
}

fn pieces<'a>(
    neighbours: &'a Neighbours,
    band: &'a Band,
) -> impl Iterator<Item = Piece<'a>> + Clone {
    neighbours.iter().flat_map(move |with| {
        band.strip_cols().enumerate().map(move |(strip, cols)| Piece { with, strip, cols })
    })
}
