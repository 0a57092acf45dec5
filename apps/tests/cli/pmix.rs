//! Processes that a launcher with PMIx has started: the `mpirun` of Open MPI, and a library that answers wrongly.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::launch::{children_of, has_workers};
use crate::{command, error_of, stdout_of, value};

const JACOBI: &str = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --check --quiet";
const TALPF: &str = env!("CARGO_BIN_EXE_talpf");

/// Returns the command of the `mpirun` of Open MPI with arguments, or says that it is missing.
pub(crate) fn mpirun(arguments: &str) -> Option<Command> {
    let started = Command::new("mpirun.openmpi").arg("--version").output();
    if !started.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: mpirun.openmpi is not installed");
        return None;
    }
    let mut command = Command::new("timeout");
    command.args(["60", "mpirun.openmpi"]).args(arguments.split_whitespace());
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ] {
        command.env(name, value);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

fn errors_of(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn processes_of_the_mpirun_of_open_mpi_are_serial() {
    for (size, options, transport) in
        [(3, "", "shm"), (3, "--transport tcp", "tcp"), (2, "--variant talpf-get", "shm")]
    {
        let Some(mut run) = mpirun(&format!("-n {size} {TALPF} {JACOBI} {options}")) else {
            return;
        };
        let text = stdout_of(&run.output().unwrap());
        let found = (value(&text, "ranks"), value(&text, "transport"));
        assert_eq!(found, (&*size.to_string(), transport));
        assert!(value(&text, "verified").starts_with("yes"), "{text}");
    }
    // A process that is alone is as if nobody had started it.
    let Some(mut alone) = mpirun(&format!("-n 1 {TALPF} {JACOBI} --ranks 4")) else { return };
    let text = stdout_of(&alone.output().unwrap());
    assert_eq!(value(&text, "ranks"), "4");
    assert!(!text.contains("transport"), "{text}");
}

#[test]
fn a_shell_between_the_launcher_and_a_process_changes_nothing() {
    let Some(mut run) = mpirun("-n 2 sh -c") else { return };
    let text = stdout_of(&run.arg(format!("{TALPF} {JACOBI}; exit $?")).output().unwrap());
    assert_eq!((value(&text, "ranks"), value(&text, "transport")), ("2", "shm"));
}

#[test]
fn processes_that_do_not_belong_together_are_refused() {
    for (runs, expected) in [
        (
            format!("-n 1 {TALPF} {JACOBI} : -n 1 {TALPF} {}", JACOBI.replace("37", "38")),
            &[" has rows 38"][..],
        ),
        (
            format!("-n 1 {TALPF} {JACOBI} --timeout 1 : -n 1 sleep 30"),
            &["not all of the 2 processes have come in time"],
        ),
        // A process that ends without having joined, of which the launcher notifies the others.
        (
            format!("-n 1 {TALPF} {JACOBI} --timeout 1 : -n 1 sleep 0"),
            &["not all of the 2 processes have come in time", "has no answer of its launcher"],
        ),
        (
            format!("-n 2 {TALPF} jacobi --variant tampi --quiet"),
            &["mpirun has started 2 processes, but --transport verbs runs all ranks in one"],
        ),
        (
            format!("-n 2 {TALPF} compare jacobi --out /nowhere"),
            &["mpirun has started 2 processes, but --transport verbs runs all ranks in one"],
        ),
        (format!("-n 2 {TALPF} launch -n 2 -- {JACOBI}"), &["of 2, but PMIX_RANK is"]),
    ] {
        let Some(mut run) = mpirun(&runs) else { return };
        let errors = errors_of(&run.output().unwrap());
        assert!(expected.iter().any(|expected| errors.contains(expected)), "{runs}: {errors}");
    }
}

#[test]
fn a_process_that_is_killed_is_named_by_all_others() {
    for transport in ["shm", "tcp"] {
        // Without the option, mpirun ends the others at once, some before they can say anything.
        let endless = format!(
            "--enable-recovery -n 3 {TALPF} jacobi --size 32 --block 8 --steps 1000000000 --quiet \
             --transport {transport}"
        );
        let Some(mut run) = mpirun(&endless) else { return };
        let child = run.spawn().unwrap();
        // Of `timeout`, mpirun is the only child.
        let processes = loop {
            let launcher = children_of(child.id()).pop();
            let number = launcher.map(|launcher| launcher.as_raw_nonzero().get() as u32);
            let processes = number.map(children_of).unwrap_or_default();
            if processes.len() == 3 && processes.iter().all(|process| has_workers(*process)) {
                break processes;
            }
            std::thread::yield_now();
        };
        let is_second = |process: &u32| {
            let variables = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
            variables.split(|byte| *byte == 0).any(|variable| variable == b"PMIX_RANK=1")
        };
        let victim = processes
            .into_iter()
            .find(|process| is_second(&(process.as_raw_nonzero().get() as u32)))
            .expect("a process is the second one");
        kill_process(victim, Signal::KILL).unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let names = |line: &&str| line.ends_with("rank 1 failed: its process has ended");
        assert_eq!(errors.lines().filter(names).count(), 2, "{transport}: {errors}");
    }
}

/// A folder with a library that has the name of that of PMIx.
struct Library {
    folder: tempfile::TempDir,
}

impl Library {
    /// Compiles a library that answers as a variable says; says so and returns `None` without a compiler.
    fn scripted() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/libpmix.c");
        let library = Self { folder };
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(library.path()).arg(source);
        match compiler.status() {
            Ok(status) => assert!(status.success()),
            Err(error) => {
                eprintln!("SKIPPED: there is no C compiler: {error}");
                return None;
            }
        }
        Some(library)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("libpmix.so.2")
    }

    /// Returns the command of process 0 of 3, which finds this library, and what that shall answer.
    fn process(&self, arguments: &str, answer: &str) -> Command {
        let mut command = process(arguments);
        command.env("LD_LIBRARY_PATH", self.folder.path()).env("TALPF_TEST_PMIX", answer);
        command
    }
}

/// Returns the command of process 0 of a launcher that does not listen.
fn process(arguments: &str) -> Command {
    let mut command = command(&arguments.split_whitespace().collect::<Vec<_>>());
    command.env("PMIX_RANK", "0").env("PMIX_NAMESPACE", "job");
    command.env("PMIX_SERVER_URI41", "launcher.0;tcp4://127.0.0.1:9");
    command
}

#[test]
fn a_library_that_answers_wrongly_is_an_error() {
    let Some(library) = Library::scripted() else { return };
    let variables = "PMIX_RANK is \"0\", PMIX_NAMESPACE is \"job\" and PMIX_SERVER_URI41 is \
                     \"launcher.0;tcp4://127.0.0.1:9\": ";
    for (answer, expected) in [
        ("old", "libpmix.so.2 is of \"PMIx 2.2.5\"; version 3 or later is needed"),
        ("fail in init", "PMIx_Init: UNREACHABLE (-25)"),
        ("another job", "the launcher says process 0 of \"another\""),
        ("another rank", "the launcher says process 1 of \"job\""),
        ("no size", "PMIx_Get: no such value"),
        ("size of another kind", "PMIx_Get: no such value"),
        ("no processes", "the launcher says that there are 0 processes"),
        ("fail in get", "PMIx_Get: UNREACHABLE (-25)"),
    ] {
        let error = error_of(&library.process(JACOBI, answer).output().unwrap());
        assert_eq!(error, format!("{variables}{expected}"), "{answer}");
    }
    for (answer, expected) in [
        ("fail in put", "process 0 has no answer of its launcher, by PMIx_Put: UNREACHABLE (-25)"),
        (
            "fail in commit",
            "process 0 has no answer of its launcher, by PMIx_Commit: UNREACHABLE (-25)",
        ),
        (
            "fail in fence",
            "process 0 has no answer of its launcher, by PMIx_Fence: UNREACHABLE (-25)",
        ),
        ("time out in fence", "not all of the 3 processes have come in time"),
        ("nothing else", "process 0 has put no \"settings\" that makes sense"),
        ("bytes of another kind", "process 0 has put no \"settings\" that makes sense"),
    ] {
        let error = error_of(&library.process(JACOBI, answer).output().unwrap());
        assert_eq!(error, expected, "{answer}");
    }
}

#[test]
fn a_library_that_hangs_takes_no_longer_than_the_timeout() {
    let Some(library) = Library::scripted() else { return };
    for (answer, expected) in [
        ("hang in init", "PMIx_Init: no answer in time"),
        ("hang in get", "PMIx_Get: no answer in time"),
        ("hang in put", "process 0 has no answer of its launcher, by PMIx_Put: no answer in time"),
        ("hang in fence", "not all of the 3 processes have come in time"),
        ("hang in finalize", "process 0 has put no \"settings\""),
    ] {
        let begin = Instant::now();
        let mut run = library.process(&format!("{JACOBI} --timeout 1"), answer);
        let error = error_of(&run.output().unwrap());
        assert!(error.contains(expected), "{answer}: {error}");
        let limit = Duration::from_secs(15);
        assert!(begin.elapsed() < limit, "{answer}: {:?}", begin.elapsed());
    }
}

#[test]
fn a_library_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("libpmix.so.2");
    fs::write(&file, "no library").unwrap();
    let mut run = process(JACOBI);
    let error = error_of(&run.env("LD_LIBRARY_PATH", folder.path()).output().unwrap());
    assert!(error.starts_with("PMIX_RANK is \"0\", PMIX_NAMESPACE is "), "{error}");
    assert!(error.contains(": libpmix.so.2 cannot be loaded: "), "{error}");
}

#[test]
fn an_environment_that_makes_no_sense_names_its_variables() {
    let with = |variables: &[(&str, &str)]| {
        let mut command = command(&JACOBI.split_whitespace().collect::<Vec<_>>());
        error_of(&command.envs(variables.iter().copied()).output().unwrap())
    };
    let server = ("PMIX_SERVER_URI2", "launcher.0;tcp4://127.0.0.1:9");
    for (variables, expected) in [
        (
            &[("PMIX_RANK", "1")][..],
            "PMIX_RANK is \"1\", without PMIX_NAMESPACE and PMIX_SERVER_URI*",
        ),
        (
            &[("PMIX_NAMESPACE", "job"), server],
            "PMIX_NAMESPACE is \"job\" and PMIX_SERVER_URI2 is \"launcher.0;tcp4://127.0.0.1:9\", \
             without PMIX_RANK",
        ),
        (
            &[("PMIX_RANK", "first"), ("PMIX_NAMESPACE", "job"), server],
            "PMIX_RANK is \"first\", expected a number",
        ),
        (
            &[("PMI_FD", "0"), ("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("PMIX_RANK", "1")],
            "PMI_RANK is \"0\", but PMIX_RANK is \"1\": which launcher has started this?",
        ),
    ] {
        assert_eq!(with(variables), expected);
    }
}

#[test]
fn a_launcher_that_does_not_listen_is_named() {
    let Some(_) = mpirun("--version") else { return };
    let error = error_of(&process(JACOBI).output().unwrap());
    let expected =
        "PMIX_SERVER_URI41 is \"launcher.0;tcp4://127.0.0.1:9\": PMIx_Init: UNREACHABLE (-25)";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn launchers_that_disagree_are_named() {
    let Some(library) = Library::scripted() else { return };
    let mut size = library.process(JACOBI, "nothing");
    let error = error_of(&size.env("OMPI_COMM_WORLD_SIZE", "2").output().unwrap());
    let expected = "the launcher says process 0 of 3, but OMPI_COMM_WORLD_SIZE is \"2\"";
    assert!(error.ends_with(expected), "{error}");
    let mut launch = library.process("launch -n 2 -- jacobi --quiet", "nothing");
    let errors = errors_of(&launch.output().unwrap());
    let expected = " of 2, but PMIX_RANK is \"0\" of 3 processes: which launcher has started this?";
    assert!(errors.contains(expected), "{errors}");
}

#[test]
fn a_child_of_a_process_that_has_joined_is_not_that_process() {
    let Some(library) = Library::scripted() else { return };
    // A shell with the library is in the place of a process that has joined.
    for (preload, is_child) in [(Some(library.path()), true), (None, false)] {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("unset LD_PRELOAD; {TALPF} {JACOBI} --ranks 2; exit $?"));
        let variables = process(JACOBI);
        shell.envs(variables.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.envs(preload.map(|path| ("LD_PRELOAD", path)));
        let shell = shell.env("LD_LIBRARY_PATH", library.folder.path()).stdin(Stdio::null());
        let output = shell.env("TALPF_TEST_PMIX", "fail in init").output().unwrap();
        if is_child {
            let text = stdout_of(&output);
            assert_eq!(value(&text, "ranks"), "2");
            assert!(!text.contains("transport"), "{text}");
        } else {
            let errors = errors_of(&output);
            assert!(errors.contains("PMIx_Init: UNREACHABLE"), "{errors}");
        }
    }
}
