use crate::{error_of, stdout_of, talpf, value};

#[test]
fn info_names_every_property() {
    let text = stdout_of(&talpf("info"));
    for name in ["cores", "memory", "vectors", "clock", "memcpy"] {
        assert!(!value(&text, name).is_empty(), "{name} in {text}");
    }
    assert!(value(&text, "cores").parse::<usize>().unwrap() >= 1);
}

#[test]
fn info_takes_no_arguments() {
    assert!(error_of(&talpf("info --rows 3")).contains("'--rows'"));
}
