use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::{stdout_of, talpf, talpf_with, value};

const SMALL: &str = "jacobi --rows 37 --cols 23 --block 8 --steps 9";

fn run(options: &str) -> String {
    stdout_of(&talpf(&format!("{SMALL} {options}")))
}

#[test]
fn result_has_its_lines_in_order() {
    let text = run("");
    let names: Vec<_> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let expected = [
        "variant", "ranks", "workers", "replay", "rows", "cols", "block", "steps", "time", "rate",
        "checksum", "verified",
    ];
    assert_eq!(names, expected);
    assert_eq!(value(&text, "rows"), "37");
    assert_eq!(value(&text, "cols"), "23");
    assert_eq!(value(&text, "block"), "8");
    assert_eq!(value(&text, "steps"), "9");
    assert!(value(&text, "time").ends_with(" s"));
    assert!(value(&text, "rate").ends_with(" Mupdates/s"));
}

#[test]
fn every_variant_has_the_checksum_of_serial() {
    let serial = run("--variant serial");
    assert_eq!(value(&serial, "variant"), "serial");
    assert_eq!(value(&serial, "workers"), "1");
    for workers in [1, 2, 3, 8] {
        for variant in [
            "lpf",
            "talpf-default",
            "talpf-cached",
            "talpf-raw-cached",
            "talpf-msg",
            "talpf-get",
            "tampi",
            "tampi-blocking",
        ] {
            let options = format!("--variant {variant} --workers {workers} --ranks 5 --check");
            let text = run(&options);
            assert_eq!(value(&text, "ranks"), "5");
            assert_eq!(value(&text, "workers"), workers.to_string());
            assert_eq!(value(&text, "checksum"), value(&serial, "checksum"));
            assert!(value(&text, "verified").starts_with("yes"));
        }
        let text = run(&format!("--variant fork-join --workers {workers} --check"));
        assert_eq!(value(&text, "variant"), "fork-join");
        assert_eq!(value(&text, "workers"), workers.to_string());
        assert_eq!(value(&text, "checksum"), value(&serial, "checksum"));
        assert!(value(&text, "verified").starts_with("yes"));
    }
}

#[test]
fn size_sets_rows_and_columns() {
    let text = stdout_of(&talpf("jacobi --size 19 --steps 2"));
    assert_eq!((value(&text, "rows"), value(&text, "cols")), ("19", "19"));
}

#[test]
fn single_cell_and_block_larger_than_matrix_run() {
    let text = stdout_of(&talpf("jacobi --size 1 --block 4096 --steps 1 --check"));
    assert!(value(&text, "verified").starts_with("yes"));
}

#[test]
fn ranks_may_be_as_many_as_rows() {
    run("--ranks 37");
}

#[test]
fn default_is_cached_on_two_ranks_and_all_cores() {
    let text = run("");
    assert_eq!(value(&text, "variant"), "talpf-cached");
    assert_eq!(value(&text, "ranks"), "2");
    let cores = std::thread::available_parallelism().unwrap();
    assert_eq!(value(&text, "workers"), cores.to_string());
    let one_row = stdout_of(&talpf("jacobi --rows 1 --cols 9 --steps 3"));
    assert_eq!(value(&one_row, "ranks"), "1");
}

#[test]
fn a_grid_has_its_number_of_ranks() {
    assert_eq!(value(&run("--grid 2x3 --check"), "ranks"), "6");
    assert_eq!(value(&run("--grid 2x3 --variant serial"), "ranks"), "1");
}

#[test]
fn config_changes_the_result() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("heat.conf");
    fs::write(&path, "1 # one source\n0.5 0.0 0.25 -7.5\n").unwrap();
    let text = run(&format!("--check --config {}", path.display()));
    assert!(value(&text, "checksum").starts_with('-'), "cold");
    fs::write(&path, "2\n0 0 1 2.5\n1 0.5 1 2.5\n").unwrap();
    let text = run(&format!("--config {}", path.display()));
    assert_eq!(value(&text, "checksum"), value(&run(""), "checksum"), "the default");
}

#[test]
fn json_has_every_field_and_replaces_what_was_there() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("result.json");
    fs::write(&path, "x".repeat(10_000)).unwrap();
    let option = format!("--json {}", path.display());

    let text = run(&format!("{option} --workers 3"));
    let json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(json["app"], "jacobi");
    assert_eq!(json["variant"], "talpf-cached");
    for (name, number) in
        [("ranks", 2), ("workers", 3), ("rows", 37), ("cols", 23), ("block", 8), ("steps", 9)]
    {
        assert_eq!(json[name], number, "{name}");
    }
    let seconds = json["seconds"].as_f64().unwrap();
    let rate = json["mupdates_per_s"].as_f64().unwrap();
    let updates = 37.0 * 23.0 * 9.0 / 1e6;
    assert!((seconds * rate / updates - 1.0).abs() < 1e-9);
    // As text: by default serde_json does not read the last bit of a number back.
    let checksum = value(&text, "checksum").split(' ').next().unwrap();
    let line = format!("\"checksum\": {checksum},");
    assert!(fs::read_to_string(&path).unwrap().contains(&line), "{line}");
    assert_eq!(json["verified"], Value::Null);
    assert!(json["metrics"].is_object());
    assert_eq!(json.as_object().unwrap().len(), 14);

    run(&format!("--check {option}"));
    let json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(json["verified"], true);
}

#[test]
fn image_is_a_png_of_the_matrix_with_its_border() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("heat.png");
    run(&format!("--image {}", path.display()));
    let file = std::io::BufReader::new(fs::File::open(&path).unwrap());
    let reader = png::Decoder::new(file).read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), (25, 39));
}

#[test]
fn progress_bar_needs_a_terminal() {
    let text = stdout_of(&talpf("jacobi --size 300 --steps 3000"));
    assert_eq!(run("--quiet").lines().count(), text.lines().count());
}

#[test]
fn device_and_pipe_are_outputs_too() {
    run("--json /dev/null --image /dev/null");
}

#[test]
fn help_names_every_option() {
    let help = stdout_of(&talpf_with(&["jacobi", "--help"]));
    for option in [
        "variant", "ranks", "workers", "size", "rows", "cols", "block", "steps", "config", "check",
        "image", "json", "trace", "graph", "replay", "quiet",
    ] {
        assert!(help.contains(&format!("--{option}")), "{option}");
    }
    assert!(stdout_of(&talpf("--help")).contains("jacobi"));
    assert!(stdout_of(&talpf("--version")).starts_with("talpf "));
}
