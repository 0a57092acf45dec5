//! The exchange of the outermost rows between neighbours.

use std::ops::Range;

use talpf::{Arrivals, Context, Lane, Link, PingPong, SyncHandle};

use super::band::Band;
use crate::Error;
use crate::heat::{Neighbour, Neighbours};
use crate::jacobi::Problem;
use crate::run::{Protocol, Transfer};

/// How halos travel and rounds end: all that tells one `talpf-*` variant from another.
#[derive(Clone, Copy, Debug)]
pub(in crate::jacobi) enum Way {
    /// Through windows.
    Windows(Protocol),
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

enum Means {
    Windows(Protocol),
    /// A link for every piece.
    Links(PingPong<f64>),
}

impl Exchange {
    /// Prepares the exchange of the halos of `band`, of the newest matrix first. Collective.
    pub(super) async fn new(
        ctx: &Context,
        problem: &Problem,
        way: Way,
        band: &Band,
    ) -> Result<Self, Error> {
        let neighbours = Neighbours::new(ctx, problem)?;
        let means = match way {
            Way::Windows(protocol) => Means::Windows(protocol),
            Way::Links => {
                let link = |(with, cols): (&Neighbour, Range<usize>)| {
                    let fields = [band.newest(), band.other()];
                    let places = fields.map(|field| field.matrix.row(with.halo, cols.clone()));
                    Link { peer: with.rank, places }
                };
                let links: Vec<_> = pieces(&neighbours, band).map(link).collect();
                Means::Links(ctx.ping_pong(LANE, &links).await?)
            }
        };
        Ok(Self { neighbours, means })
    }

    /// Spawns the exchange of the newest matrix of `band`, a piece for each strip, and the sync
    /// that ends its round.
    pub(super) fn spawn(&mut self, ctx: &Context, band: &Band) -> Result<SyncHandle, Error> {
        let pieces = pieces(&self.neighbours, band);
        match &mut self.means {
            Means::Windows(protocol) => spawn_windows(ctx, band, pieces, *protocol),
            Means::Links(links) => {
                let (newest, other) = (&band.newest().matrix, &band.other().matrix);
                for (link, (with, cols)) in pieces.enumerate() {
                    let next = other.row(with.halo, cols.clone());
                    links.put(link, &newest.row(with.edge, cols), &next)?;
                }
                Ok(links.sync()?)
            }
        }
    }
}

fn spawn_windows<'a>(
    ctx: &Context,
    band: &Band,
    pieces: impl Iterator<Item = (&'a Neighbour, Range<usize>)> + Clone,
    Protocol { transfer, mut mode }: Protocol,
) -> Result<SyncHandle, Error> {
    let field = band.newest();
    let matrix = &field.matrix;
    for (with, cols) in pieces.clone() {
        let at = |row: usize| field.slot.at(with.rank, row * matrix.cols() + cols.start);
        match transfer {
            Transfer::Put => ctx.put(&matrix.row(with.edge, cols.clone()), at(with.its_halo))?,
            Transfer::Get => ctx.get(at(with.its_edge), &matrix.row(with.halo, cols.clone()))?,
        }
    }

    if let Arrivals::Msg(count) = &mut mode.arrivals {
        *count = pieces.clone().count() as u32;
    }
    let sync = pieces.fold(ctx.sync(mode), |sync, (with, cols)| match transfer {
        Transfer::Put => sync.window(&matrix.row(with.halo, cols)),
        Transfer::Get => sync.expose(&matrix.row(with.edge, cols)),
    });
    Ok(sync.spawn()?)
}

/// What is exchanged in a step: a piece of a row for each neighbour and strip.
fn pieces<'a>(
    neighbours: &'a Neighbours,
    band: &'a Band,
) -> impl Iterator<Item = (&'a Neighbour, Range<usize>)> + Clone {
    neighbours.iter().flat_map(|with| band.strip_cols().map(move |cols| (with, cols)))
}
