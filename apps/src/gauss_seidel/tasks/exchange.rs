//! Exchange of outermost rows between neighbours, a piece for each block column.

use std::ops::Range;

use talpf::{Arrivals, Context, Decomposition, Face, Halo, Lane, NotifiedTask, OneSided, Rank};
use talpf_runtime::Matrix;

use crate::Error;
use crate::run::{Messages, Protocol, RankContext, Step};

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
    Puts { protocol: Protocol, halo: Halo<f64>, lanes: Vec<LaneColumns> },
    /// Puts with notifications of two ids for each block column, one for each neighbour.
    NotifiedPuts { ctx: Context, halo: Halo<f64> },
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
            RankContext::OneSided(ctx, Protocol { is_notified: true, .. }) => {
                let ids = u32::try_from(2 * columns).unwrap_or(u32::MAX);
                ctx.resize_notifications(ids)?;
                Means::NotifiedPuts { ctx: ctx.clone(), halo: Halo::new(ctx, parts, field).await? }
            }
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
                let halo = Halo::new(ctx, parts, field).await?;
                Means::Puts { protocol: *protocol, halo, lanes }
            }
        };
        let mut faces = vec![Vec::new(); columns];
        for face in parts.faces(Rank(ctx.rank() as u32))? {
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
            Means::NotifiedPuts { ctx, halo } => {
                for column in 0..self.faces.len() {
                    for face in sent(column) {
                        let to = face.neighbour.0 as usize;
                        halo.put_face_notify(ctx, face, id_from(self.rank, to, column), 0)?;
                    }
                    for face in received(column) {
                        let from = face.neighbour.0 as usize;
                        let id = id_from(from, self.rank, column);
                        let inbox = ctx.notifications().inbox(&face.halo_of(field), id)?;
                        let task = ctx.group().task("receive").inline();
                        task.inbox(&inbox).spawn(drop)?;
                    }
                }
            }
            Means::Puts { halo, .. } if halo.faces().is_empty() => {}
            Means::Puts { protocol, halo, lanes } => {
                if let Some(mut bsp) = step.queue() {
                    let mut sent = (0..self.faces.len()).flat_map(sent);
                    return Ok(sent.try_for_each(|face| halo.queue_face(&mut bsp, face))?);
                }
                for LaneColumns { lane, columns } in lanes {
                    let scope = step.on(lane)?;
                    for face in columns.clone().flat_map(sent) {
                        halo.put_face(&scope, face)?;
                    }
                    let received: Vec<_> = columns.clone().flat_map(received).collect();
                    let sync = scope.sync(protocol.mode.expecting(received.len() as u32));
                    let windows = received.iter().map(|face| face.halo_of(field));
                    windows.fold(sync, |sync, halo| sync.window(&halo)).spawn()?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the id at rank `to` of the pieces of block column `column` that its neighbour `from` puts.
fn id_from(from: usize, to: usize, column: usize) -> u32 {
    2 * column as u32 + u32::from(from < to)
}
