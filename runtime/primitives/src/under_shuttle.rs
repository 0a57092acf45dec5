//! Shared words, locks and threads with points where shuttle switches threads.
//!
//! The words are the standard ones with a switch before every access, so that records of the pool,
//! which outlive a run of shuttle, may hold them. All threads of a run share one thread of the
//! system: nothing here may block that. A taken lock is tried again and again; a parked thread
//! waits for a condition of shuttle, which so detects deadlocks. Only sequentially consistent
//! executions are explored.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

#[cfg_attr(debug_assertions, expect(unreachable_pub, reason = "wrapped by `held`"))]
pub use parking_lot::MutexGuard;
pub use shuttle::thread::{self, yield_now};
pub use std::sync::atomic::Ordering;
// No points of shuttle: the decisions made on these values are visible at other points.
pub use std::sync::OnceLock;
pub use std::sync::atomic::{AtomicPtr, AtomicU8};

fn switch() {
    yield_now();
}

/// Issues a fence behind a switch.
pub fn fence(order: Ordering) {
    switch();
    std::sync::atomic::fence(order);
}

/// Methods that change a word by a value and return the previous one.
macro_rules! exchanges {
    ($value:ty: $($method:ident)*) => {$(
        /// Does the same as the method of the standard word.
        pub fn $method(&self, value: $value, order: Ordering) -> $value {
            switch();
            self.0.$method(value, order)
        }
    )*};
}

macro_rules! words {
    ($($name:ident: $value:ty;)*) => {$(
        /// A word with a switch before every access.
        #[derive(Debug, Default)]
        pub struct $name(std::sync::atomic::$name);

        impl $name {
            /// Creates a word.
            pub const fn new(value: $value) -> Self {
                $name(std::sync::atomic::$name::new(value))
            }

            /// Does the same as the method of the standard word.
            pub fn load(&self, order: Ordering) -> $value {
                switch();
                self.0.load(order)
            }

            /// Does the same as the method of the standard word.
            pub fn store(&self, value: $value, order: Ordering) {
                switch();
                self.0.store(value, order);
            }

            exchanges! { $value: swap }

            /// Does the same as the method of the standard word.
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                switch();
                self.0.compare_exchange(current, new, success, failure)
            }

            /// Does the same as the method of the standard word.
            pub fn compare_exchange_weak(
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

        $(impl $name {
            exchanges! { $value: fetch_add fetch_sub fetch_or fetch_max fetch_min }
        })*
    };
}

words! { AtomicBool: bool; }
counts! { AtomicU32: u32; AtomicU64: u64; AtomicUsize: usize; }

/// A mutex that is tried again and again.
#[derive(Debug, Default)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    /// Makes a mutex that holds `value`.
    pub const fn new(value: T) -> Self {
        Mutex(parking_lot::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
        }
    }

    /// Returns the lock, if no thread holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        switch();
        self.0.try_lock()
    }

    /// Returns the value, which no other thread can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// A permission to go on, and the condition of the thread that waits for it.
#[derive(Default)]
struct Permit {
    given: shuttle::sync::Mutex<bool>,
    changed: shuttle::sync::Condvar,
}

/// The side of a thread that waits for its permission to go on.
#[derive(Default)]
pub struct Parker(Unparker);

/// The side of threads that give a thread its permission.
#[derive(Clone, Default)]
pub struct Unparker(Arc<Permit>);

impl Parker {
    /// Creates a parker without a permission.
    pub fn new() -> Self {
        Parker::default()
    }

    /// Returns the unparker of the thread that parks here.
    pub fn unparker(&self) -> &Unparker {
        &self.0
    }

    /// Waits for a permission, and takes it.
    pub fn park(&self) {
        let Permit { given, changed } = &*self.0.0;
        let mut given = given.lock().expect("no holder panics");
        while !std::mem::take(&mut *given) {
            given = changed.wait(given).expect("no holder panics");
        }
    }

    /// Waits as `park`, or returns early: the time may be over whenever the thread is scheduled.
    pub fn park_timeout(&self, _: Duration) {
        switch();
        *self.0.0.given.lock().expect("no holder panics") = false;
    }
}

impl Unparker {
    /// Gives the permission.
    pub fn unpark(&self) {
        *self.0.given.lock().expect("no holder panics") = true;
        self.0.changed.notify_one();
    }
}

/// A thread-local value for the threads of a run.
pub struct Local<T: 'static>(pub thread::LocalKey<T>);

impl<T: 'static> Local<T> {
    /// Calls `visit` with the value of this thread.
    pub fn with<R>(&'static self, visit: impl FnOnce(&T) -> R) -> R {
        self.0.with(visit)
    }
}

impl<T> Local<Cell<T>> {
    /// Sets the value of this thread.
    pub fn set(&'static self, value: T) {
        self.0.with(|cell| cell.set(value));
    }
}

impl<T: Copy> Local<Cell<T>> {
    /// Returns the value of this thread.
    pub fn get(&'static self) -> T {
        self.0.with(Cell::get)
    }
}

impl<T: Default> Local<Cell<T>> {
    /// Takes the value of this thread.
    pub fn take(&'static self) -> T {
        self.0.with(Cell::take)
    }
}

impl<T: Default> Local<RefCell<T>> {
    /// Takes the value of this thread.
    pub fn take(&'static self) -> T {
        self.0.with(RefCell::take)
    }

    /// Calls `change` with the value of this thread.
    pub fn with_borrow_mut<R>(&'static self, change: impl FnOnce(&mut T) -> R) -> R {
        self.0.with(|cell| change(&mut cell.borrow_mut()))
    }
}

/// Declares a thread-local value for the threads of a run.
#[macro_export]
macro_rules! local {
    ($vis:vis static $name:ident: $value:ty = const { $init:expr };) => {
        $vis static $name: $crate::Local<$value> =
            $crate::Local($crate::thread::LocalKey {
                init: || $init,
                _p: std::marker::PhantomData,
            });
    };
}
pub use local as thread_local;
