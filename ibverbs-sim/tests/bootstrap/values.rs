//! Values that processes exchange, and mistakes in their numbers and settings.

use ibverbs_sim::bootstrap::{Bootstrap, BootstrapError, BootstrapServer, TcpBootstrap};

use super::{SECRET, SHORT, Server, TIMEOUT, each};

#[test]
fn everybody_gets_what_everybody_has_put() {
    let server = Server::start(5, TIMEOUT);
    each(5, |process| {
        let mut all = server.join(process, 5);
        assert_eq!((all.process(), all.processes()), (process, 5));
        assert!(all.address().is_loopback());
        for round in 0..3u8 {
            let value = vec![process as u8 + round; usize::from(round) * 1000];
            all.put(&format!("of {round}"), &value).unwrap();
            all.fence().unwrap();
            for other in 0..5 {
                let value = all.get(other, &format!("of {round}")).unwrap();
                assert_eq!(value, vec![other as u8 + round; usize::from(round) * 1000]);
            }
        }
        let error = all.get(2, "of 3").unwrap_err();
        assert_eq!(error.to_string(), "process 2 has put no \"of 3\" that makes sense");
    });
    assert_eq!(server.error(), None);
}

#[test]
fn a_value_is_put_once_and_within_its_limit() {
    let server = Server::start(1, TIMEOUT);
    let mut all = server.join(0, 1);
    let limit = 1 << 20;
    all.put("k", &vec![1; limit - 9]).unwrap();
    assert!(matches!(all.put("k", b"2"), Err(BootstrapError::Put { bytes: 1, .. })));
    assert!(matches!(all.put("l", b""), Err(BootstrapError::Put { bytes: 0, .. })));
    all.fence().unwrap();
    assert!(matches!(all.put("k", b"2"), Err(BootstrapError::Put { .. })));
    assert!(matches!(all.put("l", &vec![1; limit - 8]), Err(BootstrapError::Put { .. })));
    all.put("l", &vec![2; limit - 9]).unwrap();
    all.fence().unwrap();
    assert_eq!(all.get(0, "k").unwrap().len(), limit - 9);
    assert_eq!(all.get(0, "l").unwrap()[0], 2);
    drop(all);
    assert_eq!(server.error(), None);
}

#[test]
fn who_is_missing_is_named_to_all() {
    let server = Server::start(4, SHORT);
    let errors = each(4, |process| match process {
        1 | 2 => Ok(()),
        _ => server.join(process, 4).fence(),
    });
    let expected = "processes 1, 2 of 4 have not come in time";
    for process in [0, 3] {
        assert_eq!(errors[process].as_ref().unwrap_err().to_string(), expected);
    }
    assert_eq!(server.error().unwrap(), expected);
}

#[test]
fn who_does_not_come_to_the_fence_is_named() {
    let server = Server::start(2, SHORT);
    let idle = server.join(1, 2);
    let error = server.join(0, 2).fence().unwrap_err().to_string();
    assert_eq!(error, "process 1 of 2 has not come in time");
    drop(idle);
    server.error().unwrap();
}

#[test]
fn a_process_that_ends_during_the_start_is_named() {
    let server = Server::start(3, TIMEOUT);
    let mut first = server.join(0, 3);
    drop(server.join(2, 3));
    let error = first.fence().unwrap_err().to_string();
    assert_eq!(error, "process 2 has left before all had come");
    drop(first);
    assert_eq!(server.error().unwrap(), error);
}

#[test]
fn a_number_that_comes_twice_is_named() {
    let server = Server::start(2, TIMEOUT);
    let mut first = server.join(1, 2);
    let mut second = server.join(1, 2);
    for process in [&mut first, &mut second] {
        let error = process.fence().unwrap_err().to_string();
        assert!(error.starts_with("process 1 has come twice, from 127.0.0.1:"), "{error}");
    }
    drop((first, second));
    server.error().unwrap();
}

#[test]
fn what_differs_is_named_with_both_values() {
    type Setting = [(&'static str, &'static str); 1];
    let cases: [(u32, &[u8], Setting, &str); 4] = [
        (3, SECRET, [("fabric", "tcp")], "expects 3 processes, not 2"),
        (2, b"of another run", [("fabric", "tcp")], "has another secret"),
        (2, SECRET, [("fabric", "shm")], "has fabric shm, not tcp as process 0"),
        (2, SECRET, [("colour", "red")], "has colour red, not nothing as process 0"),
    ];
    for (processes, secret, settings, expected) in cases {
        let server = Server::start(2, TIMEOUT);
        let join = |process, processes, secret, settings: &Setting| {
            let address = &server.address;
            TcpBootstrap::join(address, process, processes, secret, settings, TIMEOUT).unwrap()
        };
        let mut first = join(0, 2, SECRET, &[("fabric", "tcp")]);
        let mut second = join(1, processes, secret, &settings);
        for process in [&mut second, &mut first] {
            let error = process.fence().unwrap_err().to_string();
            assert!(error.starts_with("process ") && error.ends_with(expected), "{error}");
        }
        drop((first, second));
        server.error().unwrap();
    }
}

#[test]
fn who_comes_after_the_error_of_another_learns_of_it() {
    let server = Server::start(2, TIMEOUT);
    let address = &server.address;
    let mut stranger = TcpBootstrap::join(address, 1, 2, b"another", &[], TIMEOUT).unwrap();
    let error = stranger.fence().unwrap_err().to_string();
    let late = server.join(0, 2).fence().unwrap_err().to_string();
    assert!(error.ends_with(" has another secret") && late == error, "{error}, {late}");
    drop(stranger);
    server.error().unwrap();
}

#[test]
fn numbers_are_below_the_number_of_processes() {
    let error = TcpBootstrap::join("127.0.0.1:1", 2, 2, SECRET, &[], SHORT).unwrap_err();
    assert_eq!(error.to_string(), "process 2 of 2: numbers are from 0 to 1");
}

#[test]
fn a_port_in_use_and_a_server_that_is_not_there_are_named() {
    let server = BootstrapServer::listen("127.0.0.1:0", 1, SECRET).unwrap();
    let address = format!("127.0.0.1:{}", server.port().unwrap());
    let error = BootstrapServer::listen(address.as_str(), 1, SECRET).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot listen at {address}: ")), "{error}");
    drop(server);
    let error = TcpBootstrap::join(&address, 0, 1, SECRET, &[], SHORT).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot reach the server at {address}: ")), "{error}");
}
