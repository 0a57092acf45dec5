//! Waiting until a worker has nothing else to do, and the conditions that it polls meanwhile.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use smallvec::SmallVec;
use talpf_primitives::{AtomicBool, AtomicU64, Mutex, Ordering, assert_nothing_held};

use super::current::{index_in, runs_task_of};
use super::meter::Meter;
use super::timers::{NEVER, nanoseconds};
use crate::group::GroupInner;
use crate::record::note_wait;

/// Tasks that wait until one worker has nothing else to do.
///
/// The worker polls their conditions when it is idle. Other workers leave that to it, since two
/// workers that polled in alternation would move the memory of the condition between their caches
/// for nothing, unless the worker is in a task or a task has waited too long.
pub(crate) struct IdleWaiters {
    queue: Mutex<VecDeque<Waiter>>,
    /// Time before which no waiter is removed as late: a bound that additions lower, and that only
    /// [`IdleWaiters::take_late`] raises, so that neither passes through the queue.
    first_ns: AtomicU64,
}

/// Number of late waiters that are removed at once. Each then polls in its task, which takes some hundred
/// nanoseconds from the tasks that workers are busy with.
const MOST_LATE: usize = 4;
/// Time between removals where more tasks wait than are removed at once, at least, and for each waiter
/// that such a removal passes.
const LATE_PAUSE_NS: u64 = 10_000;
const LATE_PAUSE_OF_WAITER_NS: u64 = 100;

/// Polls of an idle worker that another worker's task lasts, so that it is no short one: after a short
/// one that worker polls by itself, and what it polls for should not have moved.
const POLLS_OF_TASK: u32 = 16;

/// The tasks in which an idle worker, which polls, has found the others: the steps of each worker,
/// and the number of polls since.
pub(super) struct OthersTasks(Box<[Cell<(u64, u32)>]>);

impl OthersTasks {
    pub(super) fn new(workers: usize) -> Self {
        OthersTasks((0..workers).map(|_| Cell::default()).collect())
    }

    /// Notes a poll while `worker` is in the task with this number of steps. Returns `true` if that
    /// is no short one.
    pub(super) fn lasts(&self, worker: usize, steps: u64) -> bool {
        let (found, polls) = self.0[worker].get();
        let polls = if found == steps { polls.saturating_add(1) } else { 0 };
        self.0[worker].set((steps, polls));
        polls >= POLLS_OF_TASK
    }
}

/// A task that waits for idleness.
pub(super) struct Waiter {
    watch: Arc<Watch<dyn Condition>>,
    waker: Waker,
    /// Time at which the task will have waited too long.
    latest_ns: u64,
}

/// A condition that is polled as long as a task waits.
pub(super) struct Watch<C: ?Sized> {
    latest: Duration,
    /// `true` if a task of the runtime waits, and not a thread outside.
    of_task: bool,
    /// Set by each poll; cleared when the waiter is found late.
    polled: AtomicBool,
    /// Set once the task has stopped waiting.
    over: AtomicBool,
    condition: C,
}

/// The watch whose condition a worker outside all tasks polls.
pub(super) type CurrentWatch = RefCell<Option<Arc<Watch<dyn Condition>>>>;

/// A closure to poll, and its result, for a task that may have gone on meanwhile and polls by
/// itself. Of several results at the same time one is kept.
struct Poller<F, T> {
    poll: F,
    /// The result, or the payload of a panic.
    found: Mutex<Option<thread::Result<T>>>,
    has_found: AtomicBool,
}

pub(super) trait Condition: Send + Sync {
    /// Polls. Returns `true` if there is a result, of this poll or of an earlier one.
    fn is_met(&self) -> bool;
}

impl<F, T> Poller<F, T> {
    fn new(poll: F) -> Arc<Self> {
        Arc::new(Poller { poll, found: Mutex::default(), has_found: AtomicBool::new(false) })
    }
}

impl<F: Fn() -> Option<T> + Send + Sync, T: Send> Condition for Arc<Poller<F, T>> {
    fn is_met(&self) -> bool {
        if self.has_found.load(Ordering::Acquire) {
            return true;
        }
        assert_nothing_held("a poll of an idle worker");
        let Some(found) = catch_unwind(AssertUnwindSafe(&self.poll)).transpose() else {
            return false;
        };
        let mut kept = self.found.lock();
        let surplus = if kept.is_some() { Some(found) } else { kept.replace(found) };
        drop(kept);
        self.has_found.store(true, Ordering::Release);
        // Drops a value of the program: after the lock, and after the task can see the result.
        drop(surplus);
        true
    }
}

impl<C: Condition + ?Sized> Watch<C> {
    /// Returns `true` if the task may go on.
    fn ends(&self) -> bool {
        self.polled.store(true, Ordering::Relaxed);
        self.is_over() || self.condition.is_met()
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Returns `true` if the poll is for a task that is not complete.
    ///
    /// **Ordering**: for a spawn that was counted before, behind a fence, either this call sees
    /// that the task has gone on, or a thread that sees the task complete also sees the count.
    pub(super) fn is_for_task(&self) -> bool {
        self.of_task && !self.is_over()
    }
}

impl<F, T> Watch<Arc<Poller<F, T>>> {
    fn new(latest: Duration, of_task: bool, condition: Arc<Poller<F, T>>) -> Arc<Self> {
        let (polled, over) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Watch { latest, of_task, polled, over, condition })
    }

    /// Ends the wait, and returns the result if there is one.
    fn end(&self) -> Option<thread::Result<T>> {
        self.over.store(true, Ordering::Relaxed);
        self.condition.found.lock().take()
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
        let first_ns = self.first_ns.load(Ordering::Relaxed).min(waiter.latest_ns);
        queue.push_back(waiter);
        self.first_ns.store(first_ns, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first_ns.load(Ordering::Relaxed) == NEVER
    }

    #[inline]
    pub(super) fn is_late(&self, now_ns: u64) -> bool {
        self.first_ns.load(Ordering::Relaxed) <= now_ns
    }

    /// Returns the time before which no waiter is late, if any task waits.
    pub(super) fn first_ns(&self) -> Option<u64> {
        Some(self.first_ns.load(Ordering::Relaxed)).filter(|first_ns| *first_ns != NEVER)
    }

    /// Polls the condition of the first waiter, and wakes it if there is a result. Returns `true`
    /// if any task waits.
    pub(super) fn attend(&self, meter: &Meter, current: &CurrentWatch) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut queue = self.queue.lock();
        let Some(first) = queue.front() else { return false };
        current.replace(Some(Arc::clone(&first.watch)));
        if queue.len() > 1 {
            queue.rotate_left(1);
        }
        drop(queue);
        let ends = current.borrow().as_ref().is_some_and(|watch| watch.ends());
        let Some(watch) = current.take().filter(|_| ends) else {
            meter.count_poll_pass();
            return true;
        };
        let mut queue = self.queue.lock();
        // It was moved to the end.
        let position = queue.iter().rposition(|waiter| Arc::ptr_eq(&waiter.watch, &watch));
        let ended = position.and_then(|position| queue.remove(position));
        self.note_empty(&queue);
        drop(queue);
        ended.into_iter().for_each(Waiter::wake);
        true
    }

    /// Removes all waiters.
    pub(super) fn take_all(&self) -> VecDeque<Waiter> {
        let mut queue = self.queue.lock();
        let waiters = std::mem::take(&mut *queue);
        self.note_empty(&queue);
        waiters
    }

    /// Removes the waiter that has waited longest.
    pub(super) fn pop(&self) -> Option<Waiter> {
        let mut queue = self.queue.lock();
        let first = queue.pop_front();
        self.note_empty(&queue);
        first
    }

    /// Removes waiters that have waited too long and whose condition nobody has polled meanwhile: those
    /// that have waited longest, a few at once. The caller wakes them.
    pub(super) fn take_late(&self, now_ns: u64) -> SmallVec<[Waiter; MOST_LATE]> {
        let mut late = SmallVec::new();
        let mut first_ns = NEVER;
        let mut queue = self.queue.lock();
        for _ in 0..queue.len() {
            let Some(mut waiter) = queue.pop_front() else { break };
            let watch = &waiter.watch;
            if waiter.latest_ns <= now_ns {
                if watch.polled.swap(false, Ordering::Relaxed) && !watch.is_over() {
                    waiter.latest_ns = now_ns.saturating_add(nanoseconds(watch.latest));
                } else if late.len() < MOST_LATE {
                    late.push(waiter);
                    continue;
                }
            }
            first_ns = first_ns.min(waiter.latest_ns);
            queue.push_back(waiter);
        }
        if queue.len() > MOST_LATE {
            let pause_ns = LATE_PAUSE_NS.max(LATE_PAUSE_OF_WAITER_NS * queue.len() as u64);
            first_ns = first_ns.max(now_ns.saturating_add(pause_ns));
        }
        self.first_ns.store(first_ns, Ordering::Relaxed);
        late
    }

    fn note_empty(&self, queue: &VecDeque<Waiter>) {
        if queue.is_empty() {
            self.first_ns.store(NEVER, Ordering::Relaxed);
        }
    }
}

/// Implements [`Group::idle`](crate::Group::idle), in real time.
pub(crate) async fn idle(group: &Arc<GroupInner>, latest: Duration) {
    Idle::new(group, latest, &Poller::new(|| Some(()))).await;
}

/// Implements [`Group::idle_until`](crate::Group::idle_until).
pub(crate) async fn idle_until<T: Send + 'static>(
    group: &Arc<GroupInner>,
    latest: Duration,
    poll: impl Fn() -> Option<T> + Send + Sync + 'static,
) -> T {
    let poller = Poller::new(poll);
    loop {
        if let Some(found) = (poller.poll)() {
            return found;
        }
        if let Some(found) = Idle::new(group, latest, &poller).await {
            return found;
        }
    }
}

/// A future that completes with the result of a poll, by this worker when it has nothing else to
/// do, or by one of the group's set if this is none, or with nothing if nobody polls for `latest` or something else wakes the task. It suspends
/// at least once.
struct Idle<'a, F, T> {
    group: &'a GroupInner,
    watch: Arc<Watch<Arc<Poller<F, T>>>>,
    added: bool,
}

impl<'a, F, T> Idle<'a, F, T> {
    fn new(group: &'a GroupInner, latest: Duration, poller: &Arc<Poller<F, T>>) -> Self {
        let of_task = runs_task_of(&group.shared);
        Idle { group, watch: Watch::new(latest, of_task, Arc::clone(poller)), added: false }
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
        let GroupInner { shared, set, .. } = self.group;
        let watch = Arc::clone(&self.watch);
        let latest_ns = shared.clock.now_ns().saturating_add(nanoseconds(watch.latest));
        let worker = index_in(set);
        let waiter = Waiter { watch, waker: cx.waker().clone(), latest_ns };
        set.slot(worker.unwrap_or(set.workers().start)).idle_waiters.add(waiter);
        if worker.is_none() {
            set.wake_one();
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

    /// Goes on as a task that was woken `late`: with the result, or waiting anew, in which case the
    /// new watch is returned.
    fn go_on<F: Fn() -> Option<()> + Send + Sync + 'static>(
        waiters: &IdleWaiters,
        watch: &Watch<Arc<Poller<F, ()>>>,
        waker: &Waker,
    ) -> Option<Arc<Watch<Arc<Poller<F, ()>>>>> {
        if watch.end().is_some() {
            return None;
        }
        let anew = Watch::new(Duration::ZERO, true, Arc::clone(&watch.condition));
        let (watch, waker) = (Arc::clone(&anew) as Arc<_>, waker.clone());
        waiters.add(Waiter { watch, waker, latest_ns: 0 });
        Some(anew)
    }

    #[test]
    fn what_is_found_while_the_task_is_late_is_there_when_it_waits_again() {
        loom::model(|| {
            let (waiters, woken) = (Arc::new(IdleWaiters::new()), Arc::new(Woken::default()));
            let waker = Waker::from(Arc::clone(&woken));
            // There is one result.
            let finds = AtomicUsize::new(0);
            let poller =
                Poller::new(move || (finds.fetch_add(1, Ordering::Relaxed) == 0).then_some(()));
            let watch = Watch::new(Duration::ZERO, true, poller);
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
            waiters.attend(&Meter::new(), &CurrentWatch::default());
            let anew = match late.join().unwrap() {
                None => {
                    return assert!(
                        watch.end().is_some(),
                        "woken by the thread that found the result"
                    );
                }
                Some(anew) => anew,
            };
            if let Some(anew) = anew {
                waiters.attend(&Meter::new(), &CurrentWatch::default());
                assert!(anew.end().is_some(), "a result is lost");
            }
            assert!(waiters.is_empty());
            let wakes = woken.0.load(Ordering::Relaxed);
            assert!((1..=2).contains(&wakes), "{wakes} wakes");
        });
    }
}

#[cfg(all(test, not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use super::*;

    fn add(waiters: &IdleWaiters, latest_ns: u64) -> Arc<Watch<dyn Condition>> {
        let watch: Arc<Watch<dyn Condition>> =
            Watch::new(Duration::from_nanos(50), true, Poller::new(|| None::<()>));
        let waker = Waker::noop().clone();
        waiters.add(Waiter { watch: Arc::clone(&watch), waker, latest_ns });
        watch
    }

    #[test]
    fn of_many_waiters_a_few_are_late_at_once_and_the_first_of_them_first() {
        let waiters = IdleWaiters::new();
        let watches: Vec<_> = (0..64).map(|_| add(&waiters, 1)).collect();
        let mut now_ns = 1;
        for expected in watches.chunks(MOST_LATE) {
            assert!(waiters.is_late(now_ns));
            let late = waiters.take_late(now_ns);
            assert_eq!(late.len(), expected.len());
            let same = late.iter().zip(expected);
            assert!(same.into_iter().all(|(late, watch)| Arc::ptr_eq(&late.watch, watch)));
            let first_ns = waiters.first_ns().unwrap_or(now_ns);
            let pause_ns = first_ns.saturating_sub(now_ns);
            assert!(pause_ns == 0 || pause_ns == LATE_PAUSE_NS);
            now_ns += pause_ns;
        }
        assert!(waiters.is_empty());
        // Pauses after all removals but the last two.
        assert_eq!(now_ns, 1 + 14 * LATE_PAUSE_NS);
    }

    #[test]
    fn a_waiter_behind_patient_ones_is_late_and_one_that_was_polled_is_not() {
        let waiters = IdleWaiters::new();
        let (polled, _patient, late) = (add(&waiters, 10), add(&waiters, 1_000), add(&waiters, 20));
        assert_eq!(waiters.first_ns(), Some(10));
        assert!(!polled.ends());
        let found = waiters.take_late(20);
        assert!(matches!(found.as_slice(), [only] if Arc::ptr_eq(&only.watch, &late)));
        assert_eq!(
            waiters.first_ns(),
            Some(70),
            "the one that was polled waits for its 50 ns anew"
        );
    }

    #[test]
    fn a_task_lasts_after_some_polls_of_an_idle_worker_and_short_ones_never_do() {
        let others = OthersTasks::new(3);
        assert!((0..4 * POLLS_OF_TASK).all(|poll| !others.lasts(1, u64::from(2 * poll + 1))));
        let polls = (0..2 * POLLS_OF_TASK).map(|_| (others.lasts(1, 1), others.lasts(2, 5)));
        let first = polls.enumerate().find(|(_, lasts)| *lasts == (true, true));
        assert_eq!(first.map(|(poll, _)| poll as u32), Some(POLLS_OF_TASK));
    }
}
