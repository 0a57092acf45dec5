//! The exchange of the outermost rows between neighbours.

use std::ops::Range;

use talpf::{Arrivals, Context, Lane, Link, MemorySlot, PingPong, SyncHandle};

use super::band::Band;
use crate::Error;
use crate::heat::{Neighbour, Neighbours};
use crate::jacobi::Problem;
use crate::run::{Messages, Protocol, RankContext, Transfer};

/// How puts reach the halos of a neighbour.
#[derive(Clone, Copy, Debug)]
pub(in crate::jacobi) enum Way {
    /// Through windows.
    Windows,
    /// Into the halos of the two matrices in turn, unchecked; counts exchanged once.
    Links,
}

/// What the links take for themselves; the rounds of windows are those of lane 0.
const LANE: Lane = Lane(1);

/// What one rank exchanges in every step.
pub(super) struct Exchange {
    neighbours: Neighbours,
    means: Means,
}

/// Slots, and whatever else there are two of, are those of the newest matrix and of the other.
enum Means {
    Windows { ctx: Context, protocol: Protocol, slots: [MemorySlot<f64>; 2] },
    Links { ctx: Context, links: PingPong<f64>, slots: [MemorySlot<f64>; 2] },
    Messages { messages: Messages, turn: usize },
}

impl Exchange {
    /// Prepares the exchange of the halos of `band`, of the newest matrix first. Collective.
    pub(super) async fn new(
        ctx: &RankContext,
        problem: &Problem,
        way: Way,
        band: &Band,
    ) -> Result<Self, Error> {
        let neighbours = Neighbours::new(ctx, problem);
        let means = match ctx {
            RankContext::TwoSided(messages) => {
                Means::Messages { messages: messages.clone(), turn: 0 }
            }
            RankContext::OneSided(ctx, protocol) => {
                let newest = ctx.register_global(band.newest()).await?;
                let slots = [newest, ctx.register_global(band.other()).await?];
                match way {
                    Way::Windows => Means::Windows { ctx: ctx.clone(), protocol: *protocol, slots },
                    Way::Links => {
                        let links = link(ctx, &neighbours, band).await?;
                        Means::Links { ctx: ctx.clone(), links, slots }
                    }
                }
            }
        };
        Ok(Self { neighbours, means })
    }

    /// Spawns the exchange of the newest matrix of `band`, a piece for each strip, and the sync
    /// that ends its round, if rounds end.
    pub(super) fn spawn(&mut self, band: &Band) -> Result<Option<SyncHandle>, Error> {
        let pieces = pieces(&self.neighbours, band);
        let (newest, other) = (band.newest(), band.other());
        match &mut self.means {
            Means::Windows { ctx, protocol, slots } => {
                let sync = spawn_windows(ctx, band, &slots[0], pieces, *protocol)?;
                slots.swap(0, 1);
                Ok(Some(sync))
            }
            Means::Links { links, .. } => {
                for (link, Piece { with, cols, .. }) in pieces.enumerate() {
                    let next = other.row(with.halo, cols.clone());
                    links.put(link, &newest.row(with.edge, cols), &next)?;
                }
                Ok(Some(links.sync()?))
            }
            Means::Messages { messages, turn } => {
                for Piece { with, strip, cols } in pieces {
                    // Messages of two steps may overtake each other, those of three cannot.
                    let tag = 2 * strip + *turn;
                    messages.spawn_send(&newest.row(with.edge, cols.clone()), with.rank, tag)?;
                    messages.spawn_receive(&newest.row(with.halo, cols), with.rank, tag)?;
                }
                *turn = 1 - *turn;
                Ok(None)
            }
        }
    }

    /// Ends what was prepared. Nothing may be under way.
    pub(super) fn end(self) -> Result<(), Error> {
        let (ctx, slots) = match self.means {
            Means::Windows { ctx, slots, .. } | Means::Links { ctx, slots, .. } => (ctx, slots),
            Means::Messages { .. } => return Ok(()),
        };
        for slot in slots {
            ctx.deregister(slot)?;
        }
        Ok(())
    }
}

/// Makes a link for every piece.
async fn link(ctx: &Context, neighbours: &Neighbours, band: &Band) -> Result<PingPong<f64>, Error> {
    let link = |Piece { with, cols, .. }: Piece| {
        let fields = [band.newest(), band.other()];
        let places = fields.map(|field| field.row(with.halo, cols.clone()));
        Ok(Link { peer: ctx.peer(with.rank as u32)?, places })
    };
    let links = pieces(neighbours, band).map(link).collect::<Result<Vec<_>, Error>>()?;
    Ok(ctx.ping_pong(LANE, &links).await?)
}

fn spawn_windows<'a>(
    ctx: &Context,
    band: &Band,
    slot: &MemorySlot<f64>,
    pieces: impl Iterator<Item = Piece<'a>> + Clone,
    Protocol { transfer, mut mode }: Protocol,
) -> Result<SyncHandle, Error> {
    let matrix = band.newest();
    for Piece { with, cols, .. } in pieces.clone() {
        let peer = ctx.peer(with.rank as u32)?;
        let at = |row: usize| slot.at(peer, row * matrix.cols() + cols.start);
        match transfer {
            Transfer::Put => ctx.put(&matrix.row(with.edge, cols.clone()), at(with.its_halo))?,
            Transfer::Get => ctx.get(at(with.its_edge), &matrix.row(with.halo, cols.clone()))?,
        }
    }

    if let Arrivals::Msg(count) = &mut mode.arrivals {
        *count = pieces.clone().count() as u32;
    }
    let sync = pieces.fold(ctx.sync(mode), |sync, Piece { with, cols, .. }| match transfer {
        Transfer::Put => sync.window(&matrix.row(with.halo, cols)),
        Transfer::Get => sync.expose(&matrix.row(with.edge, cols)),
    });
    Ok(sync.spawn()?)
}

/// What is exchanged in a step: a piece of a row for each neighbour and strip.
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
