//! Progress bar of a run.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar as Bar, ProgressStyle};
use talpf_apps::run::Progress;

/// Display of a run's [`Progress`] until dropped. A thread of its own reads the progress ten times
/// a second, so the run does not pay for it.
pub(super) struct ProgressBar {
    watcher: Option<(Sender<()>, JoinHandle<()>)>,
}

impl ProgressBar {
    /// Starts a bar of `steps` steps on the standard error stream. Shows nothing if that is not a
    /// terminal, or if `quiet`.
    pub(super) fn start(label: &'static str, steps: usize, quiet: bool) -> (Self, Progress) {
        let progress = Progress::default();
        let watcher = (!quiet && io::stderr().is_terminal()).then(|| {
            let (stop, stopped) = mpsc::channel();
            let progress = progress.clone();
            let watch = move || {
                let bar = Bar::new(steps as u64).with_style(style()).with_message(label);
                while stopped.recv_timeout(REFRESH_PERIOD) == Err(RecvTimeoutError::Timeout) {
                    bar.set_position(progress.steps() as u64);
                }
                bar.finish_and_clear();
            };
            (stop, thread::spawn(watch))
        });
        (Self { watcher }, progress)
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.watcher.take() {
            drop(stop);
            // A panic of the display must not end the run.
            let _ = thread.join();
        }
    }
}

const REFRESH_PERIOD: Duration = Duration::from_millis(100);

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} steps, {eta} left")
        .expect("the template is fixed")
}
