//! A thread that serves other processes in place of the polling task.
//!
//! Workers that are all in long tasks serve nobody, and most networks carry out nothing without the processor of the
//! target. So the thread polls in their place, until nothing has come for its patience, and then sleeps on the event of
//! the rail; while something waits for room that no event announces it naps. It
//! advances what has come for the ranks of this process, too: a task that this makes ready waits for a worker.
//!
//! An event of its own wakes it for what other threads leave to it (`EventWatch::wake`), and announces its end.

use std::os::fd::OwnedFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;
use talpf_runtime::Clock;
use talpf_runtime::service::PATIENCE;

use super::event_watch::{OF_THREAD, signal};
use super::{Processes, Sleep};
use crate::error::Error;

/// Pause while something waits for room that no event announces: as short as the kernel makes it.
const NAP: Duration = Duration::from_micros(50);

/// The thread, which ends when this is dropped.
pub(crate) struct ProgressThread {
    ends: Arc<AtomicBool>,
    event: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressThread {
    /// Makes the event by which others wake the thread.
    ///
    /// **Errors**: the process has too many open files.
    pub(crate) fn event() -> Result<Arc<OwnedFd>, Error> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        event.map(Arc::new).map_err(refused)
    }

    /// Starts the thread, which others wake by `event`.
    ///
    /// **Errors**: the process has too many open files or threads.
    pub(crate) fn start(processes: Arc<Processes>, event: Arc<OwnedFd>) -> Result<Self, Error> {
        let failing = Arc::clone(&processes);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(refused)?;
        let data = epoll::EventData::new_u64(OF_THREAD);
        epoll::add(&epoll, &event, data, epoll::EventFlags::IN).map_err(refused)?;
        let ends = Arc::new(AtomicBool::new(false));
        let (is_over, own_event) = (Arc::clone(&ends), Arc::clone(&event));
        let serve = move || {
            let clock = Clock::start();
            while !is_over.load(Ordering::Acquire) {
                match serve(&processes, &epoll, (&clock, &is_over)) {
                    Sleep::No => {}
                    Sleep::UntilEvent => sleep(&epoll, &own_event),
                    Sleep::Naps => thread::sleep(NAP),
                }
            }
        };
        let thread = thread::Builder::new().name("talpf-progress".to_owned());
        let thread = thread.spawn(move || {
            // Nobody would serve the others afterwards.
            if panic::catch_unwind(AssertUnwindSafe(serve)).is_err() {
                failing
                    .failure
                    .fail_with_reason(failing.speaker(), "the progress thread has panicked");
            }
        });
        let thread = Some(thread.map_err(refused)?);
        Ok(Self { ends, event, thread })
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        signal(&self.event);
        if let Some(thread) = self.thread.take() {
            // It catches panics.
            let _ = thread.join();
        }
    }
}

/// Serves other processes until nothing has come for the patience of the thread. Returns how it may wait then.
fn serve(processes: &Processes, epoll: &OwnedFd, (clock, is_over): (&Clock, &AtomicBool)) -> Sleep {
    let mut quiet_since = None;
    while !is_over.load(Ordering::Acquire) {
        if processes.serve() {
            quiet_since = None;
            continue;
        }
        let now = clock.now();
        if now - *quiet_since.get_or_insert(now) >= PATIENCE {
            return processes.prepare_sleep_on(epoll);
        }
        thread::yield_now();
    }
    Sleep::No
}

/// Sleeps until an event.
fn sleep(epoll: &OwnedFd, own_event: &OwnedFd) {
    let mut events = Vec::with_capacity(2);
    match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => unreachable!("the descriptors are open: {error}"),
    }
    // It fails if the event is not that of the thread.
    let _ = rustix::io::read(own_event, &mut [0; size_of::<u64>()]);
}

fn refused(reason: impl ToString) -> Error {
    Error::ProgressThread(reason.to_string())
}
