//! Spawners that are far ahead of the tasks that they spawn.

use std::time::{Duration, Instant};

use crate::common::{self, Flag};
use talpf_runtime::{Array, Config, Runtime};

const THROTTLE: usize = 4;
/// Tasks that a spawner may be ahead before it waits.
const FAR: u32 = 16 * THROTTLE as u32;
/// Spawns between checks of the throttle, and the longest time of a check.
const ROUND: (u32, Duration) = (16, Duration::from_millis(1));
const ROUNDS: u32 = 40;

/// The spawner goes on in the end, as bodies may wait for it.
#[test]
fn a_spawner_with_nothing_to_run_waits_a_while_for_the_others() {
    let _watchdog = common::watchdog();
    let config = Config { workers: 2, throttle: THROTTLE, ..Config::default() };
    let runtime = Runtime::new(config).unwrap();
    let group = runtime.group("spawner", 0);
    let spawner = group.clone();
    let main = group.spawn_main("main", async move {
        let number = Array::new(&spawner, vec![0u32; 1], 1)?;
        let (begun, go_on) = (Flag::default(), Flag::default());
        let (begins, goes_on) = (begun.clone(), go_on.clone());
        spawner.task("hold").inout(&number.all()).spawn(move |_| {
            begins.set();
            assert!(common::eventually(|| goes_on.is_set()), "the spawner does not go on");
        })?;
        assert!(common::eventually(|| begun.is_set()), "no other worker runs the task");
        let start = Instant::now();
        for _ in 0..FAR + ROUNDS * ROUND.0 {
            spawner.task("add").inout(&number.all()).spawn(|mut number| number[0] += 1)?;
        }
        let spent = start.elapsed();
        go_on.set();
        let sum = spawner.task("read").input(&number.all()).run(|number| number[0])?.await?;
        Ok::<_, talpf_runtime::Error>((spent, sum))
    });
    let (spent, sum) = runtime.block_on(main.unwrap()).unwrap().unwrap().unwrap();
    assert_eq!(sum, FAR + ROUNDS * ROUND.0);
    assert!(spent >= ROUND.1 * ROUNDS / 2, "{spent:?}");
}
