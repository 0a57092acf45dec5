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

#[cfg_attr(debug_assertions, expect(unreachable_pub, reason = "wrapped by `held`"))]
pub use parking_lot::MutexGuard;
pub use shuttle::thread::{self, yield_now};
pub use std::sync::atomic::Ordering;
// Not among shuttle's points: what they say is counted by others.
pub use std::sync::atomic::{AtomicPtr, AtomicU8};

fn switch() {
    yield_now();
}

/// A fence behind a switch.
pub fn fence(order: Ordering) {
    switch();
    std::sync::atomic::fence(order);
}

/// Methods that change a word by a value and return what was there.
macro_rules! exchanges {
    ($value:ty: $($method:ident)*) => {$(
        /// As of the standard word.
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
            /// Makes a word.
            pub const fn new(value: $value) -> Self {
                $name(std::sync::atomic::$name::new(value))
            }

            /// As of the standard word.
            pub fn load(&self, order: Ordering) -> $value {
                switch();
                self.0.load(order)
            }

            /// As of the standard word.
            pub fn store(&self, value: $value, order: Ordering) {
                switch();
                self.0.store(value, order);
            }

            exchanges! { $value: swap }

            /// As of the standard word.
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

            /// As of the standard word.
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
            exchanges! { $value: fetch_add fetch_sub fetch_or fetch_max }
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

    /// The lock, if nobody holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        switch();
        self.0.try_lock()
    }

    /// The value, which nobody else can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// One permission to go on, and who waits for it.
#[derive(Default)]
struct Permit {
    given: shuttle::sync::Mutex<bool>,
    changed: shuttle::sync::Condvar,
}

/// A thread's way to wait for its permission to go on.
#[derive(Default)]
pub struct Parker(Unparker);

/// The way to give a thread its permission.
#[derive(Clone, Default)]
pub struct Unparker(Arc<Permit>);

impl Parker {
    /// Makes one without a permission.
    pub fn new() -> Self {
        Parker::default()
    }

    /// The way to wake whoever parks here.
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

    /// The time may be over whenever the thread has its turn.
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

/// A value of its own for every thread of a run.
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
    /// The value of this thread.
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

/// Declares a value of its own for every thread of a run.
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
