//! The exchange of the outermost rows between neighbours.

use std::cell::RefCell;
use std::ops::Range;

use talpf::{Context, DoubleBufferedChannel, Lane, Link, MemorySlot, SyncHandle};
use talpf_runtime::Token;

use super::band::Band;
use crate::Error;
use crate::heat::{Neighbour, Neighbours};
use crate::jacobi::Problem;
use crate::run::{Messages, Place, Protocol, RankContext, Round, Step, Transfer};

/// How puts reach the halos of a neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
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

/// Slots are those of the matrices that even steps write, and odd ones.
enum Means {
    Windows { ctx: Context, protocol: Protocol, slots: [MemorySlot<f64>; 2], order: Token },
    Links { ctx: Context, links: RefCell<DoubleBufferedChannel<f64>>, slots: [MemorySlot<f64>; 2] },
    Messages(Messages),
}

impl Exchange {
    /// Prepares the exchange of the halos of `band`. Collective.
    pub(super) async fn new(
        ctx: &RankContext,
        problem: &Problem,
        way: Way,
        band: &Band,
    ) -> Result<Self, Error> {
        let neighbours = Neighbours::new(ctx, problem);
        let means = match ctx {
            RankContext::TwoSided(messages) => Means::Messages(messages.clone()),
            RankContext::OneSided(ctx, protocol) => {
                let even = ctx.register_global(band.after(0)).await?;
                let slots = [even, ctx.register_global(band.after(1)).await?];
                match way {
                    Way::Windows => {
                        let order = Token::new(ctx.group())?;
                        Means::Windows { ctx: ctx.clone(), protocol: *protocol, slots, order }
                    }
                    Way::Links => {
                        let links = RefCell::new(link(ctx, &neighbours, band).await?);
                        Means::Links { ctx: ctx.clone(), links, slots }
                    }
                }
            }
        };
        Ok(Self { neighbours, means })
    }

    /// Declares the exchange of what step `number` writes in `band`, a piece for each strip, and
    /// the end of its round, if rounds end; where that is spawned, hands out what to wait for.
    ///
    /// **Panics**: links that are replayed. Their places are in use from one step to the next, so
    /// that a graph would never get them.
    pub(super) fn declare<'a>(
        &'a self,
        band: &'a Band,
        number: usize,
        step: Step<'_, 'a>,
    ) -> Result<Option<SyncHandle>, Error> {
        let pieces = pieces(&self.neighbours, band);
        let (newest, other) = (band.after(number), band.before(number));
        let edge = |piece: &Piece<'_>| newest.row(piece.with.edge, piece.cols.clone());
        let halo = |piece: &Piece<'_>| newest.row(piece.with.halo, piece.cols.clone());
        match &self.means {
            Means::Windows { ctx, protocol, slots, order } => {
                let place = |Piece { with, cols, .. }: Piece<'_>| {
                    let row = match protocol.transfer {
                        Transfer::Put => with.its_halo,
                        Transfer::Get => with.its_edge,
                    };
                    let (slot, rank) = (slots[number % 2].clone(), ctx.peer(with.rank as u32)?);
                    Ok(Place { slot, rank, index: row * newest.cols() + cols.start })
                };
                let (protocol, lane) = (*protocol, Lane::default());
                let given = pieces.clone().map(|piece| edge(&piece)).collect();
                let taken = pieces.clone().map(|piece| halo(&piece)).collect();
                let places = pieces.map(place).collect::<Result<_, Error>>()?;
                Round { ctx, protocol, lane, order, given, taken, places }.declare(step)
            }
            Means::Links { links, .. } => {
                assert!(matches!(step, Step::Spawned(_)), "links are not replayed");
                let mut links = links.borrow_mut();
                for (link, piece) in pieces.enumerate() {
                    let next = other.row(piece.with.halo, piece.cols.clone());
                    links.put(link, &edge(&piece), &next)?;
                }
                Ok(Some(links.sync()?))
            }
            Means::Messages(messages) => {
                for piece in pieces {
                    // Messages of two steps may overtake each other, those of three cannot.
                    let (rank, tag) = (piece.with.rank, 2 * piece.strip + number % 2);
                    messages.declare_send(step, &edge(&piece), rank, tag)?;
                    messages.declare_receive(step, &halo(&piece), rank, tag)?;
                }
                Ok(None)
            }
        }
    }

    /// Ends what was prepared. Nothing may be under way.
    pub(super) fn end(self) -> Result<(), Error> {
        let (ctx, slots) = match self.means {
            Means::Windows { ctx, slots, .. } | Means::Links { ctx, slots, .. } => (ctx, slots),
            Means::Messages(_) => return Ok(()),
        };
        for slot in slots {
            ctx.deregister(slot)?;
        }
        Ok(())
    }
}

/// Makes a link for every piece.
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
    Ok(ctx.double_buffered_channel(LANE, &links).await?)
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
