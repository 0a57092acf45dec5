//! The exchange of the outermost rows between neighbours.

use std::ops::Range;

use talpf::{Arrivals, Context, Lane, Link, PingPong, Rank, SyncHandle, SyncMode};

use super::band::Band;
use crate::Error;
use crate::jacobi::Problem;

/// How halos travel and rounds end: all that tells one `talpf-*` variant from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(Way);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Through windows. The number of arrivals under `Msg` is filled in by each rank.
    Windows(Transfer, SyncMode),
    /// Into the halos of the two matrices in turn, unchecked; counts exchanged once.
    PingPong,
}

/// Who moves a halo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transfer {
    /// Its owner's neighbour, into a window on it.
    Put,
    /// Its owner, from rows that the neighbour exposes.
    Get,
}

impl Protocol {
    /// Puts; counts exchanged in every round, and a barrier.
    pub const DEFAULT: Self = Self::put(SyncMode::DEFAULT);
    /// Puts; counts exchanged once.
    pub const CACHED: Self = Self::put(SyncMode::CACHED);
    /// Puts; counts exchanged once, and a barrier in every round.
    pub const CACHED_BARRIER: Self = Self::put(SyncMode::CACHED.with_barrier());
    /// Puts; counts exchanged once, and acknowledgements in every round.
    pub const CACHED_ACK: Self = Self::put(SyncMode::CACHED.with_ack());
    /// Puts without windows; counts exchanged once.
    pub const RAW_CACHED: Self = Self(Way::PingPong);
    /// Puts; every rank knows how many arrive.
    pub const MSG: Self = Self::put(SyncMode::msg(0));
    /// Gets; counts exchanged in every round, and a barrier.
    pub const GET: Self = Self(Way::Windows(Transfer::Get, SyncMode::DEFAULT));

    const fn put(mode: SyncMode) -> Self {
        Self(Way::Windows(Transfer::Put, mode))
    }
}

/// What the links take for themselves; the rounds of windows are those of lane 0.
const LANE: Lane = Lane(1);

/// What one rank exchanges in every step.
pub(super) struct Exchange {
    neighbours: Vec<Neighbour>,
    means: Means,
}

enum Means {
    Windows(Transfer, SyncMode),
    /// A link for every piece.
    Links(PingPong<f64>),
}

/// A neighbour, and the rows that it shares with this rank; rows are those of the matrices with
/// their halos, here and there.
struct Neighbour {
    rank: Rank,
    edge: usize,
    halo: usize,
    its_edge: usize,
    its_halo: usize,
}

impl Exchange {
    /// Prepares the exchange of the halos of `band`, of the newest matrix first. Collective.
    pub(super) async fn new(
        ctx: &Context,
        problem: &Problem,
        Protocol(way): Protocol,
        band: &Band,
    ) -> Result<Self, Error> {
        let neighbours = neighbours(ctx, problem)?;
        let means = match way {
            Way::Windows(transfer, mode) => Means::Windows(transfer, mode),
            Way::PingPong => {
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
            Means::Windows(transfer, mode) => spawn_windows(ctx, band, pieces, *transfer, *mode),
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
    transfer: Transfer,
    mut mode: SyncMode,
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
    neighbours: &'a [Neighbour],
    band: &'a Band,
) -> impl Iterator<Item = (&'a Neighbour, Range<usize>)> + Clone {
    neighbours.iter().flat_map(|with| band.strip_cols().map(move |cols| (with, cols)))
}

fn neighbours(ctx: &Context, problem: &Problem) -> Result<Vec<Neighbour>, Error> {
    let (here, ranks) = (ctx.rank().0 as usize, ctx.ranks() as usize);
    let rows_of = |rank| problem.band(rank, ranks).len();
    let rows = rows_of(here);
    let mut neighbours = Vec::with_capacity(2);
    if let Some(above) = here.checked_sub(1) {
        let its_rows = rows_of(above);
        neighbours.push(Neighbour {
            rank: ctx.peer(above as u32)?,
            edge: 1,
            halo: 0,
            its_edge: its_rows,
            its_halo: its_rows + 1,
        });
    }
    if here + 1 < ranks {
        neighbours.push(Neighbour {
            rank: ctx.peer(here as u32 + 1)?,
            edge: rows,
            halo: rows + 1,
            its_edge: 1,
            its_halo: 0,
        });
    }
    Ok(neighbours)
}
