//! Exchange of regions with other ranks, over the communication of a variant.

use talpf::{Context, Lane, NotifiedTask, OneSided, RemoteRegion};
use talpf_runtime::Region;

use super::{Messages, Protocol, RankContext, Step, Transfer};
use crate::Error;

/// Exchange of a rank with the others. It is declared in each step that has it.
pub(crate) enum Exchange {
    /// Messages.
    Messages(Messages),
    /// Puts that each notify the target.
    Notified(Context),
    /// Puts or gets in rounds of a lane, that of the context if there is no other; or, in steps with
    /// a queue, puts of the superstep.
    Rounds { ctx: Context, lane: Option<Lane>, protocol: Protocol },
}

/// Region of a rank that goes to another rank, or comes from it.
pub(crate) struct Piece<'a, 'p, D> {
    pub(crate) region: Region<'a, f64, D>,
    /// Rank at the other end.
    pub(crate) peer: usize,
    /// Tag of the message, and id of the notification. Of pieces with the same tag, only one is
    /// under way to a rank.
    pub(crate) tag: usize,
    /// Region at the other end, which variants with messages do not need.
    pub(crate) remote: Option<RemoteRegion<'p, f64>>,
}

impl Exchange {
    /// Creates an exchange whose rounds, if any, are those of the context.
    pub(crate) fn new(ctx: &RankContext) -> Self {
        Self::with_lane(ctx, None)
    }

    /// Creates an exchange whose rounds are those of a lane.
    ///
    /// **Errors**: a lane that is in use.
    pub(crate) fn on_lane(ctx: &RankContext, number: u8) -> Result<Self, Error> {
        let lane = match ctx {
            RankContext::OneSided(ctx, _) => Some(ctx.lane(number)?),
            RankContext::TwoSided(_) => None,
        };
        Ok(Self::with_lane(ctx, lane))
    }

    fn with_lane(ctx: &RankContext, lane: Option<Lane>) -> Self {
        match ctx {
            RankContext::TwoSided(messages) => Self::Messages(messages.clone()),
            RankContext::OneSided(ctx, Protocol { is_notified: true, .. }) => {
                Self::Notified(ctx.clone())
            }
            RankContext::OneSided(ctx, protocol) => {
                Self::Rounds { ctx: ctx.clone(), lane, protocol: *protocol }
            }
        }
    }

    /// Declares the exchange in a step: this rank sends and receives pieces, and its round, if it
    /// has one, ends.
    pub(crate) fn declare<'a, 'p, D: Send + Sync + 'static>(
        &'a self,
        step: Step<'_, 'a>,
        mut sent: impl Iterator<Item = Piece<'a, 'p, D>>,
        mut received: impl Iterator<Item = Piece<'a, 'p, D>> + Clone,
    ) -> Result<(), Error> {
        match self {
            Self::Messages(messages) => {
                sent.try_for_each(|Piece { region, peer, tag, .. }| {
                    messages.declare_send(&step, &region, peer, tag)
                })?;
                received.try_for_each(|Piece { region, peer, tag, .. }| {
                    messages.declare_receive(&step, &region, peer, tag)
                })
            }
            Self::Notified(ctx) => {
                for piece in sent {
                    ctx.put_notify(&piece.region, piece.remote(), piece.tag as u32, 0)?;
                }
                for Piece { region, tag, .. } in received {
                    let inbox = ctx.notifications().inbox(&region, tag as u32)?;
                    ctx.group().task("receive").inline().inbox(&inbox).spawn(drop)?;
                }
                Ok(())
            }
            Self::Rounds { ctx, lane, protocol } => {
                if let Some(mut bsp) = step.queue() {
                    return sent.try_for_each(|piece| Ok(bsp.put(&piece.region, piece.remote())?));
                }
                let scope = step.on(lane.as_ref().unwrap_or(ctx))?;
                let sync = scope.sync(protocol.mode.expecting(received.clone().count() as u32));
                let sync = match protocol.transfer {
                    Transfer::Put => {
                        sent.try_for_each(|piece| scope.put(&piece.region, piece.remote()))?;
                        received.fold(sync, |sync, piece| sync.window(&piece.region))
                    }
                    Transfer::Get => {
                        received.try_for_each(|piece| scope.get(piece.remote(), &piece.region))?;
                        sent.fold(sync, |sync, piece| sync.expose(&piece.region))
                    }
                };
                Ok(sync.spawn()?)
            }
        }
    }
}

impl<'p, D> Piece<'_, 'p, D> {
    fn remote(&self) -> RemoteRegion<'p, f64> {
        self.remote.expect("pieces of one-sided variants have a remote region")
    }
}
