//! Log of the runtime on the error stream, if it is asked for.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Pid, Signal, kill_process};

use crate::launch::started;
use crate::server::{free_address, place, start};
use crate::{command, error_of, stdout_of, talpf};

const RUN: &str = "jacobi --size 32 --block 8 --steps 3 --quiet";

/// Runs with arguments and a variable, and returns the error stream.
fn said(arguments: &str, variable: &str) -> String {
    let mut command = command(&arguments.split(' ').collect::<Vec<_>>());
    let output = command.env("TALPF_LOG", variable).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn start_and_end_of_the_runtime_are_said() {
    for said in [said(&format!("{RUN} --log info"), ""), said(RUN, "talpf::runtime=info")] {
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines.len() >= 2, "{said}");
        assert!(said.contains("talpf::runtime") && said.contains("runtime begins"), "{said}");
        assert!(lines[lines.len() - 1].contains("runtime has ended"), "{said}");
    }
    assert_eq!(said(&format!("--log warn {RUN}"), "info"), "");
}

#[test]
fn communication_is_said_under_targets_of_its_own() {
    let one_sided = said(&format!("{RUN} --ranks 2 --log talpf::sync=debug"), "");
    assert!(one_sided.contains("talpf::sync: ranks begin ranks=2 "), "{one_sided}");
    assert!(one_sided.contains("the counts are cached rank=rank 0 lane=0 "), "{one_sided}");
    let two_sided = said(&format!("{RUN} --ranks 2 --variant tampi --log talpf::tampi=info"), "");
    let expected = "talpf::tampi: ranks begin ranks=2 protocols=eager to ";
    assert!(two_sided.contains(expected), "{two_sided}");
}

#[test]
fn a_process_that_is_lost_is_said() {
    let server = free_address();
    let run = |process| {
        let log = "--log talpf=info,verbs=debug";
        let run = "jacobi --size 32 --block 8 --steps 1000000000 --quiet";
        format!("{run} {log} {}", place(&server, process, 2))
    };
    // Nobody ends the one that survives.
    let [mut survivor, mut killed] = [0, 1].map(|process| start(&run(process), "of the test"));
    [&mut survivor, &mut killed].into_iter().for_each(started);
    kill_process(Pid::from_child(&killed), Signal::KILL).unwrap();
    killed.wait().unwrap();
    let said = String::from_utf8(survivor.wait_with_output().unwrap().stderr).unwrap();
    for expected in [
        "talpf::link: processes are connected processes=2 here=0..1",
        "verbs: nothing more comes from a process process=1 reason=Ended",
        "talpf::link: a rank is lost rank=rank 1 reason=\"its process has ended\"",
        "talpf::sync: the run fails rank=rank 1 reason=\"its process has ended\"",
    ] {
        assert_eq!(said.matches(expected).count(), 1, "{expected}: {said}");
    }
}

#[test]
fn nothing_is_said_unasked() {
    stdout_of(&talpf(RUN));
    assert_eq!(said(RUN, ""), "");
}

#[test]
fn a_filter_that_is_none_is_an_error() {
    let error = error_of(&talpf(&format!("{RUN} --log a=b=c")));
    assert!(error.starts_with("--log is `a=b=c`: "), "{error}");
}

#[test]
fn a_variable_that_is_no_text_is_an_error() {
    let variable = OsStr::from_bytes(b"talpf::runtime\xff=info");
    let mut command = command(&RUN.split(' ').collect::<Vec<_>>());
    let error = error_of(&command.env("TALPF_LOG", variable).output().unwrap());
    assert!(error.starts_with("TALPF_LOG is `talpf::runtime\u{fffd}=info`: "), "{error}");
}
