//! Spans and events of the program in the trace.

use std::cell::RefCell;
use std::time::Duration;

use talpf_runtime::{Config, Runtime, SpanLayer};
use talpf_traces::{Recorder, TraceInfo, paraver};
use tracing::span::EnteredSpan;
use tracing::{Dispatch, Instrument, Level, debug_span, info, info_span};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use crate::common;

/// Traced runtime, with a layer for its program.
struct Run {
    recorder: Recorder,
    runtime: Runtime,
    layer: SpanLayer,
}

impl Run {
    fn new(workers: usize) -> Self {
        let recorder = Recorder::default();
        let config = Config { workers, recorder: Some(recorder.clone()), ..Config::default() };
        Self { recorder, runtime: Runtime::new(config).unwrap(), layer: SpanLayer::new() }
    }

    /// Returns a subscriber with the layer.
    fn subscriber(&self) -> Dispatch {
        Dispatch::new(tracing_subscriber::registry().with(self.layer.clone()))
    }

    /// Runs a body in a task, with the layer, and waits for it.
    fn task(&self, body: impl FnOnce() + Send + 'static) {
        self.task_with(self.subscriber(), body);
    }

    /// Runs a body in a task, with a subscriber, and waits for it.
    fn task_with(&self, subscriber: Dispatch, body: impl FnOnce() + Send + 'static) {
        let body = move || tracing::dispatcher::with_default(&subscriber, body);
        self.runtime.block_on(self.runtime.task("body").run(body).unwrap()).unwrap().unwrap();
    }

    /// Ends the run, and returns its trace: records and labels.
    fn trace(self) -> Trace {
        let workers = self.runtime.workers() as u32;
        self.runtime.shut_down().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let info = TraceInfo { ranks: 2, workers, ..TraceInfo::default() };
        let files = self.recorder.write_paraver(folder.path(), "spans", &info).unwrap();
        let report = paraver::check(&files.prv).unwrap();
        assert!(report.is_clean(), "{report}");
        let read = |path| std::fs::read_to_string(path).unwrap();
        Trace { prv: read(files.prv), pcf: read(files.pcf) }
    }
}

struct Trace {
    prv: String,
    pcf: String,
}

impl Trace {
    /// Returns the names of the values of an event type in order, with the rows.
    fn names(&self, kind: &str) -> Vec<(String, String)> {
        let values = self.values(kind).into_iter();
        values.map(|(row, value)| (row, self.name(value))).collect()
    }

    fn values(&self, kind: &str) -> Vec<(String, i64)> {
        let mut found = Vec::new();
        for line in self.prv.lines().filter(|line| line.starts_with("2:")) {
            let fields: Vec<&str> = line.split(':').collect();
            for pair in fields[6..].chunks(2).filter(|pair| pair[0] == kind) {
                found.push((fields[3..5].join("."), pair[1].parse().unwrap()));
            }
        }
        found
    }

    /// Returns the label of a span or event.
    fn name(&self, value: i64) -> String {
        if value == 0 {
            return String::new();
        }
        let spans = self.pcf.split_once(" Span\nVALUES\n").unwrap().1;
        let of_value =
            |line: &str| Some(line.strip_prefix(&format!("{value} "))?.trim().to_owned());
        spans.lines().find_map(of_value).unwrap()
    }
}

/// Takes a few microseconds, so that what is around it has a length.
fn work() {
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_micros(5) {}
}

fn on(row: &str, names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| (row.to_owned(), (*name).to_owned())).collect()
}

#[test]
fn nested_spans_come_back_when_the_inner_one_ends() {
    let _watchdog = common::watchdog();
    let run = Run::new(1);
    run.task(|| {
        info_span!("outer").in_scope(|| {
            work();
            info_span!("inner").in_scope(work);
            work();
            info_span!("inner").in_scope(work);
            work();
        });
    });
    let names = run.trace().names("100");
    assert_eq!(names, on("1.1", &["outer", "inner", "outer", "inner", "outer", ""]));
}

#[test]
fn a_body_that_awaits_leaves_the_span() {
    let _watchdog = common::watchdog();
    let run = Run::new(1);
    let group = (*run.runtime).clone();
    let subscriber = run.subscriber();
    let body = async move || {
        let waits = async {
            for _ in 0..3 {
                group.wait_for(Duration::from_micros(50)).await;
            }
        };
        let span = tracing::dispatcher::with_default(&subscriber, || info_span!("waits"));
        waits.instrument(span).await;
    };
    let task = run.runtime.task("body").run_async(body).unwrap();
    run.runtime.block_on(task).unwrap().unwrap();
    let names = run.trace().names("100");
    assert!(names.len() >= 8 && names.len().is_multiple_of(2), "{names:?}");
    let pair = on("1.1", &["waits", ""]);
    assert!(names.chunks(2).all(|shown| shown == pair), "{names:?}");
}

#[test]
fn a_body_enters_its_span_again_on_whichever_worker() {
    let _watchdog = common::watchdog();
    let run = Run::new(2);
    let subscriber = run.subscriber();
    let group = (*run.runtime).clone();
    let bodies: Vec<_> = (0..4)
        .map(|_| {
            let (group, subscriber) = (group.clone(), subscriber.clone());
            let body = async move || {
                let waits = async {
                    for _ in 0..20 {
                        work();
                        group.wait_for(Duration::from_micros(20)).await;
                    }
                };
                let span = tracing::dispatcher::with_default(&subscriber, || info_span!("waits"));
                waits.instrument(span).await;
            };
            run.runtime.task("body").run_async(body).unwrap()
        })
        .collect();
    for body in bodies {
        run.runtime.block_on(body).unwrap().unwrap();
    }
    let names = run.trace().names("100");
    assert!(names.len() >= 4 * 2 * 20, "{names:?}");
    for row in ["1.1", "1.2"] {
        let of_row: Vec<_> = names.iter().filter(|(shown, _)| shown == row).cloned().collect();
        let pair = on(row, &["waits", ""]);
        assert!(of_row.chunks(2).all(|shown| shown == pair), "{of_row:?}");
    }
}

#[test]
fn filters_of_the_program_choose() {
    let _watchdog = common::watchdog();
    let run = Run::new(1);
    let filter = Targets::new().with_target("solver", Level::INFO);
    let layer = run.layer.clone().with_filter(filter);
    let subscriber = Dispatch::new(tracing_subscriber::registry().with(layer));
    run.task_with(subscriber, || {
        info_span!(target: "solver", "shown").in_scope(|| {
            work();
            debug_span!(target: "solver", "too fine").in_scope(work);
            info_span!(target: "other", "of another").in_scope(|| {
                info!(name: "kept", target: "solver", "");
                info!(name: "of another", target: "other", "");
            });
        });
    });
    assert_eq!(run.layer.left_out(), 0);
    let trace = run.trace();
    assert_eq!(trace.names("100"), on("1.1", &["shown", ""]));
    assert_eq!(trace.names("101"), on("1.1", &["kept"]));
}

#[test]
fn an_inlined_task_hides_the_span_and_gives_it_back() {
    let _watchdog = common::watchdog();
    let run = Run::new(1);
    for number in [0, 1] {
        let group = run.runtime.group("other", number);
        run.task(move || {
            info_span!("outer").in_scope(|| {
                let inner = group.clone();
                let task = group.task("acts").on_ready(move |_| {
                    inner.task("inner").inline().spawn(work).unwrap();
                });
                task.spawn(|| ()).unwrap();
            });
        });
    }
    let names = run.trace().names("100");
    assert_eq!(names, on("1.1", &["outer", "", "outer", "", "outer", "", "outer", ""]));
}

#[test]
fn events_are_marks_and_numbers() {
    let _watchdog = common::watchdog();
    let run = Run::new(1);
    run.task(|| {
        for step in 0..3u64 {
            info!(name: "residual", value = 10 * step);
        }
        info!("half way, after {} steps", 3);
        info!(name: "rounded", value = 2.6);
        info!(value = -4, "with a message");
    });
    let trace = run.trace();
    assert_eq!(trace.names("101"), on("1.1", &["half way, after 3 steps"]));
    let of = |name: &str| {
        let line =
            trace.pcf.lines().find(|line| line.starts_with("0    951") && line.ends_with(name));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        trace.values(number).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(of(" residual"), [0, 10, 20]);
    assert_eq!(of(" rounded"), [3]);
    assert_eq!(of(" with a message"), [-4]);
}

#[test]
fn threads_outside_share_a_row() {
    let _watchdog = common::watchdog();
    let run = Run::new(1);
    let subscriber = run.subscriber();
    let work = move || {
        tracing::dispatcher::with_default(&subscriber, || {
            info_span!("outside").in_scope(|| info!(name: "there", ""));
        });
    };
    std::thread::spawn(work).join().unwrap();
    // Other tests of this process may start a runtime meanwhile, which is then the last one.
    let left_out = run.layer.left_out();
    let names = run.trace().names("101");
    assert!(left_out == 0 && (names.is_empty() || names == on("1.2", &["there"])), "{names:?}");
}

#[test]
fn a_span_may_be_left_where_its_thread_ends() {
    thread_local! {
        static HELD: RefCell<Option<EnteredSpan>> = const { RefCell::new(None) };
    }
    let _watchdog = common::watchdog();
    let run = Run::new(1);
    let subscriber = run.subscriber();
    let holds = move || {
        // Known before the span is entered, and so dropped after what the layer keeps of it.
        HELD.set(None);
        HELD.set(Some(tracing::dispatcher::with_default(&subscriber, || {
            info_span!("held").entered()
        })));
    };
    std::thread::spawn(holds).join().unwrap();
    run.trace();
}

#[test]
fn a_run_without_a_trace_leaves_all_out() {
    let _watchdog = common::watchdog();
    let runtime = Runtime::new(Config { workers: 1, ..Config::default() }).unwrap();
    let layer = SpanLayer::new();
    let subscriber = Dispatch::new(tracing_subscriber::registry().with(layer.clone()));
    let body = move || {
        tracing::dispatcher::with_default(&subscriber, || {
            info_span!("span").in_scope(|| info!("event"));
        });
    };
    runtime.block_on(runtime.task("body").run(body).unwrap()).unwrap().unwrap();
    assert_eq!(layer.left_out(), 2);
}
