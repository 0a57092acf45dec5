use std::path::{Component, Path, PathBuf};

use crate::assert_none;
use crate::repository::{File, files, root};

/// Chapters of the guide.
const CHAPTERS: &str = "guide/src/";

/// A link of a document.
#[derive(Debug, PartialEq, Eq)]
struct Link<'a> {
    /// The file or folder, from that of the document; empty for the document itself.
    target: &'a str,
    /// The part of the document after `#`.
    anchor: Option<&'a str>,
}

impl<'a> Link<'a> {
    fn new(text: &'a str) -> Self {
        match text.split_once('#') {
            Some((target, anchor)) => Link { target, anchor: Some(anchor) },
            None => Link { target: text, anchor: None },
        }
    }
}

/// Returns the lines of a document outside of fenced code.
fn prose(document: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    document.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Returns the links in a document that are not to other sites, outside of fenced code.
fn links(document: &str) -> Vec<Link<'_>> {
    let targets = prose(document).flat_map(|line| line.split("](").skip(1));
    let targets = targets.filter_map(|rest| rest.split([')', ' ']).next());
    targets.map(Link::new).filter(|link| !link.target.contains(':')).collect()
}

/// Returns the anchors of the headings of a document, as GitHub and mdBook make them.
fn anchors(document: &str) -> Vec<String> {
    let headings = prose(document).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

fn documents() -> Vec<File> {
    files().into_iter().filter(|file| file.path.ends_with(".md")).collect()
}

/// Returns the path from the root that a link in `document` leads to.
fn resolve(document: &File, link: &Link<'_>) -> PathBuf {
    if link.target.is_empty() {
        return PathBuf::from(&document.path);
    }
    let folder = Path::new(&document.path).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(link.target).components() {
        match part {
            Component::ParentDir if path.pop() => {}
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_relative_link_leads_somewhere() {
    let documents = documents();
    let mut findings = Vec::new();
    for document in &documents {
        for link in links(&document.text) {
            let path = resolve(document, &link);
            let target = documents.iter().find(|target| Path::new(&target.path) == path);
            let has_anchor = |anchor: &str| {
                target.is_some_and(|target| anchors(&target.text).iter().any(|a| a == anchor))
            };
            if !root().join(&path).exists() || !link.anchor.is_none_or(has_anchor) {
                findings.push(format!("{}: {link:?}", document.path));
            }
        }
    }
    assert_none(&findings, "links to nowhere");
}

#[test]
fn paths_in_the_instructions_for_contributors_exist() {
    let mut findings = Vec::new();
    for document in documents().into_iter().filter(|file| file.path == "CONTRIBUTING.md") {
        for line in prose(&document.text) {
            let spans = line.split('`').skip(1).step_by(2);
            let paths = spans.filter(|span| span.contains('/') && !span.contains([' ', '(']));
            let missing = paths.filter(|path| !root().join(path).exists());
            findings.extend(missing.filter(|path| !path.starts_with("target/")).map(str::to_owned));
        }
    }
    assert_none(&findings, "paths to nowhere");
}

#[test]
fn chapters_link_documents_of_the_book_only() {
    let mut findings = Vec::new();
    for document in documents().into_iter().filter(|file| file.path.starts_with(CHAPTERS)) {
        for link in links(&document.text) {
            let is_inside = resolve(&document, &link).starts_with(CHAPTERS);
            if link.target.ends_with(".md") && !is_inside {
                findings.push(format!("{}: {}", document.path, link.target));
            }
        }
    }
    assert_none(&findings, "mdBook takes these for chapters: link the folder");
}

#[test]
fn every_chapter_is_in_the_book_and_among_its_tests() {
    let files = files();
    let text = |path: &str| {
        files.iter().find(|file| file.path == path).map(|file| file.text.as_str()).expect(path)
    };
    let contents = links(text("guide/src/SUMMARY.md"));
    let tests = text("guide/lib.rs");
    let mut findings = Vec::new();
    for name in files.iter().filter_map(|file| file.path.strip_prefix(CHAPTERS)) {
        let is_listed = contents.iter().any(|link| link.target == name);
        let is_tested = tests.contains(&format!("\"src/{name}\""));
        if name != "SUMMARY.md" && !(is_listed && is_tested) {
            findings.push(name.to_owned());
        }
    }
    assert_none(&findings, "chapters that are not in SUMMARY.md and lib.rs");
}

#[test]
fn links_are_found_in_prose_only() {
    let document = "[a](a.md#part) and ![b](pictures/b.png \"title\"), [e](https://e.org/e)\n\
                    ```\n[c](c.md)\n```\n[d](#d)";
    let link = |target, anchor| Link { target, anchor };
    let expected = [link("a.md", Some("part")), link("pictures/b.png", None), link("", Some("d"))];
    assert_eq!(links(document), expected);
}

#[test]
fn headings_have_anchors() {
    let document = "# A first program\n```\n# no heading\n```\n## `put`, modes_2\n";
    assert_eq!(anchors(document), ["a-first-program", "put-modes_2"]);
}
