//! No input makes a summary or a picture panic.

use proptest::prelude::*;
use talpf_traces::{Format, RenderOptions, Rows, Summary, View, render};

use crate::support::sample::sample;

fn read(prv: &[u8], pcf: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.prv");
    std::fs::write(&path, prv).unwrap();
    std::fs::write(path.with_extension("pcf"), pcf).unwrap();
    if let Ok(summary) = Summary::of(&path) {
        let _ = summary.to_string();
    }
    let rows = [None, Some(Rows::Worker), Some(Rows::Rank), Some(Rows::Cpu)];
    for (index, view) in View::names().enumerate() {
        for rows in [rows[0], rows[index % rows.len()]] {
            let view: View = view.parse().unwrap();
            let options = RenderOptions { view, rows, ..RenderOptions::default() };
            if let Ok(picture) = render(&path, &options) {
                picture.write(Format::Svg, &mut std::io::sink()).unwrap();
            }
        }
    }
}

#[test]
fn a_trace_cut_at_every_byte() {
    let trace = sample();
    let pcf = trace.pcf.unwrap();
    for length in 0..trace.prv.len() {
        read(&trace.prv.as_bytes()[..length], pcf.as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_trace_with_other_numbers(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..5),
    ) {
        let trace = sample();
        let mut fields: Vec<String> = trace.prv.split(':').map(str::to_owned).collect();
        for (place, number) in places {
            let place = place.index(fields.len());
            fields[place] = number.to_string();
        }
        read(fields.join(":").as_bytes(), trace.pcf.unwrap().as_bytes());
    }
}
