//! A run that ends has the trace that it would have had without the file.

use talpf_traces::{Extent, Keep, Limits, Recorder};

use crate::run::{Folder, clean, info, record};

#[test]
fn records_that_have_been_in_the_file_come_back() {
    for steps in [1, 20, 2_000] {
        let (memory, folder) = (Recorder::default(), Folder::new());
        let spilling = folder.recorder(1 << 20);
        [&memory, &spilling].into_iter().for_each(|recorder| record(recorder, steps));
        let write = |recorder: &Recorder, stem| {
            clean(&recorder.write_paraver(folder.path(), stem, &info()).unwrap())
        };
        assert_eq!(write(&memory, "memory"), write(&spilling, "spilled"), "{steps} steps");
        assert_eq!(memory.record_count(), spilling.record_count());
        assert!(!spilling.is_empty() && folder.spill().exists());
        spilling.remove_spill().unwrap();
        assert!(!folder.spill().exists());
    }
}

#[test]
fn the_limit_holds_for_what_is_not_in_the_file() {
    let folder = Folder::new();
    let recorder = folder.recorder(0);
    record(&recorder, 10);
    assert_eq!((recorder.record_count(), recorder.dropped_count()), (2, 140));
    let files = recorder.write_paraver(folder.path(), "run", &info()).unwrap();
    let text = std::fs::read_to_string(files.prv).unwrap();
    assert!(text.contains("# worker 1: 70 records dropped, its stream was full at 0"), "{text}");
}

#[test]
fn a_part_of_the_run_is_kept_as_in_memory() {
    let extent = Extent::Times(1_000..3_000);
    let limits =
        Limits { records: 1 << 20, keep: Keep::First, extent, edges: false, control: false };
    let folder = Folder::new();
    let memory = Recorder::with_limits(limits.clone());
    let spilling = Recorder::spilling(limits, &folder.spill(), &info()).unwrap();
    let [memory, spilled] =
        [(&memory, "memory"), (&spilling, "spilled")].map(|(recorder, stem)| {
            record(recorder, 50);
            clean(&recorder.write_paraver(folder.path(), stem, &info()).unwrap())
        });
    assert_eq!(memory, spilled);
}

#[test]
fn a_run_without_records_leaves_a_file_without_records() {
    let folder = Folder::new();
    let recorder = folder.recorder(100);
    assert!(recorder.is_empty() && recorder.record_count() == 0);
    recorder.remove_spill().unwrap();
    assert!(!folder.spill().exists());
    // In memory nothing is there to be removed.
    Recorder::default().remove_spill().unwrap();
}
