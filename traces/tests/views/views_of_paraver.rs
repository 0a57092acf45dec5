//! Views for Paraver know our event types, and a flaw of one is named.

use std::fs;
use std::path::Path;

use talpf_traces::paraver::{Rule, check_view};

fn shipped() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cfg");
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "cfg"));
    paths.sort();
    paths
}

#[test]
fn shipped_views_are_clean_and_described() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cfg");
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let paths = shipped();
    for path in &paths {
        let report = check_view(path).unwrap();
        assert!(report.is_clean(), "{report}");
        let name = path.file_stem().unwrap().to_str().unwrap();
        let picture = format!("../pictures/views/{name}.png");
        let section =
            readme.split("\n## ").find(|section| section.starts_with(&format!("`{name}`\n")));
        let section = section.unwrap_or_else(|| panic!("{name} is not described"));
        assert!(section.contains(&format!("![{name}]({picture})")), "{name} has no picture");
        assert!(folder.join(&picture).exists(), "{picture}");
    }
    assert_eq!(readme.matches("\n## ").count(), paths.len());
}

#[test]
fn flaws_of_a_view_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.cfg");
    let view = shipped().into_iter().find(|path| path.ends_with("task-type-time.cfg")).unwrap();
    let view = fs::read_to_string(view).unwrap();
    // A wrong number of windows is known at the end of the file.
    for (old, new) in [("NumWindows: 1", "NumWindows: 2"), ("window_id 1\n", "")] {
        fs::write(&path, view.replacen(old, new, 1)).unwrap();
        let report = check_view(&path).unwrap();
        assert!(report.to_string().contains(" windows announced, "), "{report}");
        assert!(!report.is_clean(), "{new}");
    }
    for (old, new, rule) in [
        ("#ParaverCFG", "#Paraver", Rule::ViewForm),
        ("window_level thread", "window_level worker", Rule::UnknownWord),
        ("Last Evt Val", "Last Event", Rule::UnknownWord),
        ("{compose_thread, As Is}", "{compose_thread, Sing}", Rule::UnknownWord),
        ("evt_type 1 11", "evt_type 1 95000099", Rule::UnknownType),
        ("evt_type 1 11", "evt_type 2 11", Rule::ViewForm),
        ("evt_type 1 11", "tag_msg 2 11", Rule::ViewForm),
        ("evt_type 1 11", "tag_msg 1 x", Rule::ViewForm),
        ("{tag_msg, All}", "{tag_msg, <=}", Rule::UnknownWord),
        ("DataWindow: 1", "DataWindow: 2", Rule::ViewForm),
        ("Statistic: Time", "Statistic: time", Rule::UnknownWord),
    ] {
        let changed = view.replacen(old, new, 1);
        fs::write(&path, &changed).unwrap();
        let report = check_view(&path).unwrap();
        let line = changed.lines().position(|line| line.contains(new)).unwrap() as u64 + 1;
        let findings: Vec<_> = report.findings().iter().map(|f| (f.rule, f.line)).collect();
        assert_eq!(findings, [(rule, line)], "{report}");
        assert!(!report.is_clean(), "{new}");
    }
}

proptest::proptest! {
    #[test]
    fn noise_is_no_view(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.cfg");
        fs::write(&path, &bytes).unwrap();
        let _ = check_view(&path).unwrap().to_string();
    }
}
