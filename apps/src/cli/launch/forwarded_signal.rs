//! Signals that processes get from their launcher as they are.

use std::ffi::c_int;

use rustix::process::Signal;

/// Signal that each process of a run gets as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForwardedSignal {
    signal: Signal,
    /// Name on the way to another machine, where it may have another number.
    name: &'static str,
}

impl ForwardedSignal {
    /// Signals that are forwarded.
    pub(super) const ALL: [Self; 3] = [
        Self { signal: Signal::QUIT, name: "QUIT" },
        Self { signal: Signal::USR1, name: "USR1" },
        Self { signal: Signal::USR2, name: "USR2" },
    ];

    /// Returns the one with this number; `None` if that is not forwarded.
    pub(super) fn of_number(number: c_int) -> Option<Self> {
        Self::ALL.into_iter().find(|forwarded| forwarded.number() == number)
    }

    /// Returns the one that a line names; `None` if it names none.
    pub(super) fn of_line(line: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|forwarded| forwarded.name.as_bytes() == line.trim_ascii())
    }

    /// Returns the name as a line.
    pub(super) fn line(self) -> String {
        format!("{}\n", self.name)
    }

    /// Returns the signal.
    pub(super) fn signal(self) -> Signal {
        self.signal
    }

    /// Returns the number on this machine.
    pub(super) fn number(self) -> c_int {
        self.signal.as_raw()
    }
}
