use crate::assert_none;
use crate::repository::rust_files;

const LONG: usize = 400;
const TOO_LONG: usize = 600;

#[test]
fn files_are_short_or_say_why_not() {
    let mut findings = Vec::new();
    for file in rust_files() {
        let lines = file.text.lines().count();
        let mut head = file.text.lines().take_while(|line| line.starts_with("//!"));
        if lines > TOO_LONG {
            findings.push(format!("{}: {lines} lines, at most {TOO_LONG}", file.path));
        } else if lines > LONG && !head.any(|line| line.contains("over 400 lines")) {
            findings.push(format!("{}: {lines} lines", file.path));
        }
    }
    assert_none(&findings, "a file over 400 lines says `over 400 lines` and why in its head");
}
