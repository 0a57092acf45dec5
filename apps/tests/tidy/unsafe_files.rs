use std::collections::BTreeSet;
use std::fs;

use crate::assert_none;
use crate::repository::{File, root, rust_files};

const SECTION: &str = "## Files with unsafe";

/// Whether the file opens the workspace's lint against unsafe code.
fn opens_unsafe(file: &File) -> bool {
    let code = file.lexed().code.join(" ");
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    ["allow(unsafe_code", "expect(unsafe_code"].iter().any(|attribute| code.contains(attribute))
}

/// The paths in backticks that start the bullets of the section.
fn listed(document: &str) -> BTreeSet<String> {
    let section = document.lines().skip_while(|line| line.trim() != SECTION).skip(1);
    let lines = section.take_while(|line| !line.starts_with("## "));
    let path = |line: &str| Some(line.trim().strip_prefix("- `")?.split('`').next()?.to_owned());
    lines.filter_map(path).collect()
}

#[test]
fn architecture_lists_the_files_with_unsafe() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    assert!(document.lines().any(|line| line.trim() == SECTION), "no section `{SECTION}`");
    let opened: BTreeSet<String> =
        rust_files().into_iter().filter(opens_unsafe).map(|file| file.path).collect();
    let listed = listed(&document);
    let missing = opened.difference(&listed).map(|path| format!("not listed: {path}"));
    let extra = listed.difference(&opened).map(|path| format!("opens none: {path}"));
    assert_none(&missing.chain(extra).collect::<Vec<_>>(), "ARCHITECTURE.md lists what is unsafe");
}

#[test]
fn unsafe_stands_only_where_it_is_opened() {
    let mut findings = Vec::new();
    for file in rust_files() {
        let may = opens_unsafe(&file);
        if may && file.path.starts_with("apps/") {
            findings.push(format!("{}: an application opens unsafe", file.path));
        }
        let lexed = file.lexed();
        let found = lexed.words().find(|(_, word)| *word == "unsafe");
        if let (false, Some((line, _))) = (may, found) {
            findings.push(format!("{}:{line}", file.path));
        }
    }
    assert_none(&findings, "`unsafe` outside of the files that open it");
}

#[test]
fn bullets_of_the_section_are_the_list() {
    let document = "# A\n- `no.rs`\n## Files with unsafe\ntext\n- `a.rs`: why `not.rs`\n- `b.rs`\n## B\n- `c.rs`";
    assert_eq!(listed(document), BTreeSet::from(["a.rs".to_owned(), "b.rs".to_owned()]));
}
