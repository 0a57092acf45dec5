//! Processes that a launcher with PMI has started: values, settings, and launchers that answer wrongly.

use std::{
    io::Write,
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use ibverbs_sim::bootstrap::{Bootstrap, BootstrapError, PmiBootstrap};

use super::{TIMEOUT, pmi_server::PmiServer};

/// Runs processes under a launcher. Returns their results, and the commands of each.
fn run<R: Send>(
    version: u32,
    processes: u32,
    process: impl Fn(u32, UnixStream) -> R + Sync,
) -> (Vec<R>, Vec<Vec<String>>) {
    let server = PmiServer::new(version, processes as usize);
    thread::scope(|scope| {
        let start = |number: u32| {
            let (here, there) = UnixStream::pair().unwrap();
            let (server, process) = (&server, &process);
            let commands = scope.spawn(move || server.serve(there, number as usize));
            (scope.spawn(move || process(number, here)), commands)
        };
        let threads: Vec<_> = (0..processes).map(start).collect();
        threads.into_iter().map(|(r, c)| (r.join().unwrap(), c.join().unwrap())).unzip()
    })
}

#[test]
fn values_of_any_length_come_back_in_both_versions() {
    for version in [1, 2] {
        let (values, commands) = run(version, 3, |process, stream| {
            let settings = [("size", "12"), ("text", "a b;c=d")];
            let mut all = PmiBootstrap::over(stream, process, 3, &settings, TIMEOUT)?;
            assert_eq!((all.process(), all.processes()), (process, 3));
            let value: Vec<u8> = (0..process * 400).map(|at| at as u8).collect();
            all.put("of each", &[])?;
            all.put("long", &value)?;
            let too_long = all.put(&"key".repeat(10), &[]);
            assert!(matches!(too_long, Err(BootstrapError::Put { .. })), "{too_long:?}");
            all.fence()?;
            let missing = all.get(0, "nothing");
            assert!(missing.is_err(), "{missing:?}");
            assert_eq!(all.get(1, "of each")?, []);
            (0..3).map(|of| all.get(of, "long")).collect::<Result<Vec<_>, _>>()
        });
        for values in values {
            let lengths: Vec<_> = values.unwrap().iter().map(Vec::len).collect();
            assert_eq!(lengths, [0, 400, 800]);
        }
        for commands in commands {
            assert_eq!(commands.last().map(String::as_str), Some("finalize"), "{commands:?}");
        }
    }
}

#[test]
fn a_process_with_other_settings_is_named() {
    for version in [1, 2] {
        let (errors, _) = run(version, 2, |process, stream| {
            let size = (process + 7).to_string();
            let settings = [("application", "jacobi"), ("size", &*size)];
            PmiBootstrap::over(stream, process, 2, &settings, TIMEOUT).map(drop)
        });
        let texts: Vec<_> = errors.into_iter().map(|end| end.unwrap_err().to_string()).collect();
        let expected = [
            "process 1 has size 8, process 0 has size 7",
            "process 0 has size 7, process 1 has size 8",
        ];
        assert_eq!(texts, expected);
    }
}

/// Returns the error of a process whose launcher has said this, and nothing more.
fn error_of(said: &[u8], timeout: Duration, is_open: bool) -> BootstrapError {
    let (here, mut there) = UnixStream::pair().unwrap();
    there.write_all(said).unwrap();
    let there = Some(there).filter(|_| is_open);
    let error = PmiBootstrap::over(here, 0, 2, &[], timeout).unwrap_err();
    drop(there);
    error
}

#[test]
fn a_launcher_that_answers_wrongly_or_not_at_all_is_an_error() {
    let first = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    let none = "cmd=response_to_init pmi_version=9 pmi_subversion=1 rc=-1\n";
    let second = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
    for (said, expected) in [
        ("bonjour\n".to_owned(), "\"nothing\" in place of response_to_init"),
        (none.repeat(2), "neither version 1 nor version 2"),
        (format!("{first}cmd=barrier_out\n"), "\"barrier_out\" in place of maxes"),
        (format!("{none}{second}   abc"), "a length of \"   abc\""),
        (format!("{none}{second}999999999999"), "a length of \"999999\""),
        (
            format!("{none}{second}    45cmd=fullinit-response;rank=0;size=3;rc=0;xxxx"),
            "PMI_SIZE is \"2\", but the launcher says 3",
        ),
        (
            format!("{none}{second}    43cmd=fullinit-response;rc=14;errmsg=invalid;"),
            "fullinit-response refuses, with \"invalid\"",
        ),
    ] {
        let error = error_of(said.as_bytes(), TIMEOUT, true).to_string();
        assert!(error.contains(expected), "{said:?}: {error}");
    }
    let silent = error_of(b"", Duration::from_millis(20), true);
    assert!(matches!(silent, BootstrapError::Pmi { process: 0, .. }), "{silent:?}");
    let gone = error_of(first.as_bytes(), TIMEOUT, false).to_string();
    assert!(gone.starts_with("process 0 has no answer of its launcher, by PMI: "), "{gone}");
}

#[test]
fn processes_that_do_not_come_are_missed() {
    let (here, there) = UnixStream::pair().unwrap();
    let server = thread::spawn(|| PmiServer::new(1, 2).serve(there, 0));
    let (timeout, start) = (Duration::from_secs(1), Instant::now());
    let error = PmiBootstrap::over(here, 0, 2, &[], timeout).unwrap_err();
    assert_eq!(error.to_string(), "not all of the 2 processes have come in time");
    assert!(start.elapsed() < 2 * timeout, "nothing more is asked of a launcher that is silent");
    drop(server);
}
