//! Signals to a running command.

use std::io::{self, Write};
use std::thread::{self, JoinHandle};

use signal_hook::consts::{SIGUSR1, SIGUSR2};
use signal_hook::iterator::{Handle, Signals};
use signal_hook::low_level::emulate_default_handler;
use talpf_apps::run::Interrupt;
use talpf_runtime::Monitor;

use super::ending_signals::ending_signals;

/// Thread that handles signals until it is dropped. SIGUSR1 writes a dump of the tasks to the
/// standard error stream as text, SIGUSR2 for Graphviz. SIGINT, SIGTERM and SIGHUP end the tasks of
/// the run, so that it still writes its recordings; without recordings, and on the second signal, they
/// end the process. In a run of several processes with recordings the second signal does not: a
/// terminal and a launcher each send one. SIGQUIT is left to the system: it ends the process at once.
pub(super) struct SignalHandler {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

impl SignalHandler {
    /// Starts the thread. As many as `spared` signals do not end the process.
    ///
    /// **Errors**: signals or threads refused by the system.
    pub(super) fn start(
        monitor: Monitor,
        interrupt: Interrupt,
        mut spared: u32,
    ) -> io::Result<Self> {
        let all = ending_signals().into_iter().chain([SIGUSR1, SIGUSR2]);
        let mut signals = Signals::new(all)?;
        let handle = signals.handle();
        let handle_signals = move || {
            for signal in signals.forever() {
                match signal {
                    SIGUSR1 | SIGUSR2 => write_dump(&monitor, signal == SIGUSR2),
                    _ if interrupt.cancel("interrupted") => spared = spared.saturating_sub(1),
                    _ if spared > 0 => spared -= 1,
                    // Returns only on failure: then the signal is lost.
                    _ => drop(emulate_default_handler(signal)),
                }
            }
        };
        let thread =
            thread::Builder::new().name("talpf-signals".to_owned()).spawn(handle_signals)?;
        Ok(Self { signals: handle, thread: Some(thread) })
    }
}

fn write_dump(monitor: &Monitor, for_graphviz: bool) {
    let text = match monitor.dump() {
        Some(dump) if for_graphviz => dump.to_graphviz(),
        Some(dump) => dump.to_string(),
        None => "no tasks yet\n".to_owned(),
    };
    // A closed error stream must not end the run.
    let _ = io::stderr().write_all(text.as_bytes());
}

impl Drop for SignalHandler {
    fn drop(&mut self) {
        self.signals.close();
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, the run goes on without it.
            let _ = thread.join();
        }
    }
}
