//! Files of the repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lexer::{Lexed, lex};

/// Text file.
pub(crate) struct File {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    pub(crate) fn lexed(&self) -> Lexed {
        lex(&self.text)
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns all text files that git tracks or would track; without git, all outside of build
/// folders.
pub(crate) fn files() -> Vec<File> {
    let root = root();
    let mut paths = tracked(&root).unwrap_or_else(|| {
        let mut found = Vec::new();
        walk(&root, "", &mut found);
        found
    });
    paths.sort();
    assert!(paths.iter().any(|path| path == "apps/src/lib.rs"), "this is not the repository");
    let read = |path: String| {
        // Tracked files may be deleted, and files that are not text have no style.
        let text = fs::read_to_string(root.join(&path)).ok()?;
        Some(File { path, text })
    };
    paths.into_iter().filter_map(read).collect()
}

pub(crate) fn rust_files() -> Vec<File> {
    files().into_iter().filter(File::is_rust).collect()
}

fn tracked(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success() && !output.stdout.is_empty())?;
    let names = String::from_utf8(output.stdout).ok()?;
    Some(names.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path, folder: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}{name}");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && name != "target" && name != ".git" => {
                walk(root, &format!("{path}/"), found);
            }
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}
