//! Shared words, locks and threads with points where shuttle switches threads.
//!
//! The words are the standard ones with a switch before every access, so that records of the pool,
//! which outlive a run of shuttle, may hold them. All threads of a run share one thread of the
//! system: nothing here may block that. A lock that is taken is looked at again and again; who
//! parks waits for a condition of shuttle's, which so sees a deadlock. Only sequentially consistent
//! executions are explored.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use parking_lot::MutexGuard;
pub(crate) use shuttle::thread;
pub(crate) use std::sync::atomic::Ordering;

fn switch() {
    thread::yield_now();
}

pub(crate) fn fence(order: Ordering) {
    switch();
    std::sync::atomic::fence(order);
}

macro_rules! words {
    ($($name:ident: $value:ty;)*) => {$(
        #[derive(Debug, Default)]
        pub(crate) struct $name(std::sync::atomic::$name);

        #[allow(dead_code, reason = "not every word is used in every way")]
        impl $name {
            pub(crate) const fn new(value: $value) -> Self {
                $name(std::sync::atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                switch();
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                switch();
                self.0.store(value, order);
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                switch();
                self.0.swap(value, order)
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                switch();
                self.0.compare_exchange(current, new, success, failure)
            }

            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }
        }
    )*};
}

macro_rules! counts {
    ($($name:ident: $value:ty;)*) => {
        words! { $($name: $value;)* }

        $(#[allow(dead_code, reason = "not every word is used in every way")]
        impl $name {
            pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                switch();
                self.0.fetch_add(value, order)
            }

            pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                switch();
                self.0.fetch_sub(value, order)
            }

            pub(crate) fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                switch();
                self.0.fetch_or(value, order)
            }

            pub(crate) fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                switch();
                self.0.fetch_max(value, order)
            }
        })*
    };
}

words! { AtomicBool: bool; }
counts! { AtomicU32: u32; AtomicU64: u64; AtomicUsize: usize; }

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Mutex(parking_lot::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
        }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        switch();
        self.0.try_lock()
    }
}

/// One permission to go on, and who waits for it.
#[derive(Default)]
struct Permit {
    given: shuttle::sync::Mutex<bool>,
    changed: shuttle::sync::Condvar,
}

#[derive(Default)]
pub(crate) struct Parker(Unparker);

#[derive(Clone, Default)]
pub(crate) struct Unparker(Arc<Permit>);

impl Parker {
    pub(crate) fn new() -> Self {
        Parker::default()
    }

    pub(crate) fn unparker(&self) -> &Unparker {
        &self.0
    }

    pub(crate) fn park(&self) {
        let Permit { given, changed } = &*self.0.0;
        let mut given = given.lock().expect("no holder panics");
        while !std::mem::take(&mut *given) {
            given = changed.wait(given).expect("no holder panics");
        }
    }

    /// The time may be over whenever the thread has its turn.
    pub(crate) fn park_timeout(&self, _: Duration) {
        switch();
        *self.0.0.given.lock().expect("no holder panics") = false;
    }
}

impl Unparker {
    pub(crate) fn unpark(&self) {
        *self.0.given.lock().expect("no holder panics") = true;
        self.0.changed.notify_one();
    }
}

/// A value of its own for every thread of a run.
pub(crate) struct Local<T: 'static>(pub(crate) thread::LocalKey<T>);

impl<T: 'static> Local<T> {
    pub(crate) fn with<R>(&'static self, visit: impl FnOnce(&T) -> R) -> R {
        self.0.with(visit)
    }
}

impl<T> Local<Cell<T>> {
    pub(crate) fn set(&'static self, value: T) {
        self.0.with(|cell| cell.set(value));
    }
}

impl<T: Copy> Local<Cell<T>> {
    pub(crate) fn get(&'static self) -> T {
        self.0.with(Cell::get)
    }
}

impl<T: Default> Local<Cell<T>> {
    pub(crate) fn take(&'static self) -> T {
        self.0.with(Cell::take)
    }
}

impl<T: Default> Local<RefCell<T>> {
    pub(crate) fn take(&'static self) -> T {
        self.0.with(RefCell::take)
    }

    pub(crate) fn with_borrow_mut<R>(&'static self, change: impl FnOnce(&mut T) -> R) -> R {
        self.0.with(|cell| change(&mut cell.borrow_mut()))
    }
}

macro_rules! local {
    ($vis:vis static $name:ident: $value:ty = const { $init:expr };) => {
        $vis static $name: $crate::sync::Local<$value> =
            $crate::sync::Local($crate::sync::thread::LocalKey {
                init: || $init,
                _p: std::marker::PhantomData,
            });
    };
}
pub(crate) use local as thread_local;

/// No I/O: what tokio keeps for a thread would be that of all of them.
pub(crate) struct Entered;

pub(crate) fn enter(_: &tokio::runtime::Handle) -> Entered {
    Entered
}
