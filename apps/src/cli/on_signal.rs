//! What the tasks of a run do, told when somebody asks by a signal.

use std::io::{self, Write};
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};
use talpf_runtime::Monitor;

/// A thread that writes a dump to the standard error stream: as text for every SIGUSR1, for
/// Graphviz for every SIGUSR2. It ends when this drops.
pub(super) struct DumpOnSignal {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

impl DumpOnSignal {
    /// **Errors**: signals or threads refused by the system.
    pub(super) fn start(monitor: Monitor) -> io::Result<Self> {
        let mut signals = Signals::new([SIGUSR1, SIGUSR2])?;
        let handle = signals.handle();
        let tell = move || {
            for signal in signals.forever() {
                let text = match monitor.dump() {
                    Some(dump) if signal == SIGUSR2 => dump.to_graphviz(),
                    Some(dump) => dump.to_string(),
                    None => "no tasks yet\n".to_owned(),
                };
                // A closed error stream is no reason to end the run.
                let _ = io::stderr().write_all(text.as_bytes());
            }
        };
        let thread = thread::Builder::new().name("talpf-dump".to_owned()).spawn(tell)?;
        Ok(Self { signals: handle, thread: Some(thread) })
    }
}

impl Drop for DumpOnSignal {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            // If it has panicked there is nothing left to tell.
            let _ = thread.join();
        }
    }
}
