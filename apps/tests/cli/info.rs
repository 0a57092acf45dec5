use crate::{error_of, stdout_of, talpf, value};

#[test]
fn info_names_every_property() {
    let text = stdout_of(&talpf("info"));
    for name in [
        "cores", "memory", "vectors", "clock", "timer", "workers", "idle", "throttle", "polling",
        "memcpy", "put", "l", "g",
    ] {
        assert!(!value(&text, name).is_empty(), "{name} in {text}");
    }
    assert!(value(&text, "cores").parse::<usize>().unwrap() >= 1);
    // A superstep may take longer on a busy machine than the bytes, and then they have no cost.
    let has_g = value(&text, "g") != "hidden by other load on this machine";
    let costs = [("clock", "ns"), ("l", "us"), ("g", "ns")];
    for (name, unit) in costs.into_iter().filter(|(name, _)| *name != "g" || has_g) {
        let mut words = value(&text, name).split(' ');
        let number: f64 = words.next().unwrap().parse().unwrap();
        assert!(number > 0.0 && words.next() == Some(unit), "{text}");
    }
}

#[test]
fn info_takes_no_arguments() {
    assert!(error_of(&talpf("info --rows 3")).contains("'--rows'"));
}
