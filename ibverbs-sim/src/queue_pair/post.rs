//! Posting: checks of requests, and their hand-over to the queues.

use crate::{
    Error, Payload, PostError, QueuePair, QueuePairState, ReceiveWorkRequest, Result,
    SendWorkRequest, attributes::within, deferred::Deferred, queue_pair::QueuePairCore,
};

impl QueuePair {
    /// Posts send requests in order. They are carried out before this returns, unless they have to
    /// wait or another thread is carrying out requests of this queue pair, which then carries them
    /// out.
    ///
    /// Requests of one queue pair start, take effect and complete in the order of posting; requests
    /// of other threads do not get in between those of one batch. In ERROR they are flushed. Data
    /// that a request returns from another process is there for a later one only if that has
    /// [`SendFlags::FENCE`](crate::SendFlags::FENCE).
    ///
    /// **Completion**: posted. Inline bytes and lists may be reused; memory that a list names
    /// belongs to the device until the completion of this or a later request of this queue pair.
    /// **Errors**: the first request that is refused, because it is not valid or no slot is free.
    /// Those before it are posted.
    /// **Cost**: no allocation unless a request has to wait.
    pub fn post_send(&self, requests: &[SendWorkRequest<'_>]) -> Result<(), PostError> {
        let mut deferred = Deferred::default();
        let posted = self.core.post_send(requests, false, &mut deferred);
        deferred.run();
        posted
    }

    /// Posts all requests or none; otherwise as [`QueuePair::post_send`]. The extended interface of
    /// verbs does the same between `ibv_wr_start` and `ibv_wr_complete`.
    ///
    /// **Errors**: the first request that is not valid; index 0 if fewer slots are free than there
    /// are requests. Nothing is posted.
    pub fn post_send_all(&self, requests: &[SendWorkRequest<'_>]) -> Result<(), PostError> {
        let mut deferred = Deferred::default();
        let posted = self.core.post_send(requests, true, &mut deferred);
        deferred.run();
        posted
    }

    /// Posts receives in order, and resumes a peer that waits for them. In ERROR they are flushed.
    ///
    /// **Errors**: the queue pair is in RESET or has a shared receive queue; otherwise the first
    /// receive that is refused, because its list is too long or no slot is free. Those before it
    /// are posted.
    pub fn post_receive(&self, requests: &[ReceiveWorkRequest<'_>]) -> Result<(), PostError> {
        let mut deferred = Deferred::default();
        let posted = self.core.post_receive(requests, &mut deferred);
        deferred.run();
        posted
    }
}

impl QueuePairCore {
    #[inline]
    fn post_send(
        &self,
        requests: &[SendWorkRequest<'_>],
        all_or_none: bool,
        deferred: &mut Deferred,
    ) -> Result<(), PostError> {
        let mut refusal = None;
        let mut wanted = requests.len();
        for (index, request) in requests.iter().enumerate() {
            if let Err(reason) = self.check_request(request) {
                if all_or_none {
                    return Err(PostError { index, reason });
                }
                (refusal, wanted) = (Some(reason), index);
                break;
            }
        }
        self.check_state(QueuePairState::ReadyToSend, "post_send")?;
        let post_limit = || self.post_limit(wanted as u32, all_or_none);
        let posted = self.sends.post(&requests[..wanted], post_limit, self.executor(deferred));
        if posted == requests.len() {
            return Ok(());
        }
        let full = Error::QueueFull { capacity: self.limits.max_send_wr };
        let reason = if posted < wanted { full } else { refusal.unwrap_or(full) };
        Err(PostError { index: posted, reason })
    }

    fn post_receive(
        &self,
        requests: &[ReceiveWorkRequest<'_>],
        deferred: &mut Deferred,
    ) -> Result<(), PostError> {
        if self.shared_receives {
            let reason = Error::HasSharedReceiveQueue { queue_pair: self.number };
            return Err(PostError { index: 0, reason });
        }
        self.check_state(QueuePairState::Init, "post_receive")?;
        let posted = self.receives.post(requests, deferred);
        // Posting ends with a full fence: either this sees the state ERROR, or the flush sees the
        // receives.
        if self.state.load() == QueuePairState::Error {
            self.flush(deferred);
        }
        posted
    }

    /// Returns an error if the state is before `least`.
    #[inline]
    fn check_state(&self, least: QueuePairState, what: &'static str) -> Result<(), PostError> {
        let state = self.state.load();
        if (state as u8) < least as u8 {
            let reason = Error::InvalidState { queue_pair: self.number, state, what };
            return Err(PostError { index: 0, reason });
        }
        Ok(())
    }

    #[inline]
    fn check_request(&self, request: &SendWorkRequest<'_>) -> Result<()> {
        match request.payload {
            Payload::Inline(_) if request.operation.returns_data() => Err(Error::InlineTarget),
            Payload::Inline(bytes) => {
                within("max_inline_data", bytes.len() as u64, self.limits.max_inline_data as u64)
            }
            Payload::Gather(list) => {
                within("max_send_sge", list.len() as u64, self.limits.max_send_sge as u64)
            }
        }
    }
}
