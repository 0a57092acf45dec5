use std::fs;

use crate::assert_none;
use crate::repository::{root, rust_files};

/// Packages with the packages of ours that they may depend on. Benches and applications may use
/// all.
const MAY_USE: [(&str, &str, &[&str]); 7] = [
    ("traces", "talpf-traces", &[]),
    ("runtime/primitives", "talpf-primitives", &[]),
    ("lpf-c", "lpf-c", &["talpf-primitives"]),
    ("ibverbs-sim", "ibverbs-sim", &["talpf-primitives", "talpf-traces"]),
    ("runtime", "talpf-runtime", &["talpf-primitives", "talpf-traces"]),
    ("talpf", "talpf", &["talpf-primitives", "talpf-runtime", "ibverbs-sim", "talpf-traces"]),
    (
        "tampi-shim",
        "tampi-shim",
        &["talpf-primitives", "talpf-runtime", "ibverbs-sim", "talpf-traces"],
    ),
];

const OURS: [&str; 9] = [
    "ibverbs-sim",
    "lpf-c",
    "talpf",
    "talpf-apps",
    "talpf-benches",
    "talpf-primitives",
    "talpf-runtime",
    "talpf-traces",
    "tampi-shim",
];

/// Returns the packages named in the dependency tables of a manifest.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut in_table = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            in_table = table.ends_with("dependencies");
        } else if in_table {
            found.extend(line.split(['.', '=', ' ']).next().filter(|name| !name.is_empty()));
        }
    }
    found
}

#[test]
fn manifests_follow_the_layers() {
    let mut findings = Vec::new();
    for (folder, package, allowed) in MAY_USE {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).expect(folder);
        for name in dependencies(&manifest) {
            if OURS.contains(&name) && name != package && !allowed.contains(&name) {
                findings.push(format!("{folder}/Cargo.toml: {name}"));
            }
        }
    }
    assert_none(&findings, "dependencies against the layers");
}

#[test]
fn traces_names_none_of_our_crates() {
    let others = OURS.iter().filter(|name| **name != "talpf-traces");
    let others: Vec<String> = others.map(|name| name.replace('-', "_")).collect();
    let mut findings = Vec::new();
    for file in rust_files().into_iter().filter(|file| file.path.starts_with("traces/src/")) {
        for (line, word) in file.lexed().words() {
            if others.iter().any(|name| name == word) {
                findings.push(format!("{}:{line}: {word}", file.path));
            }
        }
    }
    assert_none(&findings, "traces knows no other crate");
}

#[test]
fn dependency_tables_are_read() {
    let manifest = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true\nc = \"1\"\n\n\
                    [dev-dependencies]\nd = { path = \"d\" }\n[lints]\nworkspace = true\n";
    assert_eq!(dependencies(manifest), ["b", "c", "d"]);
}
