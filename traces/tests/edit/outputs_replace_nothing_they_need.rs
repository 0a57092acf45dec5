//! No output takes the place of an input, and a failure leaves what was there.

use std::fs;

use talpf_traces::paraver::{cut, merge};
use tempfile::TempDir;

use crate::support::sample::sample;

#[test]
fn inputs_and_other_names_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("run.prv");
    fs::write(&path, sample().prv).unwrap();
    let link = folder.path().join("link.prv");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let detour = folder.path().join("../").join(folder.path().file_name().unwrap()).join("run.prv");
    for out in [&path, &link, &detour] {
        let error = cut(&path, 0, None, out).unwrap_err().to_string();
        assert!(error.ends_with("is an input, and would be replaced"), "{error}");
        assert!(merge(&[&path], out).is_err());
    }
    for name in ["run.pcf", "run", "run.prv.gz"] {
        let error = cut(&path, 0, None, folder.path().join(name)).unwrap_err().to_string();
        assert!(error.ends_with("the name of a trace ends in .prv"), "{error}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), sample().prv);
}

#[test]
fn a_bad_input_leaves_the_earlier_output() {
    let folder = TempDir::new().unwrap();
    let [path, out] = ["run.prv", "out.prv"].map(|name| folder.path().join(name));
    fs::write(&path, sample().prv + "1:1:1:9:1:40:100:1\n").unwrap();
    fs::write(&out, "earlier").unwrap();
    assert!(cut(&path, 0, None, &out).is_err());
    assert!(merge(&[&path], &out).is_err());
    assert_eq!(fs::read_to_string(&out).unwrap(), "earlier");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn any_input_is_an_error_at_most() {
    let folder = TempDir::new().unwrap();
    let [path, out] = ["run.prv", "out.prv"].map(|name| folder.path().join(name));
    let text = sample().prv;
    for length in 0..text.len() {
        fs::write(&path, &text[..length]).unwrap();
        let _ = cut(&path, 25, Some(70), &out);
        let _ = merge(&[&path], &out);
    }
    for begin in ["18446744073709551615", "9007199254740992"] {
        fs::write(&path, format!("{text}# begins at {begin} ns of the run\n")).unwrap();
        let _ = cut(&path, 25, Some(70), &out);
        let other = folder.path().join("other.prv");
        fs::write(&other, &text).unwrap();
        let error = merge(&[&path, &other], &out).unwrap_err().to_string();
        assert!(error.contains("exceeds 9007199254740992 ns"), "{error}");
    }
}
