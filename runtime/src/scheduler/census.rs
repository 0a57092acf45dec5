//! The threads of the process that are not of this runtime: whether one of them may still go on.
//!
//! A thread that waits for another thread of its process, for as long as that takes, goes on only
//! after another one has done something. If at one time all threads of a process wait like that, no
//! timer, no file and no signal handler can end it.
//!
//! The system tells of one thread after the other, so one census is not one time. Two of them are:
//! a thread that waits in both and has not gone to sleep in between has waited all the time from the
//! first to the second. So if two are equal, all threads waited at the time between them. A thread
//! that began after the first and ended before the second was awake; what it did is seen by looking
//! at the runtime after the second.
//!
//! **Source**: the double collect of Afek et al., *Atomic snapshots of shared memory* (1993).

use std::fs;

use super::blocked_thread::Call;

/// Of the call of [`Call::waits_for_thread`]: flags that it may have, the one it must have, and
/// what it does. Without that one it may be woken by another process.
const ANY_CLOCK: u64 = 256;
const PRIVATE: u64 = 128;
const WAITS: [u64; 2] = [0, 9];

/// The numbers of the calls that wait for files.
const EPOLL: &[u64] = match () {
    () if cfg!(target_arch = "x86_64") => &[232, 281],
    () if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) => &[22],
    () => &[],
};
/// The greatest mark of a file that tokio watches for itself, to be woken by. Those of programs are
/// marked with addresses.
const TOKIO_OWN: u64 = 1;

/// Signals whose handlers do nothing for programs, as bits: Rust's for a stack that overflows, and
/// those that the C library keeps for itself.
const INTERNAL: u64 = 1 << (7 - 1) | 1 << (11 - 1) | 0b111 << (32 - 1);

/// The threads that wait, each with how often it has gone to sleep.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Census(Vec<(u32, u64)>);

impl Census {
    /// Looks at all threads but `own`. `None`: one of them may go on by itself, or the system does not
    /// say.
    ///
    /// **Cost**: two files of the system for each thread.
    pub(super) fn take(own: &[u32]) -> Option<Self> {
        if has_handlers()? {
            return None;
        }
        let mut waiting = Vec::new();
        for entry in fs::read_dir("/proc/self/task").ok()? {
            let thread = entry.ok()?.file_name().to_str()?.parse().ok()?;
            if !own.contains(&thread) {
                waiting.push((thread, sleep(thread)?));
            }
        }
        Some(Census(waiting))
    }
}

/// Returns whether the process has handlers of signals, which may come at any time.
fn has_handlers() -> Option<bool> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let caught = u64::from_str_radix(field(&status, "SigCgt:")?, 16).ok()?;
    Some(caught & !INTERNAL != 0)
}

/// Counts how often the thread has gone to sleep, if it now waits for another thread of this
/// process.
fn sleep(thread: u32) -> Option<u64> {
    // First the call: if the thread goes on and then to sleep in another one, it is counted after.
    let call = Call::of(thread)?;
    let waits = is_private(&call) || is_without_files(&call);
    let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
    // In another state it waits for a disk.
    let sleeps = field(&status, "State:")? == "S";
    let times = field(&status, "voluntary_ctxt_switches:")?.parse().ok()?;
    (waits && sleeps).then_some(times)
}

fn is_private(call: &Call) -> bool {
    let operation = call.arguments[1] & !ANY_CLOCK;
    call.waits_for_thread() && WAITS.iter().any(|wait| operation == wait | PRIVATE)
}

/// Returns whether this is tokio's wait for files and times while a program uses neither.
fn is_without_files(call: &Call) -> bool {
    let [file, .., timeout, _, _] = call.arguments;
    // An `int`, of which the upper half may be anything.
    let forever = (timeout as u32).cast_signed() < 0;
    EPOLL.contains(&call.number) && forever && watches_none(file) == Some(true)
}

fn watches_none(epoll: u64) -> Option<bool> {
    let files = fs::read_to_string(format!("/proc/self/fdinfo/{epoll}")).ok()?;
    let mut marks = files.lines().filter(|line| line.starts_with("tfd:")).map(|line| {
        let mark = field_in(line, "data:")?;
        u64::from_str_radix(mark, 16).ok()
    });
    marks.try_fold(true, |none, mark| Some(none && mark? <= TOKIO_OWN))
}

/// The first word after `name`, which begins a line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find(|line| line.starts_with(name)).and_then(|line| field_in(line, name))
}

/// The first word after `name` in a line.
fn field_in<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_once(name)?.1.split_ascii_whitespace().next()
}

#[cfg(all(test, target_os = "linux", not(talpf_loom), not(talpf_shuttle)))]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::scheduler::blocked_thread::own_id;

    /// The thread that runs `body`, and what it sleeps in once it says that it is about to.
    fn sleeps_in(body: impl FnOnce(mpsc::Sender<u32>) + Send + 'static) -> bool {
        let (begun, id) = mpsc::channel();
        thread::spawn(move || body(begun));
        let id = id.recv().unwrap();
        while Call::of(id).is_none() {
            thread::yield_now();
        }
        sleep(id).is_some()
    }

    #[test]
    fn a_thread_that_waits_for_a_channel_is_counted() {
        assert!(sleeps_in(|begun| {
            let (_kept, word) = mpsc::channel::<()>();
            begun.send(own_id()).unwrap();
            let _ = word.recv();
        }));
    }

    #[test]
    fn a_thread_that_waits_for_a_time_may_go_on() {
        assert!(!sleeps_in(|begun| {
            let (_kept, word) = mpsc::channel::<()>();
            begun.send(own_id()).unwrap();
            let _ = word.recv_timeout(Duration::from_secs(3600));
        }));
        assert!(!sleeps_in(|begun| {
            begun.send(own_id()).unwrap();
            thread::sleep(Duration::from_secs(3600));
        }));
    }

    #[test]
    fn a_thread_that_waits_for_a_file_may_go_on() {
        assert!(!sleeps_in(|begun| {
            let (mut reader, _kept) = std::io::pipe().unwrap();
            begun.send(own_id()).unwrap();
            let _ = std::io::Read::read(&mut reader, &mut [0]);
        }));
    }

    #[test]
    fn a_thread_that_runs_may_go_on() {
        assert_eq!(sleep(own_id()), None);
    }
}
