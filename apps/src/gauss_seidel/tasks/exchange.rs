//! Exchange of outermost rows between neighbours, a piece for each block column.

use std::ops::Range;

use talpf::{Arrivals, Context, Lane, MemorySlot};
use talpf_runtime::Matrix;

use crate::Error;
use crate::heat::Neighbours;
use crate::run::{Messages, Protocol, RankContext, RemotePiece, Round, Step};

/// Number of lanes beside that of the superstep. More block columns share lanes.
const LANES: usize = 255;

/// Exchange of one rank in its supersteps.
pub(super) struct Exchange {
    rank: usize,
    neighbours: Neighbours,
    means: Means,
}

enum Means {
    /// Puts through windows, on lanes.
    Puts { ctx: Context, protocol: Protocol, slot: MemorySlot<f64>, lanes: Vec<LaneColumns> },
    /// Messages with tags of block columns.
    Messages(Messages),
}

/// Lane with the numbers of its block columns.
struct LaneColumns {
    lane: Lane,
    columns: Range<usize>,
}

impl Exchange {
    /// Prepares the exchange of the outermost rows of `field` in as many pieces as block columns.
    /// Collective.
    pub(super) async fn new(
        ctx: &RankContext,
        neighbours: Neighbours,
        field: &Matrix<f64>,
        columns: usize,
    ) -> Result<Self, Error> {
        let means = match ctx {
            RankContext::TwoSided(messages) => Means::Messages(messages.clone()),
            RankContext::OneSided(ctx, protocol) => {
                let (first, share) = match protocol.mode.arrivals {
                    Arrivals::Msg(_) => (1, columns.div_ceil(LANES)),
                    _ => (0, columns),
                };
                let lane = |(number, start): (usize, usize)| {
                    let columns = start..columns.min(start + share);
                    Ok(LaneColumns { lane: ctx.lane(first + number as u8)?, columns })
                };
                let lanes = (0..columns).step_by(share).enumerate().map(lane);
                let lanes = lanes.collect::<Result<_, Error>>()?;
                let slot = ctx.register_global(field).await?;
                Means::Puts { ctx: ctx.clone(), protocol: *protocol, slot, lanes }
            }
        };
        Ok(Self { rank: ctx.rank(), neighbours, means })
    }

    /// Declares the exchange of a superstep: this rank sends its outermost rows if it computes, and
    /// receives those of the neighbours that do.
    pub(super) fn declare<'a>(
        &'a self,
        field: &'a Matrix<f64>,
        columns: &[Range<usize>],
        computes: impl Fn(usize) -> bool,
        step: Step<'_, 'a>,
    ) -> Result<(), Error> {
        let sources = || self.neighbours.iter().filter(|with| computes(with.rank));
        let targets = || self.neighbours.iter().filter(|_| computes(self.rank));
        let piece = |row, column: usize| field.row(row, columns[column].clone());
        match &self.means {
            Means::Messages(messages) => {
                for column in 0..columns.len() {
                    for with in targets() {
                        messages.declare_send(
                            &step,
                            &piece(with.edge, column),
                            with.rank,
                            column,
                        )?;
                    }
                    for with in sources() {
                        let halo = piece(with.halo, column);
                        messages.declare_receive(&step, &halo, with.rank, column)?;
                    }
                }
            }
            Means::Puts { ctx, protocol, slot, lanes } => {
                for LaneColumns { lane, columns: numbers } in lanes {
                    let (mut given, mut taken, mut remotes) = (Vec::new(), Vec::new(), Vec::new());
                    for column in numbers.clone() {
                        for with in targets() {
                            given.push(piece(with.edge, column));
                            let rank = ctx.peer(with.rank as u32)?;
                            let rows = with.its_halo..with.its_halo + 1;
                            let (slot, cols) = (slot.clone(), columns[column].clone());
                            remotes.push(RemotePiece { slot, rank, rows, cols });
                        }
                        taken.extend(sources().map(|with| piece(with.halo, column)));
                    }
                    let round = Round { protocol: *protocol, lane, given, taken, remotes };
                    round.declare(step)?;
                }
            }
        }
        Ok(())
    }
}
