//! Processes that `srun --mpi=pmi2` of SLURM has started: values through a scripted launcher, and exchanges word
//! by word.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    thread,
};

use ibverbs_sim::bootstrap::{Bootstrap, BootstrapError, PmiBootstrap};

use super::{TIMEOUT, each, slurm_server::SlurmServer};

/// Lengths of values: short ones, those on both sides of one piece, and long ones.
fn lengths() -> impl Iterator<Item = usize> {
    [0, 1, 100].into_iter().chain(440..520).chain([1000, 4000])
}

/// Returns the value of a length that a process puts.
fn value(process: u32, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(7) ^ process as u8).collect()
}

#[test]
fn values_of_any_length_come_back_in_both_versions() {
    for version in [1, 2] {
        let server = SlurmServer::new(version, 3, "");
        let commands = each(3, |process| {
            let (here, there) = UnixStream::pair().unwrap();
            thread::scope(|scope| {
                let served = scope.spawn(|| server.serve(there, process as usize));
                put_and_get(here, process).unwrap();
                served.join().unwrap()
            })
        });
        for commands in commands {
            assert_eq!(commands.last().map(String::as_str), Some("finalize"));
            assert!(!commands.contains(&"no command".to_owned()), "version {version}");
        }
    }
}

fn put_and_get(stream: UnixStream, process: u32) -> Result<(), BootstrapError> {
    // Settings of more than one piece.
    let settings = [("application", "jacobi"), ("text", &*"a b;c=d".repeat(100))];
    let mut all = PmiBootstrap::over(stream, process, 3, &settings, TIMEOUT)?;
    for length in lengths() {
        all.put(&length.to_string(), &value(process, length))?;
    }
    assert!(all.get(process, "1").is_err(), "before a fence");
    all.fence()?;
    assert!(all.get(0, "nothing").is_err());
    for of in 0..3 {
        for length in lengths() {
            assert!(all.get(of, &length.to_string())? == value(of, length), "{length} bytes");
        }
    }
    Ok(())
}

/// Plays a launcher that expects and says these texts one after the other, and then closes its end.
fn play(mut stream: UnixStream, exchange: &[(String, String)]) {
    for (expected, said) in exchange {
        let mut bytes = vec![0; expected.len()];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), *expected);
        stream.write_all(said.as_bytes()).unwrap();
    }
}

/// Runs process 1 of 2, which puts `here` and gets `there`, in an exchange.
fn check(exchange: &[(String, String)]) {
    let (here, there) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| play(there, exchange));
        let mut all = PmiBootstrap::over(here, 1, 2, &[], TIMEOUT).unwrap();
        all.put("k", b"here").unwrap();
        all.fence().unwrap();
        assert_eq!(all.get(0, "k").unwrap(), b"there");
        assert!(all.get(0, "m").is_err());
    });
}

#[test]
fn an_exchange_of_version_1_is_understood_word_by_word() {
    let line = |(sent, said): (&str, &str)| (format!("cmd={sent}\n"), format!("cmd={said}\n"));
    let exchange = [
        (
            "init pmi_version=1 pmi_subversion=1",
            "response_to_init rc=0 pmi_version=1 pmi_subversion=1",
        ),
        ("get_maxes", "maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024"),
        ("get_my_kvsname", "my_kvsname rc=0 kvsname=4711.0"),
        ("put kvsname=4711.0 key=talpf-1-73657474696e6773-0 value=0001", "put_result rc=0"),
        ("barrier_in", "barrier_out rc=0"),
        ("get kvsname=4711.0 key=talpf-0-73657474696e6773-0", "get_result rc=0 value=0001"),
        ("get kvsname=4711.0 key=talpf-1-73657474696e6773-0", "get_result rc=0 value=0001"),
        ("put kvsname=4711.0 key=talpf-1-6b-0 value=000168657265", "put_result rc=0"),
        ("barrier_in", "barrier_out rc=0"),
        ("get kvsname=4711.0 key=talpf-0-6b-0", "get_result rc=0 value=00017468657265"),
        ("get kvsname=4711.0 key=talpf-0-6d-0", "get_result rc=1"),
        ("finalize", "finalize_ack rc=0"),
    ];
    check(&exchange.map(line));
}

#[test]
fn an_exchange_of_version_2_is_understood_word_by_word() {
    let line = |(sent, said): (&str, &str)| (format!("cmd={sent}\n"), format!("cmd={said}\n"));
    let counted = |(sent, said): (&str, &str)| {
        let with_length = |text: &str| format!("{:<6}cmd={text}", text.len() + 4);
        (with_length(sent), with_length(said))
    };
    let begin = [
        (
            "init pmi_version=1 pmi_subversion=1",
            "response_to_init rc=-1 pmi_version=2 pmi_subversion=0",
        ),
        (
            "init pmi_version=2 pmi_subversion=0",
            "response_to_init rc=0 pmi_version=2 pmi_subversion=0",
        ),
    ];
    let exchange = [
        (
            "fullinit;pmijobid=;pmirank=1;threaded=FALSE;",
            "fullinit-response;rc=0;pmi-version=2;pmi-subversion=0;rank=1;size=2;appnum=-1;\
             debugged=FALSE;pmiverbose=FALSE;",
        ),
        ("kvs-put;key=talpf-1-73657474696e6773-0;value=0001;", "kvs-put-response;rc=0;"),
        ("kvs-fence;", "kvs-fence-response;rc=0;"),
        ("kvs-get;key=talpf-0-73657474696e6773-0;", "kvs-get-response;rc=0;found=TRUE;value=0001;"),
        ("kvs-get;key=talpf-1-73657474696e6773-0;", "kvs-get-response;rc=0;found=TRUE;value=0001;"),
        ("kvs-put;key=talpf-1-6b-0;value=000168657265;", "kvs-put-response;rc=0;"),
        ("kvs-fence;", "kvs-fence-response;rc=0;"),
        ("kvs-get;key=talpf-0-6b-0;", "kvs-get-response;rc=0;found=TRUE;value=00017468657265;"),
        ("kvs-get;key=talpf-0-6d-0;", "kvs-get-response;rc=0;found=FALSE;"),
        ("finalize;", "finalize-response;rc=0;"),
    ];
    check(&[begin.map(line).to_vec(), exchange.map(counted).to_vec()].concat());
}

#[test]
fn a_fence_that_the_launcher_gives_up_is_an_error() {
    let said = "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n\
                cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n\
                cmd=my_kvsname rc=0 kvsname=4711.0\n\
                cmd=put_result rc=0\n\
                cmd=barrier_out rc=-1 msg=mpi/pmi2:_failed_to_send_temp_kvs\n\
                cmd=finalize_ack rc=0\n";
    let (here, mut there) = UnixStream::pair().unwrap();
    there.write_all(said.as_bytes()).unwrap();
    let error = PmiBootstrap::over(here, 0, 2, &[], TIMEOUT).unwrap_err().to_string();
    let expected = "barrier_out refuses, with \"mpi/pmi2:_failed_to_send_temp_kvs\"";
    assert!(error.contains(expected), "{error}");
}
