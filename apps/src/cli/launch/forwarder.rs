//! Signals to a launcher.

use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::iterator::{Handle, Signals};
use talpf_apps::Error;

use super::super::ending_signals::ending_signals;
use super::event::Event;
use super::forwarded_signal::ForwardedSignal;

/// Thread that makes events of signals: of those that end a run, and of those that are forwarded.
pub(super) struct Forwarder {
    handle: Handle,
    thread: thread::JoinHandle<()>,
}

impl Forwarder {
    /// Starts the thread.
    ///
    /// **Errors**: [`Error::Signals`].
    pub(super) fn start(sender: &Sender<Event>) -> Result<Self, Error> {
        let forwarded = ForwardedSignal::ALL.map(ForwardedSignal::number);
        let all = ending_signals().into_iter().chain(forwarded);
        let mut signals = Signals::new(all).map_err(Error::Signals)?;
        let (handle, sender) = (signals.handle(), sender.clone());
        let thread = thread::spawn(move || {
            for signal in signals.forever() {
                let forward = ForwardedSignal::of_number(signal).map(Event::Forward);
                // The receiver lives as long as the processes.
                let _ = sender.send(forward.unwrap_or(Event::Interrupt));
            }
        });
        Ok(Self { handle, thread })
    }

    /// Ends the thread.
    pub(super) fn end(self) {
        self.handle.close();
        let _ = self.thread.join();
    }
}
