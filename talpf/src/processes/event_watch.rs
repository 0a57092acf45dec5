//! The sleep of the polling task of a rank whose peers are in other processes.
//!
//! A rail announces its events by a file descriptor, and tasks sleep on wakers. So a thread, which is
//! started with the first sleep, sleeps on the descriptor in place of the task, and wakes the task.
//! Each sleep arms the descriptor for one event: what arrives while the task is awake wakes nobody.
//! The thread of `progress_thread.rs`, if there is one, sleeps in the same way, with no task to wake.
//!
//! Any thread that makes progress takes back the announcement of the sleep, which the rail keeps. It
//! then wakes the task, so that the task announces its sleep anew:
//!
//! | the task that sleeps | a thread that makes progress |
//! |---|---|
//! | sets `armed` | polls the rail, which takes the announcement back |
//! | arms the rail, which announces the sleep | takes `armed` back; if it was set, wakes the task |
//! | registers its waker, unless it was woken | |
//!
//! If the poll takes an announcement back, it comes after the announcement, under the lock of the
//! rail, and so finds `armed` set.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock, Weak};
use std::{io, thread};

use ibverbs_sim::{Armed, Device};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::io::Errno;
use talpf_primitives::{AtomicBool, Ordering};

use crate::peer::LocalPeer;

/// Data of the events of the rail, and of another event of the thread.
const OF_RAIL: u64 = 0;
pub(super) const OF_THREAD: u64 = 1;

/// Possible ways to wait for other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// An event has arrived: poll.
    No,
    /// An event wakes the task.
    UntilEvent,
    /// No event announces everything: poll after naps.
    Naps,
}

/// Events of the rail, with the sleeper that they wake.
pub(super) struct EventWatch {
    sleeper: EventSleeper,
    armed: ArmedFlag,
    /// Started with the first sleep; `None` if it cannot be started.
    watched: OnceLock<Option<Arc<Watched>>>,
}

/// Sleeper that an event of the rail wakes.
pub(super) enum EventSleeper {
    /// The polling task of a rank.
    Task(Weak<LocalPeer>),
    /// A thread that sleeps on this event, too.
    Thread(Arc<OwnedFd>),
}

/// Flag that is set from before the rail is armed until a thread has made progress.
struct ArmedFlag(AtomicBool);

/// Descriptors that the thread sleeps on.
struct Watched {
    epoll: OwnedFd,
    /// Written as the run ends.
    end: OwnedFd,
}

impl ArmedFlag {
    fn new() -> Self {
        ArmedFlag(AtomicBool::new(false))
    }

    /// Sets the flag. The caller arms the rail afterwards.
    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Takes the flag back, for a thread that has polled the rail. Returns `true` if it was set.
    #[inline]
    fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}

impl EventWatch {
    pub(super) fn new(sleeper: EventSleeper) -> Self {
        EventWatch { sleeper, armed: ArmedFlag::new(), watched: OnceLock::new() }
    }

    /// Notes that a thread has made progress.
    #[inline]
    pub(super) fn note_progress(&self) {
        if self.armed.take() {
            self.wake();
        }
    }

    /// Wakes the sleeper.
    pub(super) fn wake(&self) {
        match &self.sleeper {
            EventSleeper::Task(peer) => {
                if let Some(peer) = peer.upgrade() {
                    peer.wake_poller();
                }
            }
            EventSleeper::Thread(event) => signal(event),
        }
    }

    /// Arms the rail, for a task that has announced its sleep and has polled since.
    pub(super) fn arm(&self, device: &Device) -> Sleep {
        let EventSleeper::Task(peer) = &self.sleeper else { return Sleep::Naps };
        let watched = self.watched.get_or_init(|| Watched::start(peer).ok());
        let Some(watched) = watched else { return Sleep::Naps };
        self.armed.set();
        arm(device, &watched.epoll)
    }
}

/// Makes an event readable.
pub(super) fn signal(event: &OwnedFd) {
    // A full event is readable.
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

/// Arms the rail, for a thread that sleeps on `epoll`, which has polled since it was last awake.
pub(super) fn arm(device: &Device, epoll: &OwnedFd) -> Sleep {
    match device.arm() {
        Armed::Ready => Sleep::No,
        Armed::Descriptor(descriptor) => {
            let once = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
            let data = epoll::EventData::new_u64(OF_RAIL);
            let armed = match epoll::modify(epoll, descriptor, data, once) {
                Err(Errno::NOENT) => epoll::add(epoll, descriptor, data, once),
                armed => armed,
            };
            if armed.is_ok() { Sleep::UntilEvent } else { Sleep::Naps }
        }
        _ => Sleep::Naps,
    }
}

impl Drop for EventWatch {
    fn drop(&mut self) {
        if let Some(Some(watched)) = self.watched.get() {
            signal(&watched.end);
        }
    }
}

impl Watched {
    /// Starts the thread.
    fn start(sleeper: &Weak<LocalPeer>) -> io::Result<Arc<Self>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let end = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let data = epoll::EventData::new_u64(OF_THREAD);
        epoll::add(&epoll, &end, data, epoll::EventFlags::IN)?;
        let watched = Arc::new(Watched { epoll, end });
        let (of_thread, sleeper) = (Arc::clone(&watched), Weak::clone(sleeper));
        thread::Builder::new()
            .name("talpf-events".to_owned())
            .spawn(move || of_thread.watch(&sleeper))?;
        Ok(watched)
    }

    fn watch(&self, sleeper: &Weak<LocalPeer>) {
        let mut events = Vec::with_capacity(2);
        loop {
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => unreachable!("the descriptors are open: {error}"),
            }
            if events.drain(..).any(|event: epoll::Event| event.data.u64() == OF_THREAD) {
                return;
            }
            match sleeper.upgrade() {
                Some(sleeper) => sleeper.wake_poller(),
                None => return,
            }
        }
    }
}

#[cfg(all(test, talpf_loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::{model, thread};
    use talpf_primitives::Mutex;

    use super::*;

    #[test]
    fn loom_whoever_takes_the_announcement_of_a_sleep_back_wakes_the_task() {
        model(|| {
            let armed = Arc::new(ArmedFlag::new());
            // Announcement of the rail, which it keeps under its lock.
            let is_announced = Arc::new(Mutex::new(false));
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let (armed, is_announced) = (Arc::clone(&armed), Arc::clone(&is_announced));
                    thread::spawn(move || {
                        *is_announced.lock() = false;
                        armed.take()
                    })
                })
                .collect();
            armed.set();
            *is_announced.lock() = true;
            let wakes: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
            let is_woken = wakes.contains(&true);
            assert!(*is_announced.lock() || is_woken);
        });
    }
}
