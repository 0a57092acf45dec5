//! Start of collectives on the buffers of the program.
#![allow(unsafe_code, reason = "starts collectives on memory that it keeps with them")]

use super::algorithm::Member;
use super::call::{Call, CollectiveKind};
use super::machine;
use super::memory::Memory;
use super::schedule::Schedule;
use crate::buffer::{Buffer, BufferMut};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::operator::Fold;
use crate::rank::Rank;
use crate::request::Request;
use crate::transport::Start;

/// A schedule, and the number of elements on which all ranks have to agree, if there is one.
pub(super) type Planned = Result<(Schedule, Option<usize>), Error>;

impl Communicator {
    /// Starts a collective without data.
    pub(super) fn start_empty(&self, kind: CollectiveKind, schedule: Schedule) -> Request<()> {
        let call = Call { kind, root: None, elements: None };
        self.collective((), Ok(machine::start(self, call, schedule, None)))
    }

    /// Starts a collective that works in place on one buffer. Its schedule follows from the number
    /// of elements, on which all ranks agree.
    pub(super) fn start_in_place<B: BufferMut>(
        &self,
        kind: CollectiveKind,
        root: Option<Rank>,
        mut buffer: B,
        fold: Option<Box<dyn Fold<B::Element>>>,
        schedule: impl FnOnce(Member, usize) -> Result<Schedule, Error>,
    ) -> Request<B> {
        let output = buffer.layout();
        let len = output.len;
        let started = schedule(self.member(), len).map(|schedule| {
            let call = Call { kind, root, elements: Some(len) };
            // SAFETY: the request keeps the buffer, unused, until the collective has ended.
            let memory =
                unsafe { Memory::<B::Element>::new(None, Some(output), schedule.scratch(), fold) };
            machine::start(self, call, schedule, Some(Box::new(memory)))
        });
        self.collective(buffer, started).on_failure(B::undefined)
    }

    /// Starts a collective from one buffer into another. Its schedule follows from the numbers of
    /// elements of the two.
    pub(super) fn start_between<S: Buffer, R: BufferMut<Element = S::Element>>(
        &self,
        kind: CollectiveKind,
        root: Option<Rank>,
        (mut from, mut into): (S, R),
        fold: Option<Box<dyn Fold<S::Element>>>,
        schedule: impl FnOnce(Member, usize, usize) -> Planned,
    ) -> Request<(S, R)> {
        let (input, output) = (from.layout(), into.layout());
        let (sent, received) = (input.len, output.len);
        let started = schedule(self.member(), sent, received).map(|(schedule, elements)| {
            let call = Call { kind, root, elements };
            // SAFETY: the request keeps the buffers, unused, until the collective has ended.
            let memory = unsafe {
                Memory::<S::Element>::new(Some(input), Some(output), schedule.scratch(), fold)
            };
            machine::start(self, call, schedule, Some(Box::new(memory)))
        });
        self.collective((from, into), started)
            .on_failure(|(_from, into), error| into.undefined(error))
    }

    fn collective<B: Send + 'static>(
        &self,
        buffers: B,
        started: Result<Start, Error>,
    ) -> Request<B> {
        let request = self.request(buffers, started);
        if self.is_oversubscribed() { request.without_spinning() } else { request }
    }
}
