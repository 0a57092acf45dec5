//! Times supersteps between two processes of this machine, over sockets or shared memory.
//!
//! `two_processes sockets` and `two_processes shm` start the second process themselves.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ibverbs_sim::{ShmConfig, ShmRail, SocketWire};
use talpf::{Config, Context, Rank, SyncMode, hook, hook_on_rail};
use talpf_runtime::Array;

const TIMEOUT: Duration = Duration::from_secs(10);
const STEPS: u32 = 2_000;
const SAMPLES: usize = 9;

/// Returns the median times of a superstep in which both ranks put `len` numbers, in microseconds.
async fn supersteps(ctx: Context, len: usize) -> Result<f64, talpf::Error> {
    let mine = Array::new(ctx.group(), vec![1u64; len], len)?;
    let inbox = Array::new(ctx.group(), vec![0u64; len], len)?;
    let slot = ctx.register_global(&inbox).await?;
    ctx.register_local(&mine)?;
    let peer = Rank(1 - ctx.rank().0);
    let mut samples = Vec::new();
    for _ in 0..=SAMPLES {
        let start = Instant::now();
        for _ in 0..STEPS {
            ctx.put(&mine.all(), slot.at(peer, 0))?;
            ctx.sync(SyncMode::CACHED).window(&inbox.all()).await?;
        }
        samples.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(STEPS));
    }
    // The first one warms up.
    samples.remove(0);
    samples.sort_by(f64::total_cmp);
    Ok(samples[SAMPLES / 2])
}

async fn rank(ctx: Context) -> Result<Vec<(usize, f64)>, talpf::Error> {
    let mut medians = Vec::new();
    for len in [1, 256, 8192] {
        medians.push((len * size_of::<u64>(), supersteps(ctx.clone(), len).await?));
    }
    Ok(medians)
}

fn process(kind: &str, folder: &Path, number: u32) -> Result<(), Box<dyn Error>> {
    let mut config = Config::default();
    config.runtime.workers = 1;
    let medians = if kind == "shm" {
        let run = folder.display().to_string();
        let rail = ShmRail::join(&run, number, 2, TIMEOUT, &ShmConfig::default())?;
        hook_on_rail(Arc::new(rail), config, rank)?
    } else {
        hook(Arc::new(SocketWire::join(folder, number, 2, TIMEOUT)?), config, rank)?
    };
    if number == 0 {
        for (bytes, median) in medians {
            println!("{kind}: superstep with a put of {bytes} bytes each way: {median:.2} us");
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let kind = arguments.get(1).map_or("shm", String::as_str);
    if let Some(folder) = arguments.get(2) {
        return process(kind, Path::new(folder), 1);
    }
    let folder = std::env::temp_dir().join(format!("talpf-two-processes-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut other = Command::new(&arguments[0]).arg(kind).arg(&folder).spawn()?;
    let ended = process(kind, &folder, 0);
    other.wait()?;
    std::fs::remove_dir_all(&folder)?;
    ended
}
