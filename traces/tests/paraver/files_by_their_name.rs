//! Labels, names of rows and views are checked by themselves, and a folder with all that is in it.

use std::fs;
use std::path::Path;

use talpf_traces::paraver::{Rule, check_file, check_folder};

const PRV: &str = "#Paraver (x):20_ns:0:1:1(1:1)\n2:0:1:1:1:0:11:1\n2:0:1:1:1:20:11:0\n";
const PCF: &str = "EVENT_TYPE\n0 11 Task type\nVALUES\n1 one\n";
const ROW: &str = "LEVEL THREAD SIZE 1\nr0 w0\n";
const VIEW: &str = "#ParaverCFG\nConfigFile.NumWindows: 1\nwindow_id 1\nwindow_level thread\n";

fn write(folder: &Path, files: &[(&str, &str)]) {
    files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
}

#[test]
fn each_file_is_checked_by_its_own_rules() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, &[("x.prv", PRV), ("x.pcf", PCF), ("x.row", ROW), ("x.cfg", VIEW)]);
    for name in ["x.prv", "x.pcf", "x.row", "x.cfg"] {
        let report = check_file(folder.join(name)).unwrap();
        assert!(report.is_clean(), "{name}: {report}");
    }
    let broken = [
        ("y.pcf", "EVENT_TYPE\n11 Task type\n", Rule::MissingColour),
        ("y.row", "LEVEL THREAD SIZE 2\nr0 w0\n", Rule::RowCount),
        ("y.cfg", "window_id 1\n", Rule::ViewForm),
        ("y.prv", "2\n", Rule::NotParaver),
        ("without an end", "2\n", Rule::NotParaver),
    ];
    for (name, text, rule) in broken {
        write(folder, &[(name, text)]);
        let report = check_file(folder.join(name)).unwrap();
        assert!(report.breaches(rule) > 0, "{name}: {report}");
    }
    assert!(check_file(folder.join("missing.pcf")).is_err());
}

#[test]
fn a_folder_is_checked_with_each_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("inside.prv")).unwrap();
    let broken = "LEVEL THREAD SIZE 2\nr0 w0\n";
    let files = [
        ("a.prv", PRV),
        ("a.pcf", PCF),
        ("a.row", ROW),
        ("b.cfg", VIEW),
        ("c.row", broken),
        ("README.md", "text"),
    ];
    write(folder, &files);
    let reports = check_folder(folder).unwrap();
    let found = reports
        .iter()
        .map(|(file, report)| (file.file_name().unwrap().to_str().unwrap(), report.is_clean()));
    let found: Vec<_> = found.collect();
    assert_eq!(found, [("a.prv", true), ("b.cfg", true), ("c.row", false)]);
    assert!(check_folder(folder.join("missing")).is_err());
}
