//! Detection of threads outside the runtime that may still go on.
//!
//! A thread that waits for another thread of its process, without a time limit, goes on only after
//! another one has acted. If at one time all threads of a process wait like that, no timer, no file
//! and no signal handler can end it.
//!
//! The system reports one thread after the other, so one census is not of one time. Two of them
//! are: a thread that waits in both and has not gone to sleep in between has waited from the first
//! to the second. So if two are equal, all threads waited at the time between them. A thread that
//! began after the first and ended before the second was awake; its actions are seen by examining
//! the runtime after the second.
//!
//! **Source**: the double collect of Afek et al., *Atomic snapshots of shared memory* (1993).

use std::fs;

use super::blocked_thread::Call;

/// Bits of the operation of [`Call::waits_for_thread`]: a flag that it may have, a flag that it
/// must have, and the operations themselves. Without the second flag another process may wake the
/// thread.
const ANY_CLOCK: u64 = 256;
const PRIVATE: u64 = 128;
const WAITS: [u64; 2] = [0, 9];

/// Numbers of the system calls that wait for files.
const EPOLL: &[u64] = match () {
    () if cfg!(target_arch = "x86_64") => &[232, 281],
    () if cfg!(any(target_arch = "aarch64", target_arch = "riscv64")) => &[22],
    () => &[],
};
/// Greatest mark of a file that tokio watches for its own wake-ups. Files of programs are marked
/// with addresses.
const TOKIO_OWN: u64 = 1;

/// Signals, as bits, whose handlers do nothing for programs: those of Rust for a stack overflow,
/// and those that the C library reserves.
const INTERNAL: u64 = 1 << (7 - 1) | 1 << (11 - 1) | 0b111 << (32 - 1);

/// Threads that wait, each with the number of times it has gone to sleep.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Census(Vec<(u32, u64)>);

impl Census {
    /// Examines all threads but `own`. `None`: one of them may go on by itself, or the system does
    /// not say.
    ///
    /// **Cost**: reads two files of the system for each thread.
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

/// Returns `true` if the process has signal handlers, which may run at any time.
fn has_handlers() -> Option<bool> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let caught = u64::from_str_radix(field(&status, "SigCgt:")?, 16).ok()?;
    Some(caught & !INTERNAL != 0)
}

/// Returns the number of times the thread has gone to sleep, if it waits for another thread of this
/// process.
fn sleep(thread: u32) -> Option<u64> {
    // First the call: if the thread goes on and sleeps in another call, the count read later shows
    // it.
    let call = Call::of(thread)?;
    let waits = is_private(&call) || is_without_files(&call);
    let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
    // In another state the thread waits for a disk.
    let sleeps = field(&status, "State:")? == "S";
    let times = field(&status, "voluntary_ctxt_switches:")?.parse().ok()?;
    (waits && sleeps).then_some(times)
}

fn is_private(call: &Call) -> bool {
    let operation = call.arguments[1] & !ANY_CLOCK;
    call.waits_for_thread() && WAITS.iter().any(|wait| operation == wait | PRIVATE)
}

/// Returns `true` if this is tokio's wait for files and timers while the program uses neither.
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

/// Returns the first word after `name`, which begins a line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find(|line| line.starts_with(name)).and_then(|line| field_in(line, name))
}

/// Returns the first word after `name` in a line.
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

    /// Returns `true` if a thread that runs `body` sleeps until another thread acts.
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
