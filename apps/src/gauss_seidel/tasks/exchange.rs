//! Exchange of outermost rows between neighbours, a piece for each block column.

use std::ops::Range;

use talpf::{Arrivals, Decomposition, Face, Rank};
use talpf_runtime::Matrix;

use crate::Error;
use crate::heat::FieldHalo;
use crate::run::{Exchange, Protocol, RankContext, Step};

/// Number of lanes beside those of the superstep and of the residual. More block columns share
/// lanes.
const LANES: usize = 254;

/// Exchange of one rank in its supersteps.
pub(super) struct RowExchange {
    rank: usize,
    halo: FieldHalo,
    /// Faces of each block column.
    faces: Vec<Vec<Face>>,
    /// Exchanges with the numbers of their block columns: several if rounds are those of lanes.
    exchanges: Vec<(Exchange, Range<usize>)>,
}

impl RowExchange {
    /// Prepares the exchange of the faces of `field`, which are cut into as many pieces as there are
    /// block columns. Collective.
    pub(super) async fn new(
        ctx: &RankContext,
        parts: &Decomposition,
        field: &Matrix<f64>,
        columns: usize,
    ) -> Result<Self, Error> {
        let exchanges = match ctx {
            RankContext::OneSided(_, Protocol { mode, .. })
                if matches!(mode.arrivals, Arrivals::Msg(_)) =>
            {
                let share = columns.div_ceil(LANES);
                let exchange = |(lane, start): (u8, usize)| {
                    Ok((Exchange::on_lane(ctx, lane)?, start..columns.min(start + share)))
                };
                (1..)
                    .zip((0..columns).step_by(share))
                    .map(exchange)
                    .collect::<Result<_, Error>>()?
            }
            _ => vec![(Exchange::new(ctx), 0..columns)],
        };
        if let RankContext::OneSided(ctx, Protocol { is_notified: true, .. }) = ctx {
            ctx.resize_notifications(u32::try_from(2 * columns).unwrap_or(u32::MAX))?;
        }
        let mut faces = vec![Vec::new(); columns];
        for face in parts.faces(Rank(ctx.rank() as u32))? {
            faces[face.piece].push(face);
        }
        let halo = FieldHalo::new(ctx, parts, field).await?;
        Ok(Self { rank: ctx.rank(), halo, faces, exchanges })
    }

    /// Declares the exchange of a superstep: this rank sends its outermost rows if it computes, and
    /// receives those of the neighbours that do. A rank without neighbours declares nothing.
    pub(super) fn declare<'a>(
        &'a self,
        computes: impl Fn(usize) -> bool,
        step: Step<'_, 'a>,
    ) -> Result<(), Error> {
        if self.faces.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let (here, computes) = (self.rank, &computes);
        for (exchange, columns) in &self.exchanges {
            let faces = self.faces[columns.clone()].iter().flatten();
            let sent = faces.clone().filter(|_| computes(here));
            let received = faces.filter(|face| computes(neighbour(face)));
            exchange.declare(
                step,
                sent.map(|face| self.halo.edge(face, tag(here, neighbour(face), face.piece))),
                received.map(|face| self.halo.halo(face, tag(neighbour(face), here, face.piece))),
            )?;
        }
        Ok(())
    }
}

fn neighbour(face: &Face) -> usize {
    face.neighbour.0 as usize
}

/// Returns the tag of the pieces of a block column from one rank to another: two tags for each
/// column, since notifications of both neighbours come to the same rank.
fn tag(from: usize, to: usize, column: usize) -> usize {
    2 * column + usize::from(from < to)
}
