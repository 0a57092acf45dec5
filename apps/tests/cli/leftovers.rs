//! Leftovers of runs in several processes: none, however and whenever the runs end.
//!
//! The runs are in a network and a /dev/shm of their own, where this user may make them, so that nothing
//! there is of others. The test starts its own program again for that.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::command;
use crate::launch::{children_of, started, started_by};
use crate::libfabric::transports;
use crate::server::{free_address, place};

const PATIENCE: Duration = Duration::from_secs(60);

/// Number of runs, of which [`AT_ONCE`] run at a time, with [`PROCESSES`] processes each.
const RUNS: usize = 100;
const AT_ONCE: usize = 2;
const PROCESSES: usize = 2;

/// Variable of the program that this test starts: `true` if it has a network and a /dev/shm of its own.
const IS_ALONE: &str = "TALPF_TEST_LEFTOVERS_ALONE";
/// Variable of each process of a run, by which those that outlive it are found.
const RUN: &str = "TALPF_TEST_LEFTOVERS_RUN";

/// End of a run. Signals are for the launcher, or for each process if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    ByItself,
    KillOfOne,
    KillOfAll,
    KillOfLauncher,
    Terminate,
    Interrupt,
    /// While a process is stopped, which goes on a moment later.
    TerminateStopped,
}

impl Ending {
    const ALL: [Self; 7] = [
        Self::ByItself,
        Self::KillOfOne,
        Self::KillOfAll,
        Self::KillOfLauncher,
        Self::Terminate,
        Self::Interrupt,
        Self::TerminateStopped,
    ];
}

/// Moment at which a run is ended.
#[derive(Clone, Copy, Debug)]
enum Moment {
    AfterStart(Duration),
    /// Each process has workers.
    Working,
}

const MOMENTS: [Moment; 4] = [
    Moment::Working,
    Moment::AfterStart(Duration::from_millis(20)),
    Moment::AfterStart(Duration::ZERO),
    Moment::AfterStart(Duration::from_millis(60)),
];

/// A run to be.
#[derive(Clone, Copy, Debug)]
struct Run {
    fabric: &'static str,
    has_launcher: bool,
    ending: Ending,
    moment: Moment,
}

impl Run {
    /// Returns the runs: all ends of runs with and without a launcher over each fabric, at one moment after
    /// the other.
    fn all() -> Vec<Self> {
        let fabrics = ["shm", "tcp"].into_iter().chain(transports().pop());
        let starts = fabrics.flat_map(|fabric| [true, false].map(|launched| (fabric, launched)));
        let ends: Vec<_> = starts
            .flat_map(|(fabric, has_launcher)| {
                let ends = Ending::ALL.into_iter();
                ends.map(move |ending| (fabric, has_launcher, ending))
            })
            .filter(|&(_, has_launcher, ending)| has_launcher || ending != Ending::KillOfLauncher)
            .collect();
        let runs = MOMENTS.into_iter().flat_map(|moment| {
            ends.iter().map(move |&(fabric, has_launcher, ending)| Self {
                fabric,
                has_launcher,
                ending,
                moment,
            })
        });
        runs.cycle().take(RUNS).collect()
    }

    /// Starts the launcher, or the processes if there is none.
    fn start(self, folder: &Path, marker: &str) -> Vec<Child> {
        let (steps, timeout) =
            if self.ending == Ending::ByItself { (9, 20) } else { (1_000_000_000, 2) };
        let fabric = self.fabric;
        let run = format!("jacobi --size 32 --block 8 --steps {steps} --quiet --fabric {fabric}");
        let start = |arguments: String| {
            let mut command = command(&arguments.split_whitespace().collect::<Vec<_>>());
            command.env("TMPDIR", folder).env(RUN, marker).env("TALPF_SECRET", "of the test");
            command.current_dir(folder).stdout(Stdio::null()).spawn().unwrap()
        };
        if self.has_launcher {
            return vec![start(format!("launch -n {PROCESSES} --timeout {timeout} -- {run}"))];
        }
        let server = free_address();
        let start = |process| {
            let place = place(&server, process, PROCESSES);
            start(format!("{run} {place} --timeout {timeout}"))
        };
        (0..PROCESSES).map(start).collect()
    }

    /// Waits until the run is to be ended. Returns its processes, of which some may not have started.
    fn wait(self, children: &mut [Child]) -> Vec<Pid> {
        match self.moment {
            Moment::Working if self.has_launcher => return started_by(&children[0], PROCESSES),
            Moment::Working => children.iter_mut().for_each(started),
            Moment::AfterStart(time) => thread::sleep(time),
        }
        match self.has_launcher {
            true => children_of(children[0].id()),
            false => children.iter().map(Pid::from_child).collect(),
        }
    }

    /// Starts the run, ends it, and waits for what this process has started of it.
    fn run(self, folder: &Path, marker: &str) {
        let mut children = self.start(folder, marker);
        if self.ending != Ending::ByItself {
            let processes = self.wait(&mut children);
            self.end(&children.iter().map(Pid::from_child).collect::<Vec<_>>(), &processes);
        }
        for mut child in children {
            let status = child.wait().unwrap();
            let ends_well = self.ending == Ending::ByItself;
            assert_eq!(status.success(), ends_well, "{self:?}: {status}");
        }
    }

    fn end(self, started: &[Pid], processes: &[Pid]) {
        // Processes end at once, so that some are no longer there.
        let send = |signal: Signal, to: &[Pid]| {
            for &process in to {
                let _ = kill_process(process, signal);
            }
        };
        let one = &processes[..processes.len().min(1)];
        match self.ending {
            Ending::ByItself => {}
            // Without processes to kill the run is ended all the same.
            Ending::KillOfOne if one.is_empty() => send(Signal::TERM, started),
            Ending::KillOfAll if one.is_empty() => send(Signal::KILL, started),
            Ending::KillOfOne => send(Signal::KILL, one),
            Ending::KillOfAll => send(Signal::KILL, processes),
            Ending::KillOfLauncher => send(Signal::KILL, started),
            Ending::Terminate => send(Signal::TERM, started),
            Ending::Interrupt => send(Signal::INT, started),
            Ending::TerminateStopped => {
                send(Signal::STOP, one);
                send(Signal::TERM, started);
                thread::sleep(Duration::from_millis(20));
                send(Signal::CONT, one);
            }
        }
    }
}

#[test]
fn a_hundred_runs_leave_no_file_process_or_socket_however_they_end() {
    if let Some(is_alone) = env::var_os(IS_ALONE) {
        return runs_leave_nothing(is_alone == "true");
    }
    // One's own, or those of a user who is root within.
    let namespaces = [&["--mount", "--net"][..], &["--mount", "--net", "--map-root-user"]];
    let script = "mount -t tmpfs none /dev/shm && ip link set lo up && exec \"$@\"";
    let alone = namespaces.map(|options| {
        let mut command = Command::new("unshare");
        command.args(options).args(["sh", "-c", script, "sh"]).env(IS_ALONE, "true");
        command
    });
    let may = |command: &&Command| {
        let mut trial = Command::new(command.get_program());
        trial.args(command.get_args()).arg("true").stderr(Stdio::null());
        trial.status().is_ok_and(|status| status.success())
    };
    let mut in_network_of_all = Command::new("env");
    in_network_of_all.env(IS_ALONE, "false");
    let found = alone.iter().position(|command| may(&command));
    let mut command = match found {
        Some(found) => alone.into_iter().nth(found).unwrap(),
        None => {
            eprintln!(
                "SKIPPED: without a network and a /dev/shm of its own nothing there is compared"
            );
            in_network_of_all
        }
    };
    command.arg(env::current_exe().unwrap()).stdin(Stdio::null());
    command.args(["--exact", "--nocapture"]);
    command.arg("leftovers::a_hundred_runs_leave_no_file_process_or_socket_however_they_end");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let counted = format!("{RUNS} runs have ended");
    assert!(output.status.success() && text.contains(&counted), "{text}\n{errors}");
}

/// Runs all, and compares what is there before and after.
fn runs_leave_nothing(is_alone: bool) {
    let folder = tempfile::tempdir().unwrap();
    let marker = format!("{}-", std::process::id());
    let before = (files("/dev/shm".as_ref()), sockets());
    let (runs, next) = (Run::all(), AtomicUsize::new(0));
    let begin = Instant::now();
    let take = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        Some((number, runs.get(number)?))
    };
    let work = || {
        for (number, run) in std::iter::from_fn(take) {
            run.run(folder.path(), &format!("{marker}{number}"));
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    println!("{} runs have ended after {:.1} s", runs.len(), begin.elapsed().as_secs_f64());
    // Processes whose launcher was killed, and sockets of those that were, need a moment.
    none_after(|| processes_of(&marker, &runs), "processes");
    assert_eq!(files(folder.path()), BTreeSet::new(), "in the folder for temporary files");
    if is_alone {
        none_after(|| sockets().difference(&before.1).cloned().collect(), "sockets");
        assert_eq!(files("/dev/shm".as_ref()), before.0, "in /dev/shm");
    }
}

/// Waits until nothing is found.
fn none_after(find: impl Fn() -> Vec<String>, of: &str) {
    let begin = Instant::now();
    loop {
        let found = find();
        if found.is_empty() {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{of} that go on: {found:#?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn files(folder: &Path) -> BTreeSet<OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Returns the processes that have the marker of one of the runs.
fn processes_of(marker: &str, runs: &[Run]) -> Vec<String> {
    let marker = format!("{RUN}={marker}");
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(|process| {
        // Most of what is there is of others, who may end meanwhile.
        let variables = fs::read(process.path().join("environ")).ok()?;
        let mut variables = variables.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let run: usize = variables.find_map(|it| it.strip_prefix(&marker)?.parse().ok())?;
        Some(format!("{:?} of {:?}", process.file_name(), runs[run]))
    });
    processes.collect()
}

/// Returns the sockets of this network, but not those that only keep their port for a while.
fn sockets() -> BTreeSet<String> {
    const TIME_WAIT: &str = "06";
    let lines = ["tcp", "tcp6", "udp", "udp6", "unix"].into_iter().flat_map(|kind| {
        let text = fs::read_to_string(format!("/proc/self/net/{kind}")).unwrap_or_default();
        let lines: Vec<_> = text.lines().skip(1).map(|line| format!("{kind} {line}")).collect();
        lines.into_iter().filter(move |line| {
            !kind.starts_with("tcp") || line.split_whitespace().nth(4) != Some(TIME_WAIT)
        })
    });
    lines.collect()
}
