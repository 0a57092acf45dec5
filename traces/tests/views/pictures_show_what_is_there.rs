//! Pictures have a row for each object, a colour for each value, and both formats.

use std::fmt::Write;
use std::path::PathBuf;

use talpf_traces::{
    Error, Event, Format, Picture, Recorder, RenderOptions, Rows, State, View, render,
};
use tempfile::TempDir;

use crate::support::{info, state};

/// Two ranks on two workers, each of which computes half of the time, in tasks of two types.
fn trace() -> (TempDir, PathBuf) {
    let recorder = Recorder::default();
    let labels = ["first <half>", "second"].map(|label| recorder.label(label));
    for (worker, label) in labels.into_iter().enumerate() {
        let (rank, task, began_ns) = (worker as u32, worker as u64 + 1, worker as u64 * 500);
        let slice = Event::TaskSlice { starts: true, rank, task, label, began_ns };
        let mut stream = recorder.stream(worker as u32);
        if worker == 0 {
            stream.record(500, slice);
            stream.record(1_000, state(State::Idle, 500));
        } else {
            stream.record(500, state(State::Idle, 0));
            stream.record(1_000, slice);
        }
    }
    let folder = TempDir::new().unwrap();
    let files = recorder.write_paraver(folder.path(), "run", &info(2, 2, 1_000)).unwrap();
    (folder, files.prv)
}

fn svg(picture: &Picture) -> String {
    let mut bytes = Vec::new();
    picture.write(Format::Svg, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn options(view: &str, rows: Rows) -> RenderOptions {
    let view: View = view.parse().unwrap();
    RenderOptions { view, rows: Some(rows), title: "run".to_owned(), ..RenderOptions::default() }
}

#[test]
fn states_of_workers_ranks_and_cpus() {
    let (_folder, prv) = trace();
    for (rows, names) in [
        (Rows::Worker, ["r0 w0", "r1 w1"]),
        (Rows::Rank, ["rank 0", "rank 1"]),
        (Rows::Cpu, ["cpu 1", "cpu 2"]),
    ] {
        let text = svg(&render(&prv, &options("states", rows)).unwrap());
        for name in names {
            assert!(text.contains(&format!(">{name}</text>")), "{text}");
        }
        assert!(text.contains(">run: States</text>"), "{text}");
        assert!(text.contains(">Running 50.0 %</text>"), "{text}");
        assert!(text.contains(">Idle 50.0 %</text>"), "{text}");
    }
}

#[test]
fn task_types_within_a_part_of_the_time() {
    let (_folder, prv) = trace();
    let part = |from_ns, to_ns| {
        let all = options("task-type", Rows::Worker);
        let options = RenderOptions { from_ns, to_ns: Some(to_ns), ..all };
        svg(&render(&prv, &options).unwrap())
    };
    let first = part(100, 400);
    assert!(first.contains(">first &lt;half> 100.0 %</text>"), "{first}");
    assert!(!first.contains("second"), "{first}");
    let both = part(400, 600);
    assert!(both.contains(">second 50.0 %</text>"), "{both}");
}

#[test]
fn numbers_are_drawn_in_a_gradient() {
    let (_folder, prv) = trace();
    let text = svg(&render(&prv, &options("task-id", Rows::Worker)).unwrap());
    assert!(text.contains(">1</text>") && text.contains(">2</text>"), "{text}");
}

#[test]
fn no_time_is_an_error() {
    let (_folder, prv) = trace();
    for (from_ns, to_ns) in [(1_000, None), (500, Some(500)), (500, Some(400))] {
        let options = RenderOptions { from_ns, to_ns, ..RenderOptions::default() };
        assert!(matches!(render(&prv, &options), Err(Error::NoTime { .. })), "{from_ns}");
    }
}

#[test]
fn some_of_the_ranks() {
    let (_folder, prv) = trace();
    let part = |ranks, rows| {
        let options = RenderOptions { ranks: Some(ranks), ..options("states", rows) };
        svg(&render(&prv, &options).unwrap())
    };
    for (rows, name, hidden) in [
        (Rows::Worker, "r1 w1", "r0 w0"),
        (Rows::Rank, "rank 1", "rank 0"),
        (Rows::Cpu, "cpu 2", "-"),
    ] {
        let text = part(1..5, rows);
        assert!(text.contains(&format!(">{name}</text>")), "{text}");
        assert!(!text.contains(&format!(">{hidden}</text>")), "{text}");
        assert!(text.contains(">Running 50.0 %</text>"), "{text}");
    }
    assert_eq!(
        part(0..2, Rows::Worker),
        svg(&render(&prv, &options("states", Rows::Worker)).unwrap())
    );
}

#[test]
fn no_rank_is_an_error() {
    let (_folder, prv) = trace();
    for ranks in [2..3, 1..1] {
        let options = RenderOptions { ranks: Some(ranks), ..RenderOptions::default() };
        let error = render(&prv, &options).unwrap_err();
        assert!(matches!(error, Error::NoRanks { ranks: 2, .. }), "{error}");
    }
}

#[test]
fn rows_without_names_are_counted() {
    let (_folder, prv) = trace();
    std::fs::remove_file(prv.with_extension("row")).unwrap();
    let text = svg(&render(&prv, &options("states", Rows::Worker)).unwrap());
    assert!(text.contains(">rank 1 worker 1</text>"), "{text}");
}

#[test]
fn a_png_can_be_decoded_and_has_the_colours_of_the_view() {
    let (_folder, prv) = trace();
    let mut bytes = Vec::new();
    let picture = render(&prv, &options("states", Rows::Worker)).unwrap();
    picture.write(Format::Png, &mut bytes).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    let colours: std::collections::HashSet<&[u8]> =
        pixels[..frame.buffer_size()].chunks_exact(3).collect();
    // Running, idle, text and background.
    for colour in [[0, 114, 178], [200, 214, 229], [0, 0, 0], [255, 255, 255]] {
        assert!(colours.contains(&colour[..]), "{colour:?}");
    }
}

#[test]
fn rows_beyond_a_thousand_are_joined_and_the_picture_says_so() {
    let mut text = String::from("#Paraver (21/11/2026 at 02:40):10_ns:0:1:1(2500:0)\n");
    for thread in 1..=2_500 {
        writeln!(text, "1:0:1:1:{thread}:0:10:1").unwrap();
    }
    let folder = TempDir::new().unwrap();
    let prv = folder.path().join("x.prv");
    std::fs::write(&prv, text).unwrap();
    let picture = svg(&render(&prv, &options("states", Rows::Worker)).unwrap());
    assert!(picture.contains("each row shows 3 of the trace together"));
}
