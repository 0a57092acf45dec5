//! Runs on several machines: network namespaces that a cable joins, where this user may make them.
//! Namespaces have no network in common, so processes of several cannot share memory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::launch::{all_end, children_of, has_workers};
use crate::libfabric::transports;
use crate::pmix::mpirun;
use crate::server::place;
use crate::{error_of, stdout_of, talpf, talpf_with, value};

const PATIENCE: Duration = Duration::from_secs(60);

/// Machines, and a file with their names.
struct Machines {
    names: Vec<String>,
    /// Addresses on the cable.
    addresses: Vec<String>,
    _folder: tempfile::TempDir,
    hosts: PathBuf,
}

impl Machines {
    /// Makes two machines with two processes each; says so and returns `None` without the right to.
    fn new() -> Option<Self> {
        Self::of(2)
    }

    /// Makes machines with two processes each; says so and returns `None` without the right to. A cable joins two
    /// of them. More have one each, to a switch in the first machine, whose address is that of the switch.
    fn of(count: usize) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (id, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = |machine| format!("talpf-{id}-{number}-{machine}");
        let names: Vec<_> = (0..count).map(name).collect();
        let addresses = (1..=count).map(|host| format!("10.231.{number}.{host}")).collect();
        let folder = tempfile::tempdir().unwrap();
        let hosts = folder.path().join("hosts");
        let line = |name| format!("{name} 2 # of {count}\n");
        fs::write(&hosts, names.iter().map(line).collect::<String>()).unwrap();
        let machines = Self { names, addresses, _folder: folder, hosts };
        let first = &machines.names[0];
        if !ip(&format!("netns add {first}")) {
            eprintln!("SKIPPED: this user may make no network namespaces");
            return None;
        }
        if count > 2 && !ip(&format!("-n {first} link add cable type bridge")) {
            eprintln!("SKIPPED: this system has no switch for more than two machines");
            return None;
        }
        for (number, other) in machines.names.iter().enumerate().skip(1) {
            let port = if count > 2 { format!("port{number}") } else { "cable".to_owned() };
            assert!(ip(&format!("netns add {other}")));
            let cable = format!("link add {port} type veth peer name cable netns {other}");
            assert!(ip(&format!("-n {first} {cable}")));
            if count > 2 {
                assert!(ip(&format!("-n {first} link set {port} master cable up")));
            }
        }
        for (name, address) in machines.names.iter().zip(&machines.addresses) {
            assert!(ip(&format!("-n {name} address add {address}/24 dev cable")));
            assert!(ip(&format!("-n {name} link set cable up")));
            assert!(ip(&format!("-n {name} link set lo up")));
            assert!(ip(&format!("-n {name} route add default dev cable")));
        }
        Some(machines)
    }

    /// Returns the command of a launcher on the first machine.
    fn launch(&self, run: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[0], env!("CARGO_BIN_EXE_talpf"), "launch"]);
        command.arg("--hosts").arg(&self.hosts).args(["--via", "ip netns exec {host}"]);
        command.args(["--address", &self.addresses[0], "--"]).args(run.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns delete {name}"));
        }
    }
}

/// Runs `ip`. Returns `false` if it fails.
fn ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(arguments.split_whitespace()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn two_machines_with_two_processes_are_serial() {
    let Some(machines) = Machines::new() else { return };
    for (run, transport) in [
        (
            "jacobi --rows 37 --cols 23 --block 8 --steps 9",
            "shm within 2 machines, tcp between them",
        ),
        ("jacobi --size 40 --steps 9 --grid 2x2 --transport tcp", "tcp between 2 machines"),
        (
            "gauss-seidel --size 40 --block 8 --single-blocks --steps 5",
            "shm within 2 machines, tcp between them",
        ),
        ("nbody --particles 101 --block 10 --steps 2", "shm within 2 machines, tcp between them"),
        (
            "matmul-g --size 29 --block 8 --iterations 2 --variant talpf-get",
            "shm within 2 machines, tcp between them",
        ),
        (
            "histogram --numbers 30000 --bins 5000 --steps 2",
            "shm within 2 machines, tcp between them",
        ),
    ] {
        let output = machines.launch(&format!("{run} --check --quiet")).output().unwrap();
        let text = stdout_of(&output);
        assert!(value(&text, "verified").starts_with("yes"), "{run}: {text}");
        assert_eq!((value(&text, "ranks"), value(&text, "transport")), ("4", transport));
    }
    let output = machines.launch("jacobi --quiet --transport shm").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains(" is on another machine than process "), "{errors}");
}

#[test]
fn four_machines_with_two_processes_are_serial() {
    let Some(machines) = Machines::of(4) else { return };
    let jacobi = "jacobi --rows 37 --cols 23 --block 8 --steps 9";
    let within = "shm within 4 machines, tcp between them";
    let ofi = transports().pop().map(|transport| {
        let provider = transport.strip_prefix("ofi:").unwrap();
        let expected = format!("shm within 4 machines, {transport} between them");
        (format!("{jacobi} --transport auto:{provider}"), expected)
    });
    let runs = [
        (jacobi.to_owned(), within.to_owned()),
        ("jacobi --size 48 --steps 9 --grid 2x4".to_owned(), within.to_owned()),
        (format!("{jacobi} --transport tcp"), "tcp between 4 machines".to_owned()),
    ];
    for (run, transport) in runs.into_iter().chain(ofi) {
        let output = machines.launch(&format!("{run} --check --quiet")).output().unwrap();
        let text = stdout_of(&output);
        assert!(value(&text, "verified").starts_with("yes"), "{run}: {text}");
        assert_eq!((value(&text, "ranks"), value(&text, "transport")), ("8", &*transport));
    }
}

#[test]
fn libfabric_joins_machines_if_all_processes_have_it() {
    let Some(machines) = Machines::new() else { return };
    let jacobi = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --check --quiet";
    let run = |transport: &str| {
        let output = machines.launch(&format!("{jacobi} --transport {transport}")).output();
        let text = stdout_of(&output.unwrap());
        assert!(value(&text, "verified").starts_with("yes"), "{transport}: {text}");
        text
    };
    for transport in transports() {
        let provider = transport.strip_prefix("ofi:").unwrap();
        let text = run(&format!("auto:{provider}"));
        let expected = format!("shm within 2 machines, {transport} between them");
        assert_eq!((value(&text, "transport"), value(&text, "ranks")), (&*expected, "4"));
        assert!(!text.contains("libfabric"), "{text}");
    }
    let text = run("auto:nonesuch");
    assert_eq!(value(&text, "transport"), "shm within 2 machines, tcp between them");
    let line = value(&text, "libfabric").strip_prefix("not used: process 0 has no ");
    assert!(line.is_some(), "{text}");
    let devices = ["/sys/class/infiniband", "/sys/class/cxi"];
    if devices.iter().all(|folder| !fs::read_dir(folder).is_ok_and(|all| all.count() > 0)) {
        let text = run("auto");
        assert_eq!(value(&text, "libfabric"), "not used: process 0 has no device of a network");
    }
}

#[test]
fn a_process_without_libfabric_makes_all_of_them_use_tcp() {
    let Some(transport) = transports().pop() else { return };
    let Some(machines) = Machines::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("libfabric.so.1"), "no library").unwrap();
    let server = format!("{}:7000", machines.addresses[0]);
    let provider = transport.strip_prefix("ofi:").unwrap();
    let start = |process: usize| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &machines.names[process], env!("CARGO_BIN_EXE_talpf")]);
        command.args("jacobi --rows 37 --cols 23 --block 8 --steps 9 --check --quiet".split(' '));
        command.args(["--transport", &format!("auto:{provider}")]);
        command.args(place(&server, process, 2).split(' '));
        if process == 1 {
            command.env("LD_LIBRARY_PATH", folder.path());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let processes = [0, 1].map(start);
    let [first, second] = processes.map(|process| process.wait_with_output().unwrap());
    let text = stdout_of(&first);
    assert!(stdout_of(&second).is_empty());
    assert!(value(&text, "verified").starts_with("yes"), "{text}");
    assert_eq!(value(&text, "transport"), "tcp between 2 machines");
    let expected = "not used: process 1 has no libfabric.so.1 that can be used";
    assert_eq!(value(&text, "libfabric"), expected);
}

#[test]
fn two_machines_of_the_mpirun_of_open_mpi_are_serial() {
    let Some(machines) = Machines::new() else { return };
    let [here, there] = &machines.names[..] else { panic!("two machines") };
    let [at_here, at_there] = &machines.addresses[..] else { panic!("two addresses") };
    // In place of `ssh`: a machine has a name of its own, and is where the run is wanted by its address.
    let agent = machines.hosts.with_file_name("agent");
    let script = format!(
        "#!/bin/sh\nshift\nexec ip netns exec {there} unshare --uts sh -c \"hostname {there}; $*\"\n"
    );
    fs::write(&agent, script).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    for (options, transport) in [
        ("", "shm within 2 machines, tcp between them"),
        ("--transport tcp", "tcp between 2 machines"),
    ] {
        let jacobi = "jacobi --rows 37 --cols 23 --block 8 --steps 9 --check --quiet";
        let Some(mpirun) = mpirun(&format!(
            "--mca plm_rsh_agent {} --host {at_here}:2,{at_there}:2 -n 4 {} {jacobi} {options}",
            agent.display(),
            env!("CARGO_BIN_EXE_talpf"),
        )) else {
            return;
        };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", here]).arg(mpirun.get_program()).args(mpirun.get_args());
        command.envs(mpirun.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut output = command.stdin(Stdio::null()).output().unwrap();
        // Open MPI says so if the agent runs before it has a process group of its own, which changes nothing.
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_kept = |line: &&str| !line.contains("plm:rsh: Warning: setpgid(");
        output.stderr = errors.lines().filter(is_kept).collect::<String>().into_bytes();
        let text = stdout_of(&output);
        assert!(value(&text, "verified").starts_with("yes"), "{options}: {text}");
        assert_eq!((value(&text, "ranks"), value(&text, "transport")), ("4", transport));
    }
}

#[test]
fn a_cut_cable_ends_the_run() {
    let Some(machines) = Machines::new() else { return };
    let run = "jacobi --size 32 --block 8 --steps 1000000000 --quiet";
    let launcher = machines.launch(run).spawn().unwrap();
    let processes = started_below(&launcher, 4);
    let begin = Instant::now();
    assert!(ip(&format!("-n {} link set cable down", machines.names[0])));
    let output: Output = launcher.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains(" failed: its process has shown no life for the peer timeout"),
        "{errors}"
    );
    println!("the run had ended {:.1} s after its cable was cut", begin.elapsed().as_secs_f64());
    all_end(&processes);
}

/// Waits until `count` of the processes below a launcher run tasks. Returns all below it.
pub(crate) fn started_below(launcher: &Child, count: usize) -> Vec<Pid> {
    let begin = Instant::now();
    loop {
        let processes = descendants(launcher.id());
        if processes.iter().filter(|process| has_workers(**process)).count() >= count {
            return processes;
        }
        assert!(begin.elapsed() < PATIENCE, "{processes:?} have started");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the processes that a process has started, and those that they have.
fn descendants(process: u32) -> Vec<Pid> {
    let mut all = children_of(process);
    let mut next = 0;
    while let Some(child) = all.get(next) {
        all.extend(children_of(child.as_raw_pid() as u32));
        next += 1;
    }
    all
}

#[test]
fn hosts_that_cannot_be_are_named_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hosts");
    let path = file.to_str().unwrap();
    for (text, via, expected) in [
        ("", "env -u {host}", "hosts:1: host is missing"),
        ("a\nb\na\n", "env -u {host}", "hosts:3: host is \"a\""),
        (
            "a\n\nb\n",
            "false {host}",
            "hosts:1: cannot start talpf on a by `false {host}`: exit status: 1",
        ),
        ("a\n", "no-such-command {host}", "by `no-such-command {host}`: No such file"),
        ("a\n", "echo {host}", "it says \"a "),
    ] {
        fs::write(&file, text).unwrap();
        let error =
            error_of(&talpf_with(&["launch", "--hosts", path, "--via", via, "--", "jacobi"]));
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    fs::write(&file, "a 2\nb\n").unwrap();
    let arguments =
        ["launch", "-n", "4", "--hosts", path, "--via", "env -u {host}", "--", "jacobi"];
    assert_eq!(error_of(&talpf_with(&arguments)), "processes is 4, expected 1 to 3");
    let error = error_of(&talpf("launch --hosts /nowhere -- jacobi"));
    assert!(error.starts_with("cannot read /nowhere: "), "{error}");
}

#[test]
fn a_launcher_over_a_command_ends_its_processes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hosts");
    fs::write(&file, "HERE 2\n").unwrap();
    // The command only removes a variable, so that the machine is this one.
    let start = |steps: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_talpf"));
        command.args(["launch", "--address", "127.0.0.1", "--via", "env -u {host}", "--hosts"]);
        command.arg(&file).args(["--", "jacobi", "--size", "32", "--block", "8", "--quiet"]);
        command.args(["--steps", steps]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let text = stdout_of(&start("9").wait_with_output().unwrap());
    assert_eq!((value(&text, "ranks"), value(&text, "transport")), ("2", "shm"));
    let mut launcher = start("1000000000");
    let processes = started_below(&launcher, 2);
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    all_end(&processes);
}

#[test]
fn a_part_without_its_launcher_says_who_starts_it() {
    let error = error_of(&talpf("part"));
    assert!(error.contains("`talpf launch --hosts`"), "{error}");
}
