//! No output takes the place of an input, and a failure leaves what was there.

use std::fs;
use std::os::unix::fs::symlink;

use talpf_traces::{Conversion, convert, convert_to_csv, convert_to_ovni};
use tempfile::TempDir;

use crate::support::sample::sample;

const FORMS: [Conversion; 2] = [Conversion::Perfetto, Conversion::Chrome];

#[test]
fn inputs_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let prv = path("states.csv");
    fs::write(&prv, sample().prv).unwrap();
    fs::write(path("states.pcf"), sample().pcf.unwrap()).unwrap();
    symlink(&prv, path("link")).unwrap();
    symlink(&prv, path("temporary.partial")).unwrap();
    for out in ["states.csv", "states.pcf", "link", "temporary"] {
        for form in FORMS {
            let error = convert(&prv, form, path(out)).unwrap_err().to_string();
            assert!(error.ends_with("is an input, and would be replaced"), "{error}");
        }
    }
    let error = convert_to_csv(&prv, folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("is an input, and would be replaced"), "{error}");
    assert_eq!(fs::read_to_string(&prv).unwrap(), sample().prv);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn folders_and_devices_are_no_outputs() {
    let folder = TempDir::new().unwrap();
    let prv = folder.path().join("run.prv");
    fs::write(&prv, sample().prv).unwrap();
    symlink("/dev/null", folder.path().join("null")).unwrap();
    for out in [folder.path().to_owned(), folder.path().join("null")] {
        let error = convert(&prv, Conversion::Chrome, &out).unwrap_err().to_string();
        assert!(error.ends_with(": not a file"), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_bad_input_leaves_the_earlier_output() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("run.prv"), sample().prv + "1:1:1:9:1:40:100:1\n").unwrap();
    let outputs = ["out", "states.csv", "events.csv", "messages.csv"];
    outputs.iter().for_each(|name| fs::write(path(name), "earlier").unwrap());
    for form in FORMS {
        let error = convert(path("run.prv"), form, path("out")).unwrap_err().to_string();
        assert!(error.contains("run.prv:10: "), "{error}");
    }
    assert!(convert_to_csv(path("run.prv"), folder.path()).is_err());
    for name in outputs {
        assert_eq!(fs::read_to_string(path(name)).unwrap(), "earlier");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
}

#[test]
fn any_input_is_an_error_at_most() {
    let folder = TempDir::new().unwrap();
    let [prv, out] = ["run.prv", "out"].map(|name| folder.path().join(name));
    let text = sample().prv;
    for length in 0..text.len() {
        fs::write(&prv, &text[..length]).unwrap();
        for form in FORMS {
            let _ = convert(&prv, form, &out);
        }
        let _ = convert_to_csv(&prv, folder.path());
        let streams = folder.path().join("streams");
        if convert_to_ovni(&prv, &streams).is_ok() {
            fs::remove_dir_all(streams).unwrap();
        }
    }
}
