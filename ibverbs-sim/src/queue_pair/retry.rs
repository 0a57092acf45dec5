//! Retries: the waits of a request that cannot be carried out yet, and their limits.

/// Value of `rnr_retry` that stands for no limit.
pub(crate) const RETRY_FOR_EVER: u8 = 7;

/// Event that the request at the head of a send queue waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WaitReason {
    #[default]
    Nothing,
    Receive,
    Response,
}

/// Waits of one request, from its first attempt to its end.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    reason: WaitReason,
    /// Number of waits that may still begin.
    left: u8,
    /// End of the current wait; `None` if it has no deadline.
    deadline_ns: Option<u64>,
    /// End of the link's delay of this attempt; `None` if it delays none.
    link_ns: Option<u64>,
    /// Number of attempts without a response so far.
    pub(crate) attempts: u32,
    /// `true` once the link's delay of this attempt is over.
    pub(crate) was_delayed: bool,
}

/// Error of a request that has used up its retries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Retry {
    /// Handles an attempt at which the peer had no receive. A wait lasts `period_ns`; `retries`
    /// waits may begin.
    pub(crate) fn receiver_not_ready(
        &mut self,
        now_ns: u64,
        period_ns: u64,
        retries: u8,
    ) -> Result<(), Exhausted> {
        let timed = retries != RETRY_FOR_EVER;
        self.wait(WaitReason::Receive, now_ns, timed.then_some(period_ns), retries).map(drop)
    }

    /// Handles an attempt without a response. A wait lasts `timeout_ns`, or has no end if that is
    /// 0; after the first, `retries` more may begin.
    pub(crate) fn no_response(
        &mut self,
        now_ns: u64,
        timeout_ns: u64,
        retries: u8,
    ) -> Result<(), Exhausted> {
        let period = (timeout_ns != 0).then_some(timeout_ns);
        if self.wait(WaitReason::Response, now_ns, period, retries + 1)? {
            self.attempts += 1;
            self.was_delayed = false;
        }
        Ok(())
    }

    /// Delays this attempt by the link. Retries that were made before still count.
    pub(crate) fn delay(&mut self, until_ns: u64) {
        self.link_ns = Some(until_ns);
    }

    /// Returns `false` while the link delays the message.
    #[inline]
    pub(crate) fn may_try(&mut self, now_ns: impl FnOnce() -> u64) -> bool {
        self.link_ns.is_none() || self.has_been_delayed(now_ns())
    }

    /// Returns `true` if the delay of the link is over, after which a wait begins anew.
    #[cold]
    fn has_been_delayed(&mut self, now_ns: u64) -> bool {
        if self.link_ns.is_some_and(|until| until > now_ns) {
            return false;
        }
        self.link_ns = None;
        self.was_delayed = true;
        self.deadline_ns = self.deadline_ns.map(|_| now_ns);
        true
    }

    /// Returns `true` if the wait for a response has reached its deadline, and the link does not delay
    /// the next attempt.
    pub(crate) fn is_expired(&mut self, now_ns: u64) -> bool {
        self.reason == WaitReason::Response
            && self.deadline_ns.is_some_and(|deadline| deadline <= now_ns)
            && self.may_try(|| now_ns)
    }

    /// Returns the time of the next attempt; `None` if the wait has no deadline.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.link_ns.or(self.deadline_ns)
    }

    /// Begins a wait for `reason` unless one is under way that has not reached its deadline.
    /// Returns `true` if a wait has begun; an attempt in the middle of a wait changes nothing.
    fn wait(
        &mut self,
        reason: WaitReason,
        now_ns: u64,
        period_ns: Option<u64>,
        waits: u8,
    ) -> Result<bool, Exhausted> {
        if self.reason != reason {
            self.reason = reason;
            self.left = waits;
            self.deadline_ns = period_ns.map(|_| now_ns);
        }
        let (Some(deadline), Some(period)) = (self.deadline_ns, period_ns) else {
            return Ok(false);
        };
        if deadline > now_ns {
            return Ok(false);
        }
        self.left = self.left.checked_sub(1).ok_or(Exhausted)?;
        self.deadline_ns = Some(deadline.saturating_add(period.max(1)));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_receive_retry_fails_at_once_and_one_fails_after_one_wait() {
        assert_eq!(Retry::default().receiver_not_ready(0, 10, 0), Err(Exhausted));
        let mut retry = Retry::default();
        assert_eq!(retry.receiver_not_ready(0, 10, 1), Ok(()));
        assert_eq!(retry.receiver_not_ready(9, 10, 1), Ok(()));
        assert_eq!(retry.receiver_not_ready(10, 10, 1), Err(Exhausted));
    }

    #[test]
    fn no_answer_waits_once_more_than_it_retries() {
        let mut retry = Retry::default();
        assert_eq!(retry.no_response(5, 10, 1), Ok(()));
        assert_eq!(retry.no_response(15, 10, 1), Ok(()));
        assert_eq!(retry.no_response(24, 10, 1), Ok(()));
        assert_eq!(retry.no_response(25, 10, 1), Err(Exhausted));
        assert_eq!(retry.attempts, 2);
    }

    #[test]
    fn a_delay_of_the_link_gives_no_retries_back() {
        let mut retry = Retry::default();
        assert_eq!(retry.no_response(0, 10, 1), Ok(()));
        retry.delay(40);
        assert!(!retry.may_try(|| 39) && retry.may_try(|| 40) && retry.was_delayed);
        assert_eq!(retry.no_response(40, 10, 1), Ok(()));
        assert_eq!(retry.deadline_ns(), Some(50));
        retry.delay(60);
        assert_eq!(retry.deadline_ns(), Some(60));
        assert!(!retry.is_expired(59) && retry.is_expired(60));
        assert_eq!(retry.no_response(60, 10, 1), Err(Exhausted));
    }
}
