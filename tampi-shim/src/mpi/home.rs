//! The thread that calls MPI when MPI does not grant all threads, and what others ask of it.

use std::sync::mpsc;
use std::thread;

use talpf_primitives::Mutex;

type Order = Box<dyn FnOnce() + Send>;

/// The thread that called [`run`](super::run), and the orders it has got.
pub(super) struct Home {
    thread: thread::Thread,
    orders: Mutex<Vec<Order>>,
}

impl Home {
    /// This thread is home.
    pub(super) fn here() -> Self {
        Home { thread: thread::current(), orders: Mutex::default() }
    }

    /// Leaves an order. Orders are carried out in the order in which they are left.
    pub(super) fn order(&self, order: Order) {
        self.orders.lock().push(order);
        self.thread.unpark();
    }

    /// Leaves a question and waits for its answer. `None`: home is not there any more.
    pub(super) fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.order(Box::new(move || drop(answer.send(question()))));
        answered.recv().ok()
    }

    /// Carries out what has been ordered, and says how much that was.
    pub(super) fn carry_out(&self) -> usize {
        let orders = std::mem::take(&mut *self.orders.lock());
        let count = orders.len();
        orders.into_iter().for_each(|order| order());
        count
    }

    /// Wakes the thread.
    pub(super) fn wake(&self) {
        self.thread.unpark();
    }
}
