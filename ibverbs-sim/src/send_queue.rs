//! Send queues: a [`Gate`] and the retry queue that it guards.
//!
//! A poster that finds the gate idle carries its requests out itself. The rest of a batch whose
//! first request stalls, and requests posted while another thread holds the gate, wait in the retry
//! queue; the thread that ends the hold or the stall carries them out. The protocol is that of
//! `gate`; the loops that follow it are all here, and the models of `loom_tests` drive them.
//!
//! Requests enter the retry queue and `QUEUED` is set under one lock, so no thread sees a flag
//! without a request, or a request without the flag.

use std::collections::VecDeque;

use talpf_primitives::Mutex;

use crate::gate::{Gate, GateGuard, GateHeld, PostLimit};

/// State of a request after an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The request has ended, with or without success.
    Done,
    /// The request waits for a receive, a response or a deadline; the thread that brings it resumes
    /// the queue.
    Stalled,
}

/// A request that owns what it points to, so that it can be queued.
pub(crate) trait Stored {
    /// The request as it is posted.
    type Request<'a>;

    fn store(request: &Self::Request<'_>) -> Self;

    fn as_request(&self) -> Self::Request<'_>;
}

/// Carries out requests `R` for the holder of a `T`.
pub(crate) trait Execute<T, R: Stored> {
    fn execute(&mut self, value: &mut T, held: GateHeld<'_>, request: &R::Request<'_>) -> Progress;

    /// Notes requests that were put into the retry queue as they were posted, behind one that has
    /// stalled or another thread carries out.
    fn queued(&mut self, _requests: &[R::Request<'_>]) {}
}

/// The send queue of a queue pair. `T` is the state that belongs to the holder of the gate.
pub(crate) struct SendQueue<T, R> {
    gate: Gate<T>,
    retry_queue: Mutex<VecDeque<R>>,
}

impl<T, R: Stored> SendQueue<T, R> {
    pub(crate) fn new(value: T) -> Self {
        Self { gate: Gate::new(value), retry_queue: Mutex::new(VecDeque::new()) }
    }

    /// Returns the number of requests ever posted, wrapping.
    #[inline]
    pub(crate) fn posted(&self) -> u32 {
        self.gate.posted()
    }

    /// Returns `true` if everything that was posted has been carried out.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.gate.is_idle()
    }

    /// Waits until a hold that is under way at the call has ended.
    pub(crate) fn wait_for_holder(&self) {
        self.gate.wait_for_holder();
    }

    /// Posts as many of `requests` as `post_limit` grants and returns their number. `execute`
    /// carries them out, here or in a later call of one of these functions.
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

    /// Queues requests for the holder of the gate, or for the thread that ends the stall.
    #[cold]
    fn queue(
        &self,
        requests: &[R::Request<'_>],
        post_limit: PostLimit,
        mut execute: impl Execute<T, R>,
    ) -> usize {
        let stored: Vec<_> = requests.iter().map(R::store).collect();
        let mut retry_queue = self.retry_queue.lock();
        let granted = self.gate.enqueue(requests.len() as u32, post_limit) as usize;
        retry_queue.extend(stored.into_iter().take(granted));
        drop(retry_queue);
        execute.queued(&requests[..granted]);
        self.drain(execute);
        granted
    }

    /// Puts the rest of a batch in front of the retry queue, since it was posted first, and stalls.
    #[cold]
    fn stall_batch(
        &self,
        guard: GateGuard<'_, T>,
        rest: &[R::Request<'_>],
        mut execute: impl Execute<T, R>,
    ) {
        let mut retry_queue = self.retry_queue.lock();
        for request in rest.iter().rev() {
            retry_queue.push_front(R::store(request));
        }
        guard.set_queued();
        drop(retry_queue);
        execute.queued(&rest[1..]);
        if let Err(resumed) = guard.stall() {
            drop(resumed);
            self.drain(execute);
        }
    }

    /// Carries out the retry queue until it is empty or stalls, unless another thread does.
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

    /// Resumes a stalled request, because the event that it waits for may have occurred.
    pub(crate) fn resume(&self, execute: impl Execute<T, R>) {
        if self.gate.resume() {
            self.drain(execute);
        }
    }

    /// Changes the state of the holder, waiting for a holder to release the gate. Control path
    /// only.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T), execute: impl Execute<T, R>) {
        let mut guard = self.gate.enter_blocking();
        change(&mut guard);
        if guard.release() {
            self.drain(execute);
        }
    }

    /// Passes an event to the holder's state, waiting for a holder to release the gate, and goes on
    /// with requests that stalled.
    pub(crate) fn deliver<E: Execute<T, R>>(
        &self,
        handle: impl FnOnce(&mut T, GateHeld<'_>, &mut E),
        mut execute: E,
    ) {
        let mut guard = self.gate.enter_blocking();
        let (value, held) = guard.parts();
        handle(value, held, &mut execute);
        guard.clear_stalled();
        if guard.release() {
            self.drain(execute);
        }
    }

    /// Discards the retry queue, and passes `reset` the count of everything posted so far.
    /// `execute` discards requests that are posted in the meantime.
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
