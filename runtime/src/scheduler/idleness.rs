//! Waiting for a worker to have nothing else to do, and what it looks for meanwhile.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use talpf_primitives::{AtomicBool, AtomicU64, Mutex, Ordering, assert_nothing_held};

use super::Shared;
use super::meter::Meter;
use super::time::{NEVER, nanoseconds};
use crate::task::{is_for_task_of, note_wait};

/// What waits for one worker to have nothing else to do.
///
/// The worker attends to them when it is idle. The others leave that to it, as two workers that took
/// turns with one poller would pass its memory to and fro for nothing, unless it is in a task or
/// something has waited too long.
pub(crate) struct IdleWaiters {
    queue: Mutex<VecDeque<Waiter>>,
    /// When the first one of them will have waited too long.
    first_ns: AtomicU64,
}

/// A task that waits for idleness.
pub(super) struct Waiter {
    watch: Arc<Watch<dyn Look>>,
    waker: Waker,
    /// When it will have waited too long.
    latest_ns: u64,
}

/// What is looked for as long as a task waits.
pub(super) struct Watch<L: ?Sized> {
    latest: Duration,
    /// True if a task of the runtime waits, and not a thread outside.
    of_task: bool,
    /// Whether somebody has looked since it was last late.
    looked: AtomicBool,
    /// Whether the task has stopped waiting.
    over: AtomicBool,
    look: L,
}

/// The condition that a worker in no task looks for.
pub(super) type Looking = RefCell<Option<Arc<Watch<dyn Look>>>>;

/// A look, and what it has found for a task that may have gone on meanwhile, to look by itself. Of
/// what several find at the same time one is kept.
struct Looker<F, T> {
    look: F,
    /// Or what the look has panicked with.
    found: Mutex<Option<thread::Result<T>>>,
    has_found: AtomicBool,
}

pub(super) trait Look: Send + Sync {
    /// Whether something is found, or was.
    fn look(&self) -> bool;
}

impl<F, T> Looker<F, T> {
    fn new(look: F) -> Arc<Self> {
        Arc::new(Looker { look, found: Mutex::default(), has_found: AtomicBool::new(false) })
    }
}

impl<F: Fn() -> Option<T> + Send + Sync, T: Send> Look for Arc<Looker<F, T>> {
    fn look(&self) -> bool {
        if self.has_found.load(Ordering::Acquire) {
            return true;
        }
        assert_nothing_held("a look");
        let Some(found) = catch_unwind(AssertUnwindSafe(&self.look)).transpose() else {
            return false;
        };
        let mut kept = self.found.lock();
        let surplus = if kept.is_some() { Some(found) } else { kept.replace(found) };
        drop(kept);
        self.has_found.store(true, Ordering::Release);
        // The program's: after the lock, and after the task can see that something is found.
        drop(surplus);
        true
    }
}

impl<L: Look + ?Sized> Watch<L> {
    /// Whether the task is to go on.
    fn ends(&self) -> bool {
        self.looked.store(true, Ordering::Relaxed);
        self.is_over() || self.look.look()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns whether this look is for a task that is not complete.
    ///
    /// **Ordering**: of a spawn that was counted before, behind a fence, either this sees that the task
    /// has gone on, or who sees that the task is complete sees the count.
    pub(super) fn is_for_task(&self) -> bool {
        self.of_task && !self.is_over()
    }
}

impl<F, T> Watch<Arc<Looker<F, T>>> {
    fn new(latest: Duration, of_task: bool, look: Arc<Looker<F, T>>) -> Arc<Self> {
        let (looked, over) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Watch { latest, of_task, looked, over, look })
    }

    /// The task goes on, with what was found.
    fn end(&self) -> Option<thread::Result<T>> {
        self.over.store(true, Ordering::Relaxed);
        self.look.found.lock().take()
    }
}

impl Waiter {
    /// Wakes the task.
    pub(super) fn wake(self) {
        self.waker.wake();
    }
}

impl IdleWaiters {
    pub(super) fn new() -> Self {
        IdleWaiters { queue: Mutex::default(), first_ns: AtomicU64::new(NEVER) }
    }

    pub(super) fn add(&self, waiter: Waiter) {
        let mut queue = self.queue.lock();
        queue.push_back(waiter);
        self.note_first(&queue);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first_ns.load(Ordering::Relaxed) == NEVER
    }

    #[inline]
    pub(super) fn is_late(&self, now_ns: u64) -> bool {
        self.first_ns.load(Ordering::Relaxed) <= now_ns
    }

    /// Looks for what the first one waits for, and wakes it if that is there. Whether any waits.
    pub(super) fn attend(&self, meter: &Meter, looking: &Looking) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut queue = self.queue.lock();
        let Some(first) = queue.front() else { return false };
        looking.replace(Some(Arc::clone(&first.watch)));
        if queue.len() > 1 {
            queue.rotate_left(1);
        }
        drop(queue);
        let ends = looking.borrow().as_ref().is_some_and(|watch| watch.ends());
        let Some(watch) = looking.take().filter(|_| ends) else {
            meter.count_poll_pass();
            return true;
        };
        let mut queue = self.queue.lock();
        let place = queue.iter().position(|waiter| Arc::ptr_eq(&waiter.watch, &watch));
        let ended = place.and_then(|place| queue.remove(place));
        self.note_first(&queue);
        drop(queue);
        ended.into_iter().for_each(Waiter::wake);
        true
    }

    /// Takes them all out.
    pub(super) fn take_all(&self) -> VecDeque<Waiter> {
        let mut queue = self.queue.lock();
        let waiters = std::mem::take(&mut *queue);
        self.note_first(&queue);
        waiters
    }

    /// Takes out the one that waits longest.
    pub(super) fn pop(&self) -> Option<Waiter> {
        let mut queue = self.queue.lock();
        let first = queue.pop_front();
        self.note_first(&queue);
        first
    }

    /// Takes out those that have waited too long, and for which nobody has looked meanwhile, to be
    /// woken.
    pub(super) fn take_late(&self, now_ns: u64) -> Vec<Waiter> {
        let mut late = Vec::new();
        let mut queue = self.queue.lock();
        for _ in 0..queue.len() {
            let Some(mut waiter) = queue.pop_front() else { break };
            let watch = &waiter.watch;
            let looked = || watch.looked.swap(false, Ordering::Relaxed) && !watch.is_over();
            if waiter.latest_ns > now_ns {
                queue.push_back(waiter);
            } else if looked() {
                waiter.latest_ns = now_ns.saturating_add(nanoseconds(watch.latest));
                queue.push_back(waiter);
            } else {
                late.push(waiter);
            }
        }
        self.note_first(&queue);
        late
    }

    fn note_first(&self, queue: &VecDeque<Waiter>) {
        let first_ns = queue.iter().map(|waiter| waiter.latest_ns).min().unwrap_or(NEVER);
        self.first_ns.store(first_ns, Ordering::Relaxed);
    }
}

/// As [`Group::idle`](crate::Group::idle).
pub(crate) async fn idle(shared: &Arc<Shared>, latest: Duration) {
    Idle::new(shared, latest, &Looker::new(|| Some(()))).await;
}

/// As [`Group::idle_until`](crate::Group::idle_until).
pub(crate) async fn idle_until<T: Send + 'static>(
    shared: &Arc<Shared>,
    latest: Duration,
    look: impl Fn() -> Option<T> + Send + Sync + 'static,
) -> T {
    let looker = Looker::new(look);
    loop {
        if let Some(found) = (looker.look)() {
            return found;
        }
        if let Some(found) = Idle::new(shared, latest, &looker).await {
            return found;
        }
    }
}

/// Completes with what a look finds, by this worker when it has nothing else to do; with nothing if
/// nobody looks for `latest`, or something else wakes the task. Suspends once at least.
struct Idle<'a, F, T> {
    shared: &'a Arc<Shared>,
    watch: Arc<Watch<Arc<Looker<F, T>>>>,
    added: bool,
}

impl<'a, F, T> Idle<'a, F, T> {
    fn new(shared: &'a Arc<Shared>, latest: Duration, looker: &Arc<Looker<F, T>>) -> Self {
        let of_task = is_for_task_of(shared);
        Idle { shared, watch: Watch::new(latest, of_task, Arc::clone(looker)), added: false }
    }
}

impl<F, T> Future for Idle<'_, F, T>
where
    F: Fn() -> Option<T> + Send + Sync + 'static,
    T: Send + 'static,
{
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        if std::mem::replace(&mut self.added, true) {
            let found = self.watch.end();
            return Poll::Ready(
                found.map(|found| found.unwrap_or_else(|panic| resume_unwind(panic))),
            );
        }
        let shared = self.shared;
        let watch = Arc::clone(&self.watch);
        let latest_ns = shared.clock.now_ns().saturating_add(nanoseconds(watch.latest));
        let seat = super::worker_index(shared);
        let waiter = Waiter { watch, waker: cx.waker().clone(), latest_ns };
        shared.seats[seat.unwrap_or(0)].idle_waiters.add(waiter);
        if seat.is_none() {
            shared.wake_one();
        }
        note_wait("an idle worker");
        Poll::Pending
    }
}

impl<F, T> Drop for Idle<'_, F, T> {
    fn drop(&mut self) {
        self.watch.over.store(true, Ordering::Relaxed);
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use loom::thread;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The task, woken `late`, goes on with what was found, or waits anew: then it gets the new watch.
    fn go_on<F: Fn() -> Option<()> + Send + Sync + 'static>(
        waiters: &IdleWaiters,
        watch: &Watch<Arc<Looker<F, ()>>>,
        waker: &Waker,
    ) -> Option<Arc<Watch<Arc<Looker<F, ()>>>>> {
        if watch.end().is_some() {
            return None;
        }
        let anew = Watch::new(Duration::ZERO, true, Arc::clone(&watch.look));
        let (watch, waker) = (Arc::clone(&anew) as Arc<_>, waker.clone());
        waiters.add(Waiter { watch, waker, latest_ns: 0 });
        Some(anew)
    }

    #[test]
    fn what_is_found_while_the_task_is_late_is_there_when_it_waits_again() {
        loom::model(|| {
            let (waiters, woken) = (Arc::new(IdleWaiters::new()), Arc::new(Woken::default()));
            let waker = Waker::from(Arc::clone(&woken));
            // There is one thing to find.
            let finds = AtomicUsize::new(0);
            let looker =
                Looker::new(move || (finds.fetch_add(1, Ordering::Relaxed) == 0).then_some(()));
            let watch = Watch::new(Duration::ZERO, true, looker);
            let first =
                Waiter { watch: Arc::clone(&watch) as Arc<_>, waker: waker.clone(), latest_ns: 0 };
            waiters.add(first);
            let late = {
                let (waiters, watch) = (Arc::clone(&waiters), Arc::clone(&watch));
                thread::spawn(move || {
                    let late = waiters.take_late(1).pop();
                    late.map(|late| {
                        late.wake();
                        go_on(&waiters, &watch, &waker)
                    })
                })
            };
            waiters.attend(&Meter::new(), &Looking::default());
            let anew = match late.join().unwrap() {
                None => return assert!(watch.end().is_some(), "woken by who has found it"),
                Some(anew) => anew,
            };
            if let Some(anew) = anew {
                waiters.attend(&Meter::new(), &Looking::default());
                assert!(anew.end().is_some(), "a find is lost");
            }
            assert!(waiters.is_empty());
            let wakes = woken.0.load(Ordering::Relaxed);
            assert!((1..=2).contains(&wakes), "{wakes} wakes");
        });
    }
}
