use loom::{sync::Arc, thread};
use talpf_primitives::{AtomicU32, Ordering, fence};

use super::*;

/// Explores the schedules with at most `switches` preemptions.
fn model(switches: usize, check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.check(check);
}

const POST_LIMIT: PostLimit = PostLimit { freed: 0, limit: 8, all_or_none: false };

/// A request `n` needs `n` posted receives.
impl<F: FnMut(&mut u32, GateHeld<'_>, &u32) -> Progress> Execute<u32, u32> for F {
    fn execute(&mut self, value: &mut u32, held: GateHeld<'_>, request: &u32) -> Progress {
        self(value, held, request)
    }
}

impl Stored for u32 {
    type Request<'a> = u32;

    fn store(request: &u32) -> u32 {
        *request
    }

    fn as_request(&self) -> u32 {
        *self
    }
}

/// A queue that counts the requests it has carried out.
struct Queue {
    sends: SendQueue<u32, u32>,
    receives: AtomicU32,
}

impl Queue {
    fn new() -> Arc<Self> {
        Arc::new(Self { sends: SendQueue::new(0), receives: AtomicU32::new(0) })
    }

    fn execute(&self) -> impl FnMut(&mut u32, GateHeld<'_>, &u32) -> Progress + '_ {
        |carried_out, _, needed| {
            // loom treats `SeqCst` as `AcqRel`; the fence orders the words of gates and the state
            // that requests read.
            fence(Ordering::SeqCst);
            if self.receives.load(Ordering::SeqCst) < *needed {
                return Progress::Stalled;
            }
            *carried_out += 1;
            Progress::Done
        }
    }

    fn post(&self, requests: &[u32]) {
        self.sends.post(requests, || POST_LIMIT, self.execute());
    }

    fn post_receive(&self) {
        self.receives.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.sends.resume(self.execute());
    }

    fn assert_carried_out(&self, count: u32) {
        assert_eq!(self.sends.posted(), count);
        assert!(self.sends.is_idle());
        self.sends.change(
            |carried_out| assert_eq!(*carried_out, count),
            |_: &mut u32, _: GateHeld<'_>, _: &u32| Progress::Done,
        );
    }
}

fn spawn(queue: &Arc<Queue>, run: impl FnOnce(&Queue) + Send + 'static) -> thread::JoinHandle<()> {
    let queue = Arc::clone(queue);
    thread::spawn(move || run(&queue))
}

#[test]
fn loom_every_post_is_carried_out_once() {
    model(4, || {
        let queue = Queue::new();
        let posters = [(); 2].map(|()| spawn(&queue, |queue| queue.post(&[0])));
        posters.into_iter().for_each(|poster| poster.join().unwrap());
        queue.assert_carried_out(2);
    });
}

/// A batch that stalls in the middle, and the thread that posts the missing receive.
#[test]
fn loom_a_stalled_batch_is_taken_up() {
    model(4, || {
        let queue = Queue::new();
        let owner = spawn(&queue, Queue::post_receive);
        queue.post(&[0, 1, 0]);
        owner.join().unwrap();
        queue.assert_carried_out(3);
    });
}

/// The first hold is resumed without need, and the second stalls while the first is ending: the
/// resumption of the second is not taken for that of the first.
#[test]
fn loom_a_resumption_is_kept_for_the_hold_that_it_came_in() {
    model(3, || {
        let queue = Queue::new();
        let needy = spawn(&queue, |queue| queue.post(&[1]));
        let owner = spawn(&queue, Queue::post_receive);
        let resumed = |carried_out: &mut u32, held: GateHeld<'_>, needed: &u32| {
            if *needed == 0 {
                queue.sends.resume(queue.execute());
            }
            queue.execute()(carried_out, held, needed)
        };
        queue.sends.post(&[0], || POST_LIMIT, resumed);
        needy.join().unwrap();
        owner.join().unwrap();
        queue.assert_carried_out(2);
    });
}

/// A request that is posted or resumed while the control path holds the gate is carried out.
#[test]
fn loom_the_control_path_leaves_nothing_behind() {
    model(3, || {
        let queue = Queue::new();
        let poster = spawn(&queue, |queue| queue.post(&[1]));
        let owner = spawn(&queue, Queue::post_receive);
        queue.sends.change(|_| {}, queue.execute());
        poster.join().unwrap();
        owner.join().unwrap();
        queue.assert_carried_out(1);
    });
}

/// A request that is posted while the queue is cleared is discarded with the others or carried out.
#[test]
fn loom_clearing_leaves_no_request_that_nobody_carries_out() {
    model(3, || {
        let queue = Queue::new();
        let poster = spawn(&queue, |queue| queue.post(&[0, 0]));
        queue.sends.clear(|_, _| {}, queue.execute());
        poster.join().unwrap();
        assert_eq!(queue.sends.posted(), 2);
        assert!(queue.sends.is_idle());
    });
}
