//! Short puts: copied straight from the guard, with nothing allocated unless they are parked.

use std::sync::Arc;

use ibverbs_sim::{Error as DeviceError, Operation as Request};

use super::Verb;
use super::issued::{Issued, Memory, Place};
use crate::error::Error;
use crate::immediate::{Immediate, Kind as Announced};
use crate::round::RoundState;
use crate::window::{Claim, Landing, Parked, Post};

/// A put of bytes that its caller lends.
pub(super) struct ShortPut<'a> {
    pub(super) round: &'a Arc<RoundState>,
    pub(super) at: Place,
    pub(super) claim: Claim,
    pub(super) bytes: &'a [u8],
}

impl ShortPut<'_> {
    /// Posts it straight to the device.
    #[inline]
    pub(super) fn post_now(&self) -> Post {
        let Place { target, remote, .. } = self.at;
        let RoundState { world, rank, lane, number, .. } = &**self.round;
        let origin = world.rank(*rank);
        origin.trace_send(&self.at, Verb::Put);
        let immediate = Immediate::new(Announced::Data, *lane, *number).to_bits();
        let request = Request::WriteWithImmediate { remote, immediate };
        match origin.endpoint.post_inline(target, request, self.bytes) {
            Ok(()) => Post::All,
            Err(error) => match error.reason {
                DeviceError::QueueFull { .. } => Post::Nothing,
                reason => {
                    origin.fail_soon(Error::Device(reason));
                    Post::All
                }
            },
        }
    }

    /// The same with a copy of the bytes.
    pub(super) fn to_issued(&self, windowed: bool) -> Issued {
        let memory = Memory::Inline(self.bytes.into());
        Issued::new(self.round, self.at, self.claim, windowed, Verb::Put, memory, None)
    }
}

impl Landing for ShortPut<'_> {
    #[inline]
    fn post(&mut self) -> Post {
        self.post_now()
    }

    fn park(self) -> Box<dyn Parked> {
        self.to_issued(true).park()
    }
}
