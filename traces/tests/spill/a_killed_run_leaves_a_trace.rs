//! A trace can be made of the file of a run that was killed.

use std::fs;

use talpf_traces::{Event, ValueKind, recover};

use crate::run::{Folder, clean, info, record, texts};

#[test]
fn records_of_open_streams_are_there_after_a_while() {
    let folder = Folder::new();
    let recorder = folder.recorder(1 << 20);
    let mut stream = recorder.stream(1);
    stream.record(10, Event::Value { rank: 1, kind: ValueKind::Step, value: 1 });
    // The thread of the writer makes a pass.
    let recovered = loop {
        let recovered = recover(&folder.spill(), folder.path(), "run").unwrap();
        if recovered.records > 0 {
            break recovered;
        }
        std::thread::yield_now();
    };
    assert_eq!((recovered.records, recovered.damaged), (1, 0));
    let [prv, _, row] = clean(&recovered.files);
    assert!(prv.contains("# a run\n# recovered: the run did not end\n"), "{prv}");
    assert!(prv.starts_with("#Paraver (26/11/2026 at 12:00):00000000000000000010_ns:1(2):1:2"));
    assert!(prv.contains(":10:95000026:1\n") && row.contains("r1 w1"), "{prv}{row}");
    drop(stream);
}

#[test]
fn a_recovered_trace_has_all_that_a_written_one_has() {
    let folder = Folder::new();
    let recorder = folder.recorder(1 << 20);
    record(&recorder, 3_000);
    let written = clean(&recorder.write_paraver(folder.path(), "written", &info()).unwrap());
    let recovered = recover(&folder.spill(), folder.path(), "recovered").unwrap();
    assert_eq!(recovered.records, 3_000 * 14);
    let mut texts = clean(&recovered.files);
    texts[0] = texts[0].replace("# recovered: the run did not end\n", "");
    assert_eq!(texts, written);
}

#[test]
fn a_file_that_ends_anywhere_has_a_trace() {
    let folder = Folder::new();
    let recorder = folder.recorder(1 << 20);
    record(&recorder, 10);
    recorder.write_paraver(folder.path(), "run", &info()).unwrap();
    let bytes = fs::read(folder.spill()).unwrap();
    let cut = folder.path().join("cut.spill");
    let mut most = 0;
    for len in (12..bytes.len()).step_by(3).chain([bytes.len()]) {
        fs::write(&cut, &bytes[..len]).unwrap();
        let recovered = recover(&cut, folder.path(), "cut").unwrap();
        assert_eq!(recovered.damaged, 0, "{len}");
        assert!(recovered.records >= most, "{len}");
        most = recovered.records;
        let [prv, ..] = texts(&recovered.files);
        assert!(!prv.contains("dropped"), "{prv}");
    }
    assert_eq!(most, 140);
}
