//! The clock of a runtime, the only code that reads the time.
//!
//! All other code uses the runtime's clock, so a runtime with another clock runs in another time.
//! Readings come from the invariant time-stamp counter if the machine has one.

/// A clock that counts nanoseconds since it was started, usually with the runtime.
///
/// **Cost**: one counter read, about 10 ns.
#[derive(Clone, Debug)]
pub struct Clock {
    counter: quanta::Clock,
    origin: u64,
}

impl Clock {
    /// Creates a clock that starts now.
    pub fn start() -> Self {
        let counter = quanta::Clock::new();
        let origin = counter.raw();
        Clock { counter, origin }
    }

    /// Returns the time since the start. **Units**: nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.counter.delta_as_nanos(self.origin, self.counter.raw())
    }
}
