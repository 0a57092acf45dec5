//! The `.pcf` and `.row` files name every state, event, value and row; names
//! that would break them are made harmless.

use crate::support;
use crate::support::{Trace, info};
use talpf_traces::paraver::EventKind;
use talpf_traces::{Event, Recorder, State, SyncMode};

fn has_line(text: &str, words: &str) -> bool {
    let squeezed = |line: &str| line.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().any(|line| squeezed(line) == words)
}

#[test]
fn states_types_and_values_have_labels() {
    let recorder = Recorder::default();
    recorder.label("stencil");
    let trace = Trace::of(&recorder, &info(2, 3, 10));
    let pcf = trace.pcf.as_deref().expect("pcf");
    for state in State::ALL {
        let words = format!("{} {}", state.number(), state.name());
        assert!(has_line(pcf, &words), "{words}");
    }
    for kind in EventKind::ALL {
        let words = format!("0 {} {}", kind.number(), kind.name());
        assert!(has_line(pcf, &words), "{words}");
    }
    for mode in SyncMode::all() {
        let words = format!("{} {}", mode.number(), mode.name());
        assert!(has_line(pcf, &words), "{words}");
    }
    assert!(has_line(pcf, "1 (unnamed)"));
    assert!(has_line(pcf, "2 stencil"));

    let row = trace.row.as_deref().expect("row");
    for line in ["LEVEL CPU SIZE 3", "LEVEL NODE SIZE 1", "LEVEL TASK SIZE 2"] {
        assert!(has_line(row, line), "{line}");
    }
    assert!(row.ends_with("LEVEL THREAD SIZE 6\nr0 w0\nr0 w1\nr0 w2\nr1 w0\nr1 w1\nr1 w2\n"));
}

#[test]
fn states_are_listed_by_number() {
    assert!(State::ALL.windows(2).all(|pair| pair[0].number() < pair[1].number()));
}

#[test]
fn names_that_break_lines_are_made_harmless() {
    let recorder = Recorder::default();
    let mut stream = recorder.stream(0);
    for (time_ns, name) in (1..).zip(["VALUES\nEVENT_TYPE", "  ", "", "gemm #1\r", "\u{feff}täsk"])
    {
        let label = recorder.label(name);
        stream.record(time_ns + 1, Event::task_slice(0, time_ns, label, time_ns, true));
    }
    drop(stream);
    let mut info = info(1, 1, 10);
    info.started = "a):2(x\n".to_owned();
    let trace = Trace::of(&recorder, &info);
    trace.assert_clean();
    let pcf = trace.pcf.as_deref().expect("pcf");
    for words in ["2 VALUES_EVENT_TYPE", "3 (blank)", "4 (blank)", "5 gemm _1_"] {
        assert!(has_line(pcf, words), "{words}");
    }
}

#[test]
fn label_of_another_recorder_shows_as_unnamed() {
    let other = Recorder::default();
    let label = (0..5).map(|name| other.label(&name.to_string())).next_back().expect("label");
    let trace = Trace::of(
        &support::recorded(&[(0, 2, Event::task_slice(0, 1, label, 1, true))]),
        &info(1, 1, 9),
    );
    trace.assert_clean();
    assert_eq!(trace.records("2:")[0], "2:1:1:1:1:1:10:1:11:1:95000021:1");
}
