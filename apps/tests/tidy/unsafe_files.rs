use std::collections::BTreeSet;
use std::fs;

use crate::assert_none;
use crate::repository::{File, root, rust_files};

const DOCUMENT: &str = "UNSAFE.md";

/// Returns `true` if the file opens the workspace's lint against unsafe code.
fn opens_unsafe(file: &File) -> bool {
    let code = file.lexed().code.join(" ");
    let code: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    ["allow(unsafe_code", "expect(unsafe_code"].iter().any(|attribute| code.contains(attribute))
}

/// Line of a file in the document.
#[derive(Debug, PartialEq)]
struct Entry<'d> {
    path: &'d str,
    /// Files and functions in the last column.
    tested_by: Vec<&'d str>,
}

/// Returns the lines of all tables that begin with a file.
fn entries(document: &str) -> Vec<Entry<'_>> {
    fn entry(line: &str) -> Option<Entry<'_>> {
        let cells: Vec<_> = line.trim().strip_prefix("| `")?.split('|').collect();
        let path = cells.first()?.trim().strip_suffix('`')?;
        let [.., tests, _] = &cells[..] else { return None };
        path.ends_with(".rs").then(|| Entry { path, tested_by: quoted(tests) })
    }
    document.lines().filter_map(entry).collect()
}

/// Returns the words in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns the names of all functions.
fn functions(files: &[File]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        let lexed = file.lexed();
        let words: Vec<_> = lexed.words().map(|(_, word)| word).collect();
        let named = words.windows(2).filter(|pair| pair[0] == "fn");
        names.extend(named.map(|pair| pair[1].to_owned()));
    }
    names
}

#[test]
fn the_document_lists_the_files_with_unsafe() {
    let document = fs::read_to_string(root().join(DOCUMENT)).expect(DOCUMENT);
    let opened: BTreeSet<String> =
        rust_files().into_iter().filter(opens_unsafe).map(|file| file.path).collect();
    let mut listed = BTreeSet::new();
    let mut findings = Vec::new();
    for Entry { path, .. } in entries(&document) {
        if !listed.insert(path.to_owned()) {
            findings.push(format!("listed twice: {path}"));
        }
    }
    findings.extend(opened.difference(&listed).map(|path| format!("not listed: {path}")));
    findings.extend(listed.difference(&opened).map(|path| format!("opens none: {path}")));
    assert_none(&findings, "UNSAFE.md lists the files with unsafe");
}

#[test]
fn the_tests_of_unsafe_files_exist() {
    let document = fs::read_to_string(root().join(DOCUMENT)).expect(DOCUMENT);
    let functions = functions(&rust_files());
    let exists = |name: &str| match name.contains('/') {
        true => root().join(name).exists(),
        false => functions.contains(name),
    };
    let mut findings = Vec::new();
    for Entry { path, tested_by } in entries(&document) {
        let missing = tested_by.into_iter().filter(|name| !exists(name));
        findings.extend(missing.map(|name| format!("{path}: {name}")));
    }
    assert_none(&findings, "UNSAFE.md names tests that exist");
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
fn lines_of_tables_are_the_list() {
    let document = "| file | tested by |\n|---|---|\n| `a.rs` | x | `b`, `c/d` |\n\
                    | the `e.rs` | x | `f` |\n| `g` | x | `h` |\ntext `i.rs`\n";
    assert_eq!(entries(document), [Entry { path: "a.rs", tested_by: vec!["b", "c/d"] }]);
}
