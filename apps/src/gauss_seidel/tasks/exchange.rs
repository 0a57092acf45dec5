//! Exchange of outermost rows between neighbours, a piece for each block column.

use std::ops::Range;

use talpf::{Arrivals, Decomposition, Face, Lane, MemorySlot, Rank};
use talpf_runtime::Matrix;

use crate::Error;
use crate::run::{Messages, Protocol, RankContext, RemotePiece, Round, Step};

/// Number of lanes beside those of the superstep and of the residual. More block columns share
/// lanes.
const LANES: usize = 254;

/// Exchange of one rank in its supersteps.
pub(super) struct Exchange {
    rank: usize,
    /// Faces of each block column.
    faces: Vec<Vec<Face>>,
    means: Means,
}

enum Means {
    /// Puts through windows, on lanes.
    Puts { protocol: Protocol, slot: MemorySlot<f64>, lanes: Vec<LaneColumns> },
    /// Messages with tags of block columns.
    Messages(Messages),
}

/// Lane with the numbers of its block columns.
struct LaneColumns {
    lane: Lane,
    columns: Range<usize>,
}

impl Exchange {
    /// Prepares the exchange of the faces of `field`, which are cut into as many pieces as there are
    /// block columns. Collective.
    pub(super) async fn new(
        ctx: &RankContext,
        parts: &Decomposition,
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
                Means::Puts { protocol: *protocol, slot, lanes }
            }
        };
        let mut faces = vec![Vec::new(); columns];
        for face in parts.faces(Rank(ctx.rank() as u32)) {
            faces[face.piece].push(face);
        }
        Ok(Self { rank: ctx.rank(), faces, means })
    }

    /// Declares the exchange of a superstep: this rank sends its outermost rows if it computes, and
    /// receives those of the neighbours that do.
    pub(super) fn declare<'a>(
        &'a self,
        field: &'a Matrix<f64>,
        computes: impl Fn(usize) -> bool,
        step: Step<'_, 'a>,
    ) -> Result<(), Error> {
        let sends = computes(self.rank);
        let sent = |column: usize| self.faces[column].iter().filter(move |_| sends);
        let received = |column: usize| {
            self.faces[column].iter().filter(|face| computes(face.neighbour.0 as usize))
        };
        match &self.means {
            Means::Messages(messages) => {
                for column in 0..self.faces.len() {
                    for face in sent(column) {
                        let to = face.neighbour.0 as usize;
                        messages.declare_send(&step, &face.edge_of(field), to, column)?;
                    }
                    for face in received(column) {
                        let from = face.neighbour.0 as usize;
                        messages.declare_receive(&step, &face.halo_of(field), from, column)?;
                    }
                }
            }
            Means::Puts { protocol, slot, lanes } => {
                for LaneColumns { lane, columns } in lanes {
                    let sent = || columns.clone().flat_map(sent);
                    let received = columns.clone().flat_map(received);
                    let remote = |face: &Face| RemotePiece::of(slot, face.neighbour, face.its_halo);
                    let round = Round {
                        protocol: *protocol,
                        lane,
                        given: sent().map(|face| face.edge_of(field)).collect(),
                        taken: received.map(|face| face.halo_of(field)).collect(),
                        remotes: sent().map(remote).collect(),
                    };
                    round.declare(step)?;
                }
            }
        }
        Ok(())
    }
}
