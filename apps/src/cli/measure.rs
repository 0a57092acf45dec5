//! Measured costs of communication: two ranks on at most two workers, through the public interface.

use std::hint;
use std::time::Duration;

use talpf::{Config, Context, Machine, Settings, SyncMode, exec};
use talpf_apps::Error;
use talpf_runtime::{Array, Clock, cores};

pub(super) const REPETITIONS: usize = 9;
const HOPS: u32 = 2_000;
const READINGS: u32 = 10_000;
const PERIODS: u32 = 200;

/// Costs of a BSP machine and of its parts.
pub(super) struct Costs {
    /// Time from a put of 8 bytes until the other rank sees them. `None` with one core, where no
    /// rank polls while the other puts. **Units**: nanoseconds.
    pub(super) put_ns: Option<f64>,
    /// Costs of supersteps.
    pub(super) bsp: Machine,
    /// Time of one reading of the runtime's clock. **Units**: nanoseconds.
    pub(super) clock_ns: f64,
    /// Time for which a task that waits for 1 us is suspended. **Units**: nanoseconds.
    pub(super) timer_ns: f64,
}

/// Measures the costs, for some tenths of a second.
pub(super) fn costs(settings: Settings) -> Result<Costs, Error> {
    Ok(Costs {
        put_ns: put_ns(settings)?,
        bsp: bsp(settings)?,
        clock_ns: of_first(settings, clock_readings)?,
        timer_ns: of_first(settings, periods)?,
    })
}

/// Measures the time of a put until the other rank sees it. `None` with one core.
pub(super) fn put_ns(settings: Settings) -> Result<Option<f64>, Error> {
    (cores() > 1).then(|| of_first(settings, hops)).transpose()
}

/// Measures the costs of supersteps.
pub(super) fn bsp(settings: Settings) -> Result<Machine, Error> {
    of_first(settings, async |ctx| Ok(ctx.probe().await?))
}

/// Returns the median time of several runs of `work`, in seconds.
pub(super) fn median(mut work: impl FnMut()) -> f64 {
    let mut times = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        let clock = Clock::start();
        work();
        times.push(clock.now().as_secs_f64());
    }
    middle(times)
}

pub(super) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs a measurement on two ranks and returns the result of rank 0.
fn of_first<R, M, F>(settings: Settings, measure: M) -> Result<R, Error>
where
    M: Fn(Context) -> F,
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let runtime = talpf_runtime::Config { workers: cores().min(2), ..settings.runtime()? };
    let (polling, check_conflicts) = (settings.polling()?, settings.check_conflicts()?);
    let config = Config { ranks: 2, polling, check_conflicts, runtime, ..Config::default() };
    Ok(exec(config, &measure)?.swap_remove(0))
}

/// Measures half of the round-trip time of 8 bytes between two polling ranks, in nanoseconds.
async fn hops(ctx: Context) -> Result<f64, Error> {
    let number = Array::new(ctx.group(), vec![1_u64; 1], 1)?;
    let inbox = Array::new(ctx.group(), vec![0_u64; 1], 1)?;
    let slot = ctx.register_global(&inbox).await?;
    let other = ctx.peer(1 - ctx.rank().0)?;
    let source = ctx.group().task("source").input(&number.all());
    let mut from = source.run(|from| from)?.await?;
    let mut samples = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        ctx.sync(SyncMode::DEFAULT).await?;
        let round = ctx.round();
        let sync = ctx.sync(SyncMode::msg(HOPS)).window(&inbox.all()).spawn()?;
        let start = now(&ctx);
        for hop in 0..HOPS {
            if ctx.rank().0 == 0 {
                from = round.put(from, slot.at(other, 0)).await?;
            }
            while ctx.arrivals() <= hop {
                hint::spin_loop();
            }
            if ctx.rank().0 == 1 {
                from = round.put(from, slot.at(other, 0)).await?;
            }
        }
        samples.push(mean_ns(now(&ctx) - start, 2 * HOPS));
        drop(round);
        sync.await?;
    }
    Ok(middle(samples))
}

async fn clock_readings(ctx: Context) -> Result<f64, Error> {
    let clock = ctx.group().clock();
    let sample = || {
        let start = clock.now();
        for _ in 0..READINGS {
            hint::black_box(clock.now_ns());
        }
        mean_ns(clock.now() - start, READINGS)
    };
    Ok(middle((0..REPETITIONS).map(|_| sample()).collect()))
}

async fn periods(ctx: Context) -> Result<f64, Error> {
    let mut samples = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        let start = now(&ctx);
        for _ in 0..PERIODS {
            ctx.group().wait_for(Duration::from_micros(1)).await;
        }
        samples.push(mean_ns(now(&ctx) - start, PERIODS));
    }
    Ok(middle(samples))
}

fn now(ctx: &Context) -> Duration {
    ctx.group().clock().now()
}

fn mean_ns(time: Duration, count: u32) -> f64 {
    time.as_nanos() as f64 / f64::from(count)
}
