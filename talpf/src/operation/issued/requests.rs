//! The requests of a long operation, which are posted a batch at a time.
//!
//! The last one has the immediate, which announces the operation to its target, and the completion. If the device
//! copies data as it is posted, the notice is a request of its own, without data, and the completion is that of the
//! data: the memory returns before the target has taken the notice.

use ibverbs_sim::{
    Error as DeviceError, Operation as Request, Payload, SendFlags, SendWorkRequest,
};
use smallvec::SmallVec;

use super::Issued;
use crate::endpoint::{Endpoint, SIGNAL_EVERY, silent};
use crate::operation::Verb;
use crate::operation::payloads::{Memory, Payloads};

/// Largest number of requests of a long operation that are posted at once.
const BATCH: usize = SIGNAL_EVERY as usize;

impl Issued {
    /// Posts the requests that are not posted yet, in order. Those that fit are posted even if the
    /// others fail.
    pub(super) fn post_rest(&mut self, wr_id: u64, endpoint: &Endpoint) -> Result<(), DeviceError> {
        let (limits, target) = ((endpoint.max_sge, endpoint.max_transfer), self.at.target);
        loop {
            let mut payloads = Payloads::new(&self.memory, &self.at, limits, self.position);
            let mut requests = SmallVec::<[SendWorkRequest<'_>; BATCH]>::new();
            let is_end = self.next_requests(&mut payloads, wr_id, &mut requests);
            let (count, result) = match endpoint.post(target, &requests) {
                Ok(()) => (requests.len(), Ok(())),
                Err(error) => (error.index, Err(error.reason)),
            };
            if result.is_err() {
                payloads = Payloads::new(&self.memory, &self.at, limits, self.position);
                payloads.by_ref().take(count).for_each(drop);
            }
            self.position = payloads.position();
            self.posted += count;
            if self.ends_with_data() && payloads.is_at_end() && self.posted > 0 {
                // The completion of the data may come before the notice is posted.
                self.wr_id = None;
            }
            if is_end || result.is_err() {
                return result;
            }
        }
    }

    /// Returns `true` if the completion of the operation is that of its data, which the notice follows.
    fn ends_with_data(&self) -> bool {
        self.round.sender.peers.is_mapped(self.at.target)
    }

    /// Adds the requests of the next payloads, at most a batch. Only the last one has an immediate.
    /// Some of the others are signalled, so that send slots are freed however many there are. Returns
    /// `true` if the last one is among them.
    fn next_requests<'m>(
        &self,
        payloads: &mut Payloads<'m>,
        wr_id: u64,
        requests: &mut SmallVec<[SendWorkRequest<'m>; BATCH]>,
    ) -> bool {
        let (remote, ends_with_data) = (self.at.remote, self.ends_with_data());
        let has_notice = ends_with_data || self.verb != Verb::Put;
        while requests.len() < BATCH
            && let Some((remote, payload)) = payloads.next()
        {
            let operation = match self.verb.bringing(remote) {
                Some(request) => request,
                None if payloads.is_at_end() && !has_notice => {
                    Request::WriteWithImmediate { remote, immediate: self.immediate() }
                }
                None => Request::Write { remote },
            };
            requests.push(silent(operation, payload));
            if (self.posted + requests.len()).is_multiple_of(SIGNAL_EVERY as usize)
                && let Some(request) = requests.last_mut()
            {
                request.flags = SendFlags::SIGNALLED;
            }
        }
        let mut is_signalled = self.posted > 0;
        if ends_with_data
            && payloads.is_at_end()
            && let Some(last) = requests.last_mut()
        {
            (last.wr_id, last.flags) = (wr_id, SendFlags::SIGNALLED);
            is_signalled = true;
        }
        if !payloads.is_at_end() || requests.len() == BATCH && has_notice {
            return false;
        }
        if matches!(self.memory, Memory::Posted) {
            requests.push(silent(Request::Write { remote }, Payload::Gather(&[])));
        } else if has_notice || requests.is_empty() {
            let request = Request::WriteWithImmediate { remote, immediate: self.immediate() };
            requests.push(silent(request, Payload::Gather(&[])));
        }
        let is_alone = requests.len() == 1;
        if let Some(last) = requests.last_mut() {
            last.flags = SendFlags::SIGNALLED | SendFlags::FENCE;
            if !(ends_with_data && is_signalled) {
                last.wr_id = wr_id;
            } else if !is_alone {
                // The completion of the data before it frees the slots up to there, and a later one this.
                last.flags = SendFlags::FENCE;
            }
        }
        true
    }
}
