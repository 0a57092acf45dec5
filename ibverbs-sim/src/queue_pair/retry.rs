//! When a request that cannot go on is tried again, and when it fails.

/// `rnr_retry` of this many means: for ever.
pub(crate) const RETRY_FOR_EVER: u8 = 7;

/// What the request at the head of a send queue waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reason {
    #[default]
    Nothing,
    Receive,
    Response,
    Link,
}

/// The waiting of one request, from its first attempt to its end.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    reason: Reason,
    /// Waits that may still begin.
    left: u8,
    /// When the present wait ends; `None`: it does not by time.
    deadline_ns: Option<u64>,
    /// Attempts without an answer so far.
    pub(crate) attempts: u32,
    /// The link has let this attempt go after holding it.
    pub(crate) was_delayed: bool,
}

/// All retries are used up.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Retry {
    /// The peer has no receive. A wait lasts `period_ns`; `retries` waits may begin.
    pub(crate) fn receiver_not_ready(
        &mut self,
        now_ns: u64,
        period_ns: u64,
        retries: u8,
    ) -> Result<(), Exhausted> {
        let timed = retries != RETRY_FOR_EVER;
        self.wait(Reason::Receive, now_ns, timed.then_some(period_ns), retries).map(drop)
    }

    /// The peer did not answer. A wait lasts `timeout_ns`, or for ever if that is 0; after the
    /// first, `retries` more may begin.
    pub(crate) fn no_response(
        &mut self,
        now_ns: u64,
        timeout_ns: u64,
        retries: u8,
    ) -> Result<(), Exhausted> {
        let period = (timeout_ns != 0).then_some(timeout_ns);
        if self.wait(Reason::Response, now_ns, period, retries + 1)? {
            self.attempts += 1;
            self.was_delayed = false;
        }
        Ok(())
    }

    /// The link holds the message until `until_ns`.
    pub(crate) fn delay(&mut self, until_ns: u64) {
        self.reason = Reason::Link;
        self.deadline_ns = Some(until_ns);
    }

    /// Looks at the time before an attempt: false if the link still holds the message.
    #[inline]
    pub(crate) fn may_try(&mut self, now_ns: impl FnOnce() -> u64) -> bool {
        if self.reason != Reason::Link {
            return true;
        }
        self.was_delayed = self.deadline_ns.is_some_and(|deadline| deadline <= now_ns());
        self.was_delayed
    }

    /// Whether an answer was waited for long enough.
    pub(crate) fn is_expired(&self, now_ns: u64) -> bool {
        self.reason == Reason::Response
            && self.deadline_ns.is_some_and(|deadline| deadline <= now_ns)
    }

    /// When to try again; `None` if time alone brings nothing.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    /// Begins a wait if none for `reason` is under way or the one under way is over. True if it
    /// did; an attempt in the middle of a wait changes nothing.
    fn wait(
        &mut self,
        reason: Reason,
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
}
