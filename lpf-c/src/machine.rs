//! Costs of communication on the machine that programs run on.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use talpf_primitives::Mutex;

use crate::ends::{Far, Near};
use crate::error::Result;
use crate::launch;
use crate::memory::Address;
use crate::process::Process;
use crate::processors::processors;

/// Costs of a superstep between so many processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Seconds of a superstep without messages.
    latency: f64,
    /// Seconds of a message, besides its bytes.
    message: f64,
    /// Seconds of a byte.
    byte: f64,
}

impl Costs {
    /// Returns the seconds of a byte in messages of at least so many bytes.
    pub(crate) fn gap(&self, message_size: usize) -> f64 {
        self.byte + self.message / message_size.max(1) as f64
    }

    /// Returns the seconds of a superstep.
    pub(crate) fn latency(&self) -> f64 {
        self.latency
    }
}

/// Returns the costs between so many processes, which the first call measures.
pub(crate) fn costs(processes: u32) -> Costs {
    static MEASURED: OnceLock<Mutex<HashMap<u32, Costs>>> = OnceLock::new();
    let processes = processes.clamp(1, processors());
    let measured = MEASURED.get_or_init(|| Mutex::new(HashMap::new()));
    if let Some(costs) = measured.lock().get(&processes) {
        return *costs;
    }
    let costs = measure(processes as usize).unwrap_or(ASSUMED);
    // Of two that have measured at once, the first one counts: all get the same costs.
    *measured.lock().entry(processes).or_insert(costs)
}

/// Costs where there is no memory to measure any.
const ASSUMED: Costs = Costs { latency: 1e-5, message: 1e-7, byte: 1e-9 };

/// Repetitions of a measurement, of which the shortest counts.
const REPETITIONS: usize = 5;
const SUPERSTEPS: u32 = 10;
const MESSAGES: usize = 200;
const BYTES: usize = 1 << 18;

fn measure(processes: usize) -> Result<Costs> {
    let best: Mutex<[Duration; 3]> = Mutex::new([Duration::MAX; 3]);
    launch::run(processes, 1, &|context| {
        let times = context.enter("lpf_probe", measure_in);
        if let Ok(Some(times)) = times {
            let mut best = best.lock();
            *best = [0, 1, 2].map(|index| best[index].min(times[index]));
        }
    })?;
    let [empty, short, long] = *best.lock();
    let seconds = |time: Duration| time.as_secs_f64().max(1e-9);
    let latency = seconds(empty) / f64::from(SUPERSTEPS);
    let over = |time: Duration| (seconds(time) - latency).max(1e-9);
    Ok(Costs { latency, message: over(short) / MESSAGES as f64, byte: over(long) / BYTES as f64 })
}

/// Times empty supersteps, one with short messages, and one with a long message, on process 0.
fn measure_in(process: &mut Process) -> Result<Option<[Duration; 3]>> {
    process.resize_queue(2 * MESSAGES)?;
    process.resize_register(1)?;
    process.sync()?;
    let mut memory = vec![0u8; 2 * BYTES];
    let address = Address::of(memory.as_mut_ptr());
    let Ok(slot) = process.register(false, address, memory.len()) else { return Ok(None) };
    process.sync()?;
    let next = ((process.pid + 1) % process.team.size()) as u32;
    let mut best = [Duration::MAX; 3];
    let mut take = |which: usize, begin: Instant| best[which] = best[which].min(begin.elapsed());
    for _ in 0..REPETITIONS {
        let begin = Instant::now();
        (0..SUPERSTEPS).try_for_each(|_| process.sync())?;
        take(0, begin);
        for (which, count, size) in [(1, MESSAGES, 1), (2, 1, BYTES)] {
            let begin = Instant::now();
            for index in 0..count {
                let near = Near { slot, offset: index };
                let far = Far { pid: next, slot, offset: BYTES + index };
                if process.put(near, far, size).is_err() {
                    return Ok(None);
                }
            }
            process.sync()?;
            take(which, begin);
        }
    }
    Ok((process.pid == 0).then_some(best))
}
