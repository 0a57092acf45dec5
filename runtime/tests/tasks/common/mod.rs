//! Shared code of the integration tests: bounded waits, counted drops, a log, a watchdog.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::fmt::Debug;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use talpf_runtime::{Config, Error, Failure, IdlePolicy, Runtime};

/// Longest time that a test waits for an event that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// Longest time of a test binary before the watchdog ends it.
const LIMIT: Duration = Duration::from_secs(if cfg!(miri) { 3600 } else { 300 });

pub(crate) const POLICIES: [IdlePolicy; 3] =
    [IdlePolicy::Spin, IdlePolicy::Adaptive { spin: Duration::from_micros(50) }, IdlePolicy::Park];

pub(crate) fn runtime(workers: usize) -> Runtime {
    Runtime::new(Config { workers, ..Config::default() }).unwrap()
}

/// Starts a runtime without the hang watch, whose checks would wake parked workers now and then.
pub(crate) fn unwatched(workers: usize, idle: IdlePolicy) -> Runtime {
    let hang_after = Duration::ZERO;
    Runtime::new(Config { workers, idle, hang_after, ..Config::default() }).unwrap()
}

/// Polls `condition` until it holds or the time is over.
pub(crate) fn eventually(condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        thread::yield_now();
    }
    true
}

/// Lets time pass on this thread, without anything that the runtime would notice.
pub(crate) fn pass(period: Duration) {
    let end = Instant::now() + period;
    while Instant::now() < end {
        thread::yield_now();
    }
}

/// A place where several bodies wait for each other.
pub(crate) struct Meeting {
    arrived: AtomicUsize,
    expected: usize,
}

impl Meeting {
    pub(crate) fn of(expected: usize) -> Arc<Self> {
        Arc::new(Meeting { arrived: AtomicUsize::new(0), expected })
    }

    /// Joins the meeting, and waits for the others. Returns `true` if all have joined.
    pub(crate) fn join(&self) -> bool {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        eventually(|| self.arrived.load(Ordering::SeqCst) >= self.expected)
    }
}

/// Keeps the only worker of `runtime` in a body until another participant joins the meeting.
pub(crate) fn hold_worker(runtime: &Runtime) -> Arc<Meeting> {
    let (meeting, begun) = (Meeting::of(2), Flag::default());
    let (holding, begins) = (meeting.clone(), begun.clone());
    let hold = move || {
        begins.set();
        assert!(holding.join());
    };
    runtime.task("hold").spawn(hold).unwrap();
    assert!(eventually(|| begun.is_set()));
    meeting
}

/// A flag that tasks share.
#[derive(Clone, Default)]
pub(crate) struct Flag(Arc<AtomicBool>);

impl Flag {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A log of events, in order.
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Log<T> {
    pub(crate) fn new() -> Self {
        Log(Arc::default())
    }

    pub(crate) fn add(&self, entry: T) {
        self.0.lock().unwrap().push(entry);
    }

    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Log(Arc::clone(&self.0))
    }
}

/// Counts the drops of what it made.
#[derive(Clone, Default)]
pub(crate) struct Drops(Arc<AtomicUsize>);

/// Counted when it drops.
pub(crate) struct Counted(Drops);

impl Drops {
    pub(crate) fn item(&self) -> Counted {
        Counted(self.clone())
    }

    pub(crate) fn items(&self, count: usize) -> Vec<Counted> {
        (0..count).map(|_| self.item()).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Ends the process if it lives longer than a test may take: a hang fails instead of blocking.
pub(crate) struct Watchdog {
    _ends: mpsc::Sender<()>,
}

pub(crate) fn watchdog() -> Watchdog {
    let name = thread::current().name().unwrap_or("?").to_owned();
    let (ends, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("test `{name}` hangs");
            std::process::abort();
        }
    });
    Watchdog { _ends: ends }
}

/// Runs `body` of test `name` in a process of its own, whose other threads all wait for that.
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    const ALONE: &str = "TALPF_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", name, "--test-threads=1"]).env(ALONE, "1");
    let ended = test.output().unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && output.contains("1 passed"), "{output}");
}

/// Keeps the panics that tests provoke in tasks out of the output.
pub(crate) fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let name = thread::current().name().unwrap_or("").to_owned();
            if !name.starts_with("talpf-worker") {
                print(info);
            }
        }));
    });
}

/// Returns the failure in the result of a wait or of a task.
pub(crate) fn failure<T: Debug>(result: Result<T, Error>) -> Arc<Failure> {
    match result {
        Err(Error::TaskFailed(failure)) => failure,
        other => panic!("a failed task was expected, not {other:?}"),
    }
}

/// Returns the labels of a failure and of the failures that it goes back to.
pub(crate) fn labels(failure: &Failure) -> Vec<&str> {
    failure.chain().map(|failure| failure.label.as_str()).collect()
}
