//! `talpf info`: what the machine is, as far as it bears on a run.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use clap::Args;
use talpf_apps::{Error, jacobi::kernel, memory};

const MIB: usize = 1 << 20;
const REPETITIONS: usize = 9;

#[derive(Args, Debug)]
pub(super) struct Options {}

/// Measures for about a second and prints one line a value.
pub(super) fn run(_: Options) -> Result<(), Error> {
    let unknown = || "unknown".to_owned();
    let cores = thread::available_parallelism().map_or_else(|_| unknown(), |n| n.to_string());
    let available = memory::available();
    let memory = available.map_or_else(unknown, |bytes| format!("{} MiB available", bytes >> 20));
    let lines = [
        ("cores", cores),
        ("memory", memory),
        (
            "vectors",
            format!("{} x f64 in the kernel of jacobi", kernel::lanes()),
        ),
        ("clock", format!("{:.0} ns a reading", clock_reading_ns())),
        (
            "memcpy 1 MiB",
            format!("{:.1} GB/s", copy_rate(MIB, 200) / 1e9),
        ),
        (
            "memcpy 128 MiB",
            format!("{:.1} GB/s", copy_rate(128 * MIB, 1) / 1e9),
        ),
    ];
    let text: String = lines
        .iter()
        .map(|(name, value)| format!("{name:<14} {value}\n"))
        .collect();
    super::print(&text)
}

/// **Units**: nanoseconds for one `Instant::now`.
fn clock_reading_ns() -> f64 {
    const READINGS: usize = 10_000;
    let seconds = median(|| {
        for _ in 0..READINGS {
            black_box(Instant::now());
        }
    });
    seconds * 1e9 / READINGS as f64
}

/// **Units**: bytes copied (read and written count once) in a second by one thread, between two
/// buffers of `bytes`.
fn copy_rate(bytes: usize, copies: usize) -> f64 {
    let from = vec![1_u8; bytes];
    let mut to = vec![2_u8; bytes];
    let seconds = median(|| {
        for _ in 0..copies {
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
        }
    });
    (bytes * copies) as f64 / seconds
}

/// The median time of some runs of `work`, in seconds.
fn median(mut work: impl FnMut()) -> f64 {
    let mut times: [f64; REPETITIONS] = std::array::from_fn(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    times.sort_by(f64::total_cmp);
    times[REPETITIONS / 2]
}
