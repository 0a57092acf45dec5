use crate::assert_none;
use crate::repository::files;

/// Folders that exist on one developer's machine only.
const PRIVATE_FOLDERS: [&str; 3] = ["home", "root", "work"];

/// Only registry that packages may come from.
const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Returns `true` if `text` has an absolute path that begins with `folder`.
fn names_folder(text: &str, folder: &str) -> bool {
    let needle = format!("/{folder}/");
    text.match_indices(&needle).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/~$}".contains(c))
    })
}

#[test]
fn no_file_names_a_folder_of_a_build_machine() {
    let mut findings = Vec::new();
    for file in files() {
        for (index, line) in file.text.lines().enumerate() {
            if PRIVATE_FOLDERS.iter().any(|folder| names_folder(line, folder)) {
                findings.push(format!("{}:{}: {}", file.path, index + 1, line.trim()));
            }
        }
    }
    assert_none(&findings, "paths of a build machine");
}

#[test]
fn packages_come_from_the_public_index_only() {
    let mut findings = Vec::new();
    for file in files() {
        let is_setting = file.path.ends_with(".toml");
        for (index, line) in file.text.lines().enumerate() {
            let source = line.trim().strip_prefix("source = \"").unwrap_or_default();
            let is_foreign = file.path == "Cargo.lock"
                && !source.is_empty()
                && source.trim_end_matches('"') != INDEX;
            let is_replaced = is_setting
                && ["replace-with", "registry =", "index ="].iter().any(|key| line.contains(key));
            if is_foreign || is_replaced {
                findings.push(format!("{}:{}: {}", file.path, index + 1, line.trim()));
            }
        }
    }
    assert_none(&findings, "packages from elsewhere");
}

#[test]
fn absolute_paths_are_distinguished_from_relative_ones() {
    for folder in PRIVATE_FOLDERS {
        assert!(names_folder(&format!("see /{folder}/x"), folder));
        assert!(!names_folder(&format!("see target/{folder}/x"), folder));
    }
}
