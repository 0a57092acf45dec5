//! A damaged byte costs the block that it is in, and no more.

use std::fs;

use talpf_traces::{Summary, paraver, recover};

use crate::run::{Folder, info, record, texts};

/// First bytes of each block.
const MARK: &[u8] = b"\xffTALPFB\n";

/// Returns a file of a run, with the begins of its blocks.
fn blocks(folder: &Folder, steps: u64) -> (Vec<u8>, Vec<usize>) {
    let recorder = folder.recorder(1 << 20);
    record(&recorder, steps);
    recorder.write_paraver(folder.path(), "run", &info()).unwrap();
    let bytes = fs::read(folder.spill()).unwrap();
    let begins = bytes.windows(MARK.len()).enumerate().filter(|(_, mark)| *mark == MARK);
    let begins = begins.map(|(at, _)| at).collect();
    (bytes, begins)
}

#[test]
fn the_other_chunks_are_there() {
    let folder = Folder::new();
    let (bytes, begins) = blocks(&folder, 500);
    let all = recover(&folder.spill(), folder.path(), "run").unwrap().records;
    let damaged = folder.path().join("damaged.spill");
    let mut lost = Vec::new();
    for (index, begin) in begins.iter().enumerate() {
        let end = begins.get(index + 1).copied().unwrap_or(bytes.len());
        // In the mark, the length, the checksum, and the content.
        for at in [*begin, begin + 12, begin + 15, begin + 16, end - 1] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x55;
            fs::write(&damaged, bytes).unwrap();
            let recovered = recover(&damaged, folder.path(), "damaged").unwrap();
            // An end inside the last block is that of a run that was killed.
            let is_last = index + 1 == begins.len();
            assert!(recovered.damaged == 1 || is_last, "{index} {at}");
            lost.push(all - recovered.records);
            let report = paraver::check(&recovered.files.prv).unwrap();
            assert_eq!(report.errors(), 0, "{index} {at}: {report}");
            if recovered.damaged > 0 {
                let summary = Summary::of(&recovered.files.prv).unwrap();
                let text = "records dropped: the file was damaged in 1 places".to_owned();
                assert!(summary.lost.contains(&text), "{:?}", summary.lost);
            }
        }
    }
    assert!(lost.iter().all(|lost| *lost <= 1_638), "{lost:?}");
    assert!(lost.contains(&1_638) && lost.contains(&0), "{lost:?}");
}

#[test]
fn without_its_description_a_run_has_the_ranks_and_workers_that_it_shows() {
    let folder = Folder::new();
    let (mut bytes, begins) = blocks(&folder, 10);
    bytes[begins[0] + 30] ^= 1;
    fs::write(folder.spill(), bytes).unwrap();
    let recovered = recover(&folder.spill(), folder.path(), "run").unwrap();
    assert_eq!((recovered.records, recovered.damaged), (140, 1));
    assert!(texts(&recovered.files)[0].lines().next().unwrap().ends_with("_ns:1(2):1:2(2:1,2:1)"));
}

#[test]
fn names_that_are_lost_are_replaced() {
    let folder = Folder::new();
    let (mut bytes, _) = blocks(&folder, 10);
    let name = bytes.windows(6).position(|text| text == b"kernel").unwrap();
    bytes[name] ^= 1;
    fs::write(folder.spill(), bytes).unwrap();
    let recovered = recover(&folder.spill(), folder.path(), "run").unwrap();
    assert_eq!((recovered.records, recovered.damaged), (140, 1));
    assert!(!texts(&recovered.files)[1].contains("kernel"));
}

#[test]
fn any_bytes_are_a_trace_or_an_error() {
    let folder = Folder::new();
    let (bytes, _) = blocks(&folder, 5);
    let damaged = folder.path().join("damaged.spill");
    for at in (12..bytes.len()).step_by(3) {
        for change in [1, 0x80] {
            let mut bytes = bytes.clone();
            bytes[at] ^= change;
            fs::write(&damaged, bytes).unwrap();
            let recovered = recover(&damaged, folder.path(), "damaged").unwrap();
            assert!(recovered.records <= 70, "{at}");
        }
    }
}
