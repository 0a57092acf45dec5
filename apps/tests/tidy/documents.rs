use std::path::Path;

use crate::assert_none;
use crate::repository::{files, root};

/// Returns the targets of the links in a document, outside of fenced code.
fn links(document: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in document.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        let targets = line.split("](").skip(1);
        found.extend(targets.filter_map(|rest| rest.split([')', ' ', '#']).next()));
    }
    found
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut findings = Vec::new();
    for file in files().into_iter().filter(|file| file.path.ends_with(".md")) {
        let folder = root().join(&file.path);
        let folder = folder.parent().unwrap_or(Path::new("."));
        for link in links(&file.text) {
            let is_relative = !link.contains(':') && !link.is_empty();
            if is_relative && !folder.join(link).exists() {
                findings.push(format!("{}: {link}", file.path));
            }
        }
    }
    assert_none(&findings, "links to nowhere");
}

#[test]
fn links_are_found_in_prose_only() {
    let document =
        "[a](a.md#part) and ![b](pictures/b.png \"title\")\n```\n[c](c.md)\n```\n[d](#d)";
    assert_eq!(links(document), ["a.md", "pictures/b.png", ""]);
}
