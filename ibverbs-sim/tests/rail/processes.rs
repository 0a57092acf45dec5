//! The rail through shared memory between processes: this test starts itself again.

use std::{
    env,
    process::{Child, Command, Stdio},
    time::Duration,
};

use ibverbs_sim::{Access, LossReason, Rail, RailEvent, RailKey, ShmConfig, ShmRail};

use super::{
    ends::{Memory, at},
    shm::segment,
    sleep::Incoming,
};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Name of the run, for a child.
const RUN: &str = "IBVERBS_SIM_TEST_RUN";

fn run_name(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

/// Starts this program again, to run the test `child` as process 1 of a run.
fn start(run: &str, child: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("processes::{child}"), "--nocapture", "--ignored"])
        .env(RUN, run)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn join(run: &str, process: u32) -> ShmRail {
    ShmRail::join(run, process, 2, TIMEOUT, &ShmConfig::default()).unwrap()
}

fn key(bytes: &[u8]) -> RailKey {
    RailKey::from_bytes(bytes).unwrap()
}

#[test]
fn a_process_writes_into_another_and_reads_back() {
    let run = run_name("writes");
    let mut child = start(&run, "child_that_writes");
    let rail = join(&run, 0);
    let mut incoming = Incoming::new(&rail);
    let (mapped, private) = (segment(&rail, 1 << 20), Memory::private(1 << 20));
    for memory in [&mapped, &private] {
        #[allow(unsafe_code, reason = "the memory stays until it is deregistered")]
        // SAFETY: as the reason says.
        let key = unsafe { rail.register(memory.all(), Access::ALL) }.unwrap();
        rail.send(1, key.as_bytes()).unwrap();
        let mut noticed = None;
        while noticed.is_none() {
            rail.poll(&mut |event| match event {
                RailEvent::Notice { from: 1, notice } => noticed = Some(notice),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(noticed, Some(1 << 20));
        let bytes = memory.bytes();
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == (at * 7) as u8));
        rail.send(1, b"read back").unwrap();
        assert_eq!(incoming.next(), Ok(b"the same".to_vec()));
        rail.deregister(&key).unwrap();
    }
    assert_eq!(incoming.next(), Err(LossReason::Ended));
    assert!(child.wait().unwrap().success());
}

#[test]
#[ignore = "started by another test"]
fn child_that_writes() {
    let rail = join(&env::var(RUN).unwrap(), 1);
    let mut incoming = Incoming::new(&rail);
    for _ in 0..2 {
        let remote = at(key(&incoming.next().unwrap()), 0);
        let local = Memory::private(1 << 20);
        let bytes: Vec<u8> = (0..1 << 20).map(|at| (at * 7) as u8).collect();
        local.fill(0, &bytes);
        carry_out(&rail, |rail| {
            #[allow(unsafe_code, reason = "the memory stays until the write has ended")]
            // SAFETY: as the reason says.
            unsafe {
                rail.write(0, local.all(), &remote, Some(1 << 20), 0)
            }
        });
        assert_eq!(incoming.next(), Ok(b"read back".to_vec()));
        local.fill(0, &vec![0; 1 << 20]);
        carry_out(&rail, |rail| {
            #[allow(unsafe_code, reason = "the memory stays until the read has ended")]
            // SAFETY: as the reason says.
            unsafe {
                rail.read(0, local.all(), &remote, 0)
            }
        });
        assert!(local.bytes() == bytes);
        rail.send(0, b"the same").unwrap();
    }
}

fn carry_out(
    rail: &ShmRail,
    post: impl FnOnce(&ShmRail) -> Result<ibverbs_sim::Posted, ibverbs_sim::RailError>,
) {
    use ibverbs_sim::{CompletionStatus, Posted};
    if post(rail).unwrap() != Posted::Ended(CompletionStatus::Success) {
        let mut ended = None;
        while ended.is_none() {
            rail.poll(&mut |event| match event {
                RailEvent::Completed { status, .. } => ended = Some(status),
                other => panic!("{other:?}"),
            });
        }
        assert_eq!(ended, Some(CompletionStatus::Success));
    }
}

#[test]
fn a_process_that_is_killed_is_noticed_and_leaves_nothing() {
    let before = entries();
    for round in 0..3 {
        let run = run_name(&format!("killed-{round}"));
        let mut child = start(&run, "child_that_writes_for_ever");
        let rail = join(&run, 0);
        let mut incoming = Incoming::new(&rail);
        let memory = segment(&rail, 1 << 20);
        #[allow(unsafe_code, reason = "the memory stays until it is deregistered")]
        // SAFETY: as the reason says.
        let key = unsafe { rail.register(memory.all(), Access::ALL) }.unwrap();
        rail.send(1, key.as_bytes()).unwrap();
        assert_eq!(incoming.next(), Ok(b"begun".to_vec()));
        child.kill().unwrap();
        child.wait().unwrap();
        // Whether or not the kill came within a copy.
        rail.deregister(&key).unwrap();
        assert_eq!(incoming.next(), Err(LossReason::Ended));
        assert!(rail.send(1, b"x").is_err());
    }
    assert_eq!(entries(), before);
}

#[test]
#[ignore = "started by another test"]
fn child_that_writes_for_ever() {
    let rail = join(&env::var(RUN).unwrap(), 1);
    let mut incoming = Incoming::new(&rail);
    let remote = at(key(&incoming.next().unwrap()), 0);
    let local = Memory::private(1 << 20);
    rail.send(0, b"begun").unwrap();
    loop {
        #[allow(unsafe_code, reason = "the memory stays until the write has ended")]
        // SAFETY: as the reason says.
        let _ = unsafe { rail.write(0, local.all(), &remote, None, 0) };
    }
}

/// Counts what a rail could leave behind.
fn entries() -> usize {
    let is_ours = |name: &str| name.contains("ibverbs");
    let in_folder = |folder: &str| {
        let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
        all.filter(|entry| is_ours(&entry.file_name().to_string_lossy())).count()
    };
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let run = format!("-{}-", std::process::id());
    in_folder("/dev/shm")
        + in_folder(&env::temp_dir().to_string_lossy())
        + sockets
            .lines()
            .filter(|line| line.contains("ibverbs-sim-killed") && line.contains(&run))
            .count()
}
