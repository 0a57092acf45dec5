use crate::assert_none;
use crate::repository::rust_files;

const LONG: usize = 400;
const TOO_LONG: usize = 600;

#[test]
fn files_are_short_or_say_why_not() {
    let mut findings = Vec::new();
    for file in rust_files() {
        let lines = file.text.lines().filter(|line| is_code(line)).count();
        let mut head = file.text.lines().take_while(|line| line.starts_with("//!"));
        if lines > TOO_LONG {
            findings.push(format!("{}: {lines} lines of code, at most {TOO_LONG}", file.path));
        } else if lines > LONG && !head.any(|line| line.contains("over 400 lines")) {
            findings.push(format!("{}: {lines} lines of code", file.path));
        }
    }
    assert_none(
        &findings,
        "a file of over 400 lines of code says `over 400 lines` and why in its head",
    );
}

/// Returns whether a line is neither blank nor a comment: documentation does not compete with code.
fn is_code(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with("//")
}
