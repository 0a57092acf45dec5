//! Helpers of the integration tests: a watchdog, settings, modes, arrays, gates.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::any::Any;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bytemuck::Pod;
use ibverbs_sim::LinkModel;
use talpf::{Config, Context, Error, SyncMode, exec};
use talpf_runtime::{Array, VirtualTime};

/// Most words of a put that are copied as it is posted.
pub(crate) const COPIED: usize = 32;
/// Number of the first slot that a program registers.
pub(crate) const FIRST_SLOT: u32 = 0;
/// Longest time of one run, before the watchdog ends the process.
const LIMIT: Duration = Duration::from_secs(300);

/// A result of a rank whose type is erased.
pub(crate) type AnyResult = Box<dyn Any + Send>;
/// A program of a rank whose type is erased.
pub(crate) type AnyProgram = Pin<Box<dyn Future<Output = Result<AnyResult, Error>> + Send>>;

/// Runs `main` on every rank, with the watchdog.
pub(crate) fn run<R, F>(config: Config, main: impl Fn(Context) -> F) -> Result<Vec<R>, Error>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let what = format!("{} ranks", config.ranks);
    run_case(&what, config, main)
}

/// As [`run`], with `what` in the message of the watchdog.
pub(crate) fn run_case<R, F>(
    what: &str,
    config: Config,
    main: impl Fn(Context) -> F,
) -> Result<Vec<R>, Error>
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    let results = run_any(what, config, &any_main(main))?;
    Ok(results.into_iter().map(typed).collect())
}

/// Returns `main` with its types erased: what runs it is then compiled once, and not once for each test,
/// which would take most of the time.
pub(crate) fn any_main<R, F>(main: impl Fn(Context) -> F) -> impl Fn(Context) -> AnyProgram
where
    F: Future<Output = Result<R, Error>> + Send + 'static,
    R: Send + 'static,
{
    move |ctx| {
        let program = main(ctx);
        Box::pin(async move { Ok(Box::new(program.await?) as AnyResult) })
    }
}

/// Returns a result of a program that [`any_main`] has made, with its type.
pub(crate) fn typed<R: 'static>(result: AnyResult) -> R {
    *result.downcast().expect("a result of the type that the program returns")
}

fn run_any(
    what: &str,
    config: Config,
    main: &dyn Fn(Context) -> AnyProgram,
) -> Result<Vec<AnyResult>, Error> {
    let _watchdog = watchdog(what);
    exec(in_requested_time(on_requested_workers(config)), main)
}

/// Returns the settings of a test, or those of the same run in virtual time if the environment asks
/// for that: with the link model that it names.
fn in_requested_time(mut config: Config) -> Config {
    if let Ok(link) = std::env::var("TALPF_TEST_LINK")
        && config.device.fault.is_none()
        && config.device.link.is_none()
    {
        config.device.link = Some(LinkModel::parse(&link).expect("a link model"));
        let costs = Arc::default();
        config.runtime.virtual_time = Some(VirtualTime { cores: 2, costs, task_overhead_ns: 0 });
    }
    config
}

/// Returns the settings of a test, or those of the same run with as many workers for each rank alone as the
/// environment says.
fn on_requested_workers(config: Config) -> Config {
    let each = std::env::var("TALPF_TEST_WORKERS_PER_RANK").ok();
    let runtime = &config.runtime;
    // Tests of traces know the number of rows, and of runs of many ranks that number is what matters.
    let is_fixed = runtime.recorder.is_some() || runtime.worker_sets > 1;
    match each.map(|each| each.parse().expect("a number of workers")) {
        Some(each) if !is_fixed && (1..=64).contains(&config.ranks) => {
            with_own_workers(config, each)
        }
        _ => config,
    }
}

/// Returns settings in which each rank has workers of its own.
pub(crate) fn with_own_workers(mut config: Config, each: usize) -> Config {
    config.runtime.workers = config.ranks as usize * each;
    config.runtime.worker_sets = config.ranks as usize;
    config
}

/// Ends the process if it lives longer than a run may take: a hang fails instead of blocking.
pub(crate) fn watchdog(what: &str) -> mpsc::Sender<()> {
    let name = thread::current().name().unwrap_or("?").to_owned();
    let what = what.to_owned();
    let (ends, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        if ended.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("test `{name}` hangs ({what})");
            std::process::abort();
        }
    });
    ends
}

/// Runs `body` of test `name` in a process of its own, whose other threads all wait for that.
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    const ALONE: &str = "TALPF_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", name, "--test-threads=1"]).env(ALONE, "1");
    let ended = test.output().unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && output.contains("1 passed"), "{output}");
}

/// Returns settings of `ranks` on `workers`.
pub(crate) fn config(ranks: u32, workers: usize) -> Config {
    let mut config = Config { ranks, ..Config::default() };
    config.runtime.workers = workers;
    config
}

/// As [`config`], without the hang watch.
pub(crate) fn unwatched(ranks: u32, workers: usize) -> Config {
    let mut config = config(ranks, workers);
    config.runtime.hang_after = Duration::ZERO;
    config
}

/// As [`config`], with a hang watch of 300 ms.
pub(crate) fn watched(ranks: u32, workers: usize) -> Config {
    let mut config = config(ranks, workers);
    config.runtime.hang_after = Duration::from_millis(300);
    config
}

/// Returns every mode, with `arrivals` operations a round.
pub(crate) fn modes(arrivals: u32) -> [SyncMode; 10] {
    let msg = SyncMode::msg(arrivals);
    [
        SyncMode::DEFAULT,
        SyncMode::DEFAULT.with_ack(),
        SyncMode::CACHED,
        SyncMode::CACHED.with_barrier(),
        SyncMode::CACHED.with_ack(),
        SyncMode::CACHED.with_barrier().with_ack(),
        msg,
        msg.with_barrier(),
        msg.with_ack(),
        msg.with_ack().with_barrier(),
    ]
}

/// Makes an array of one tile.
pub(crate) fn array<T: Pod + Send + Sync>(
    ctx: &Context,
    values: Vec<T>,
) -> Result<Array<T>, Error> {
    let tile = values.len().max(1);
    Ok(Array::new(ctx.group(), values, tile)?)
}

/// Reads an array once every task spawned before has run.
pub(crate) async fn read<T: Pod + Send + Sync>(
    ctx: &Context,
    array: &Array<T>,
) -> Result<Vec<T>, Error> {
    let task = ctx.group().task("read").input(&array.all());
    Ok(task.run(|all| all.to_vec())?.await?)
}

/// Keeps this thread busy.
pub(crate) fn spin(period: Duration) {
    let end = Instant::now() + period;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Closed at first; tasks wait until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Gate {
    pub(crate) fn open(&self) {
        let mut state = self.0.lock().unwrap();
        state.0 = true;
        let waiting = std::mem::take(&mut state.1);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.lock().unwrap().0
    }

    pub(crate) async fn passed(&self) {
        poll_fn(|cx| {
            let mut state = self.0.lock().unwrap();
            if state.0 {
                return Poll::Ready(());
            }
            state.1.push(cx.waker().clone());
            talpf_runtime::note_wait("a gate of the test");
            Poll::Pending
        })
        .await;
    }
}

/// Spawns a task that keeps others from `inbox` until `open` is passed, and then is `late`.
pub(crate) fn hold(
    ctx: &Context,
    inbox: &Array<u64>,
    open: Gate,
    late: Arc<AtomicBool>,
) -> Result<(), talpf_runtime::Error> {
    ctx.group().task("hold").inout(&inbox.all()).spawn_async(move |inbox| async move {
        open.passed().await;
        late.store(true, Ordering::SeqCst);
        drop(inbox);
    })
}

/// Keeps the panics that tests provoke in tasks out of the output.
pub(crate) fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let name = thread::current().name().unwrap_or("").to_owned();
            if !name.starts_with("talpf-worker") {
                print(info);
            }
        }));
    });
}

/// Asserts that every part is in the text of an error.
pub(crate) fn says(error: &Error, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing in: {text}");
    }
}
