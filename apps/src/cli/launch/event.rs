//! News for a launcher.

use std::io;
use std::process::ExitStatus;

use ibverbs_sim::bootstrap::BootstrapError;

use super::forwarded_signal::ForwardedSignal;

/// News for a launcher.
pub(super) enum Event {
    /// A process has ended, and its output is written.
    Ended(u32, io::Result<ExitStatus>),
    /// Processes have not met in time.
    Missing(BootstrapError),
    /// A signal that ends the run, or the end of the launcher on another machine.
    Interrupt,
    /// A signal for each process.
    Forward(ForwardedSignal),
}
