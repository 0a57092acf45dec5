//! Breakdown of a run in virtual time: what its cores have done.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use talpf_runtime::CoreTimes;
use talpf_traces::counted;

/// Time of all cores from the start of the runtime to its end, by what they have done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Breakdown {
    cores: u64,
    elapsed: Duration,
    times: CoreTimes,
}

impl Breakdown {
    pub(super) fn new(cores: u64, elapsed: Duration, times: CoreTimes) -> Self {
        Self { cores, elapsed, times }
    }

    /// Returns the seconds in tasks, in the runtime, and waiting.
    fn seconds(&self) -> [f64; 3] {
        let [tasks, overhead] = [self.times.tasks, self.times.overhead].map(|time| time.as_nanos());
        let all = u128::from(self.cores) * self.elapsed.as_nanos();
        let waiting = all.saturating_sub(tasks + overhead);
        [tasks, overhead, waiting].map(|ns| ns as f64 / 1e9)
    }

    pub(super) fn json(&self) -> Value {
        let [tasks, overhead, waiting] = self.seconds();
        json!({
            "cores": self.cores,
            "elapsed_s": self.elapsed.as_secs_f64(),
            "tasks_s": tasks,
            "runtime_s": overhead,
            "waiting_s": waiting,
        })
    }
}

impl fmt::Display for Breakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds();
        let all = seconds.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let [tasks, overhead, waiting] = seconds.map(|part| 100.0 * part / all);
        let cores = counted(self.cores, "core");
        write!(f, "tasks {tasks:.1} %, runtime {overhead:.1} %, waiting {waiting:.1} % of {cores}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_time_of_all_cores() {
        let ms = Duration::from_millis;
        let times = CoreTimes { tasks: ms(600), overhead: ms(50) };
        let breakdown = Breakdown::new(10, ms(100), times);
        let text = "tasks 60.0 %, runtime 5.0 %, waiting 35.0 % of 10 cores";
        assert_eq!(breakdown.to_string(), text);
        assert_eq!(breakdown.json()["waiting_s"], 0.35);
    }

    #[test]
    fn a_run_of_no_time_has_no_shares() {
        let breakdown = Breakdown::new(1, Duration::ZERO, CoreTimes::default());
        let text = "tasks 0.0 %, runtime 0.0 %, waiting 0.0 % of 1 core";
        assert_eq!(breakdown.to_string(), text);
    }
}
