//! The one place that reads the time.
//!
//! Everything above asks the runtime's clock, so a runtime with another clock runs in another
//! time. Readings come from the invariant time-stamp counter where the machine has one.

/// Nanoseconds since the runtime started, or since whoever measures something did.
///
/// **Cost**: one counter read, about 10 ns.
#[derive(Clone, Debug)]
pub struct Clock {
    counter: quanta::Clock,
    origin: u64,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        let counter = quanta::Clock::new();
        let origin = counter.raw();
        Clock { counter, origin }
    }

    /// The time since the start. **Units**: nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.counter.delta_as_nanos(self.origin, self.counter.raw())
    }
}
