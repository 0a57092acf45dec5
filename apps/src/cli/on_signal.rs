//! What somebody wants of a run who sends it a signal.

use std::io::{self, Write};
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use talpf_apps::run::Interrupt;
use talpf_runtime::Monitor;

/// A thread that answers signals. SIGUSR1 writes a dump of the tasks to the standard error stream as
/// text, SIGUSR2 for Graphviz. SIGINT and SIGTERM end the tasks of the run, so that it still leaves
/// its recordings; where there are none, and for the second time, the process. It ends when this
/// drops.
pub(super) struct OnSignal {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

impl OnSignal {
    /// **Errors**: signals or threads refused by the system.
    pub(super) fn start(monitor: Monitor, interrupt: Interrupt) -> io::Result<Self> {
        let mut signals = Signals::new([SIGUSR1, SIGUSR2, SIGINT, SIGTERM])?;
        let handle = signals.handle();
        let answer = move || {
            for signal in signals.forever() {
                match signal {
                    SIGUSR1 | SIGUSR2 => tell(&monitor, signal == SIGUSR2),
                    _ if interrupt.cancel("interrupted") => {}
                    // Returns only if it fails: then the signal is lost.
                    _ => drop(emulate_default_handler(signal)),
                }
            }
        };
        let thread = thread::Builder::new().name("talpf-signals".to_owned()).spawn(answer)?;
        Ok(Self { signals: handle, thread: Some(thread) })
    }
}

fn tell(monitor: &Monitor, for_graphviz: bool) {
    let text = match monitor.dump() {
        Some(dump) if for_graphviz => dump.to_graphviz(),
        Some(dump) => dump.to_string(),
        None => "no tasks yet\n".to_owned(),
    };
    // A closed error stream is no reason to end the run.
    let _ = io::stderr().write_all(text.as_bytes());
}

impl Drop for OnSignal {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            // If it has panicked there is nothing left to tell.
            let _ = thread.join();
        }
    }
}
