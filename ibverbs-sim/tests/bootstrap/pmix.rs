//! Values of processes that the `mpirun` of Open MPI has started. It starts this program again.

use std::{
    env,
    process::{Command, Stdio},
};

use ibverbs_sim::bootstrap::{Bootstrap, BootstrapError, PmixBootstrap, PmixLaunch};

use super::TIMEOUT;

/// Variable that a process of the launcher has.
const STARTED: &str = "IBVERBS_SIM_TEST_PMIX";

#[test]
fn values_of_any_length_come_back() {
    if env::var_os(STARTED).is_some() {
        return process();
    }
    let mut command = Command::new("timeout");
    command.args(["60", "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "3"]);
    command.args(["-x", STARTED]).arg(env::current_exe().unwrap());
    command.args(["--exact", "pmix::values_of_any_length_come_back", "--nocapture"]);
    let output = command.env(STARTED, "yes").stdin(Stdio::null()).output().unwrap();
    if output.status.code() == Some(127) {
        eprintln!("SKIPPED: mpirun.openmpi is not installed");
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let came = text.lines().filter(|line| line.contains("all values came back")).count();
    assert!(output.status.success() && came == 3, "{output:?}");
}

fn process() {
    let launch = PmixLaunch::from_environment(TIMEOUT).unwrap().unwrap();
    let (process, settings) = (launch.process, [("size", "12"), ("text", "a b;c=d")]);
    let mut all = PmixBootstrap::join(launch, &settings).unwrap();
    assert_eq!((all.process(), all.processes(), all.timeout()), (process, 3, TIMEOUT));
    let value: Vec<u8> = (0..process as usize * 60_000).map(|at| at as u8).collect();
    let limit = 1 << 20;
    all.put("of each", &[]).unwrap();
    all.put("long", &value).unwrap();
    all.put("longest", &vec![7; limit]).unwrap();
    let long_key = "key".repeat(200);
    for (key, bytes) in [("too long", limit + 1), ("a\0b", 1), (&*long_key, 1)] {
        let refused = all.put(key, &vec![7; bytes]);
        assert!(matches!(refused, Err(BootstrapError::Put { .. })), "{refused:?}");
    }
    all.fence().unwrap();
    for of in 0..3 {
        assert_eq!(all.get(of, "of each").unwrap(), []);
        let long = all.get(of, "long").unwrap();
        assert_eq!(long.len(), of as usize * 60_000);
        assert!(long.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        assert_eq!(all.get(of, "longest").unwrap().len(), limit);
        for key in ["nothing", "too long", "a\0b"] {
            let missing = all.get(of, key);
            assert!(matches!(missing, Err(BootstrapError::NotPut { .. })), "{missing:?}");
        }
    }
    assert!(all.get(3, "long").is_err());
    all.put("later", &[process as u8]).unwrap();
    all.fence().unwrap();
    assert_eq!(all.get((process + 1) % 3, "later").unwrap(), [((process + 1) % 3) as u8]);
    println!("all values came back");
}
