//! The requests of a queue pair: a [`Gate`] and the backlog that it guards.
//!
//! A poster that finds the gate idle carries its requests out itself. The rest of a batch whose
//! first request stalls, and requests posted while another thread holds the gate, wait in the
//! backlog; whoever ends the hold or the stall carries them out. The protocol is that of `gate`;
//! the loops that follow it are all here, and the models of `loom_tests` drive them.
//!
//! Requests enter the backlog and `QUEUED` is set under one lock, so a flag without a request, or
//! a request without the flag, is seen by nobody.

use std::collections::VecDeque;

use talpf_primitives::Mutex;

use crate::gate::{Gate, GateGuard, GateHeld, PostLimit};

/// Where a request is after an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It has ended, well or not.
    Done,
    /// It waits for a receive or for time, and whoever brings that resumes the queue.
    Stalled,
}

/// A request that owns what it points to, so that it can wait.
pub(crate) trait Stored {
    /// The request as it is posted.
    type Request<'a>;

    fn store(request: &Self::Request<'_>) -> Self;

    fn as_request(&self) -> Self::Request<'_>;
}

/// Carries out requests `R` for the holder of a `T`.
pub(crate) trait Execute<T, R: Stored> {
    fn execute(&mut self, value: &mut T, held: GateHeld<'_>, request: &R::Request<'_>) -> Progress;
}

/// See the module text. `T` is what belongs to the holder.
pub(crate) struct SendQueue<T, R> {
    gate: Gate<T>,
    retry_queue: Mutex<VecDeque<R>>,
}

impl<T, R: Stored> SendQueue<T, R> {
    pub(crate) fn new(value: T) -> Self {
        Self { gate: Gate::new(value), retry_queue: Mutex::new(VecDeque::new()) }
    }

    /// Counts the requests that were ever posted, wrapping.
    #[inline]
    pub(crate) fn posted(&self) -> u32 {
        self.gate.posted()
    }

    /// Returns whether everything that was posted has been carried out.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.gate.is_idle()
    }

    /// Returns once a hold that is under way at the call has ended.
    pub(crate) fn wait_for_holder(&self) {
        self.gate.wait_for_holder();
    }

    /// Posts as many of `requests` as `room` grants and returns their number. `execute` carries
    /// them out, here or in a later call of one of these functions.
    #[inline]
    pub(crate) fn post(
        &self,
        requests: &[R::Request<'_>],
        post_limit: impl Fn() -> PostLimit,
        mut execute: impl Execute<T, R>,
    ) -> usize {
        let Some((mut guard, granted)) = self.gate.enter(requests.len() as u32, post_limit())
        else {
            return self.queue(requests, post_limit(), execute);
        };
        for (index, request) in requests[..granted as usize].iter().enumerate() {
            let (value, held) = guard.parts();
            if execute.execute(value, held, request) == Progress::Stalled {
                self.stall_batch(guard, &requests[index..granted as usize], execute);
                return granted as usize;
            }
        }
        if guard.release() {
            self.drain(execute);
        }
        granted as usize
    }

    /// Leaves requests to whoever holds the gate, or to whoever ends the stall.
    #[cold]
    fn queue(
        &self,
        requests: &[R::Request<'_>],
        post_limit: PostLimit,
        execute: impl Execute<T, R>,
    ) -> usize {
        let stored: Vec<_> = requests.iter().map(R::store).collect();
        let mut retry_queue = self.retry_queue.lock();
        let granted = self.gate.enqueue(requests.len() as u32, post_limit) as usize;
        retry_queue.extend(stored.into_iter().take(granted));
        drop(retry_queue);
        self.drain(execute);
        granted
    }

    /// Puts the rest of a batch in front of the backlog: it was posted first.
    #[cold]
    fn stall_batch(
        &self,
        guard: GateGuard<'_, T>,
        rest: &[R::Request<'_>],
        execute: impl Execute<T, R>,
    ) {
        let mut retry_queue = self.retry_queue.lock();
        for request in rest.iter().rev() {
            retry_queue.push_front(R::store(request));
        }
        guard.set_queued();
        drop(retry_queue);
        if let Err(resumed) = guard.stall() {
            drop(resumed);
            self.drain(execute);
        }
    }

    /// Carries out the backlog as far as it goes, unless another thread does.
    pub(crate) fn drain(&self, mut execute: impl Execute<T, R>) {
        while let Some(mut guard) = self.gate.enter_to_drain() {
            loop {
                let next = {
                    let mut retry_queue = self.retry_queue.lock();
                    let next = retry_queue.pop_front();
                    if next.is_none() {
                        guard.clear_queued();
                    }
                    next
                };
                let Some(stored) = next else { break };
                let (value, held) = guard.parts();
                let progress = execute.execute(value, held, &stored.as_request());
                match progress {
                    Progress::Done => guard.renew(),
                    Progress::Stalled => {
                        self.retry_queue.lock().push_front(stored);
                        match guard.stall() {
                            Ok(()) => return,
                            Err(resumed) => guard = resumed,
                        }
                    }
                }
            }
        }
    }

    /// Takes up a request that is stalled, since what it waits for may have come.
    pub(crate) fn resume(&self, execute: impl Execute<T, R>) {
        if self.gate.resume() {
            self.drain(execute);
        }
    }

    /// Changes what belongs to the holder, waiting for one to leave. Control path only.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T), execute: impl Execute<T, R>) {
        let mut guard = self.gate.enter_blocking();
        change(&mut guard);
        if guard.release() {
            self.drain(execute);
        }
    }

    /// Discards the backlog, and gives `reset` the count of everything posted so far. `execute`
    /// discards what is posted meanwhile.
    pub(crate) fn clear(&self, reset: impl FnOnce(&mut T, u32), execute: impl Execute<T, R>) {
        let mut guard = self.gate.enter_blocking();
        let mut retry_queue = self.retry_queue.lock();
        let discarded = std::mem::take(&mut *retry_queue);
        guard.clear_queued_and_stalled();
        let posted = self.gate.posted();
        drop(retry_queue);
        reset(&mut guard, posted);
        if guard.release() {
            self.drain(execute);
        }
        drop(discarded);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests;
