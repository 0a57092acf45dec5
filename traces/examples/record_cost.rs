//! Cost of a record, without reading the clock, and times of the writer, the linter and the conversion to
//! tables for all records.
//!
//! `cargo run --release -p talpf-traces --example record_cost [records]`

use std::hint::black_box;
use std::time::Instant;

use talpf_traces::{
    Event, MessageKind, Recorder, Stream, TraceInfo, WaitNs, convert_to_csv, paraver,
};

const REPETITIONS: usize = 9;
const RANKS: u32 = 4;
const WORKERS: u32 = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let records = std::env::args().nth(1).map_or(Ok(1_000_000), |count| count.parse::<u64>())?;
    print_cost("record, memory prepared", records, true)?;
    print_cost("record, memory fresh", records, false)?;

    let recorder = Recorder::new(usize::MAX);
    for worker in 0..WORKERS {
        record(&mut recorder.stream(worker), records / u64::from(WORKERS), &recorder);
    }
    let dir = tempfile::tempdir()?;
    let info =
        TraceInfo { ranks: RANKS, workers: WORKERS, end_ns: records * 8, ..TraceInfo::default() };
    let started = Instant::now();
    let files = recorder.write_paraver(dir.path(), "run", &info)?;
    let written = started.elapsed();
    let report = paraver::check(&files.prv)?;
    let checked = started.elapsed() - written;
    let megabytes = files.prv.metadata()?.len() >> 20;
    let started = Instant::now();
    convert_to_csv(&files.prv, dir.path())?;
    let converted = started.elapsed();
    println!(
        "write: {written:.2?}, check: {checked:.2?}, csv: {converted:.2?}, {megabytes} MiB\n{report}"
    );
    Ok(())
}

/// Measures a thread that only records, and prints the cost of one record.
fn print_cost(what: &str, records: u64, prepare: bool) -> Result<(), std::io::Error> {
    let mut costs = Vec::new();
    for _ in 0..REPETITIONS {
        let recorder = Recorder::new(usize::MAX);
        let mut stream = recorder.stream(0);
        if prepare {
            stream.prepare(records as usize);
        }
        let started = Instant::now();
        record(&mut stream, records, &recorder);
        costs.push(started.elapsed().as_nanos() as f64 / records as f64);
    }
    costs.sort_by(f64::total_cmp);
    let (median, least, most) = (costs[REPETITIONS / 2], costs[0], costs[REPETITIONS - 1]);
    let cpus = std::thread::available_parallelism()?;
    println!(
        "{what}: {median:.1} ns median of {REPETITIONS} (min {least:.1}, max {most:.1}), \
         {records} records, {cpus} cpus"
    );
    Ok(())
}

/// Records slices that each send a message, which is received by nobody or by the other worker,
/// whose stream is the same.
fn record(stream: &mut Stream, records: u64, recorder: &Recorder) {
    let label = recorder.label("stencil");
    let (worker, waited) = (stream.worker().unwrap_or_default(), WaitNs::between(0, 3));
    for count in 0..records / 3 {
        let (time_ns, task) = (count * 32, count + 1);
        let rank = count as u32 % RANKS;
        let (own, other) = (black_box(rank), (rank + 1) % RANKS);
        let message = count << 1 | u64::from(worker);
        stream.record(
            time_ns + 16,
            Event::Send {
                kind: MessageKind::Put,
                rank: own,
                peer: other,
                message,
                bytes: 4096,
                waited,
            },
        );
        let message = count << 1 | u64::from(1 - worker);
        stream.record(
            time_ns + 24,
            Event::Receive { rank: other, peer: own, message, lane: 0, round: 0 },
        );
        stream.record(time_ns + 28, Event::task_slice(own, task, label, time_ns + 8, true));
    }
}
