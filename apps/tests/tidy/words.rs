use crate::assert_none;
use crate::repository::{File, rust_files};

/// Words that the sources of a crate must not use. Tests may: they play the caller.
const FORBIDDEN: [(&str, &[&str]); 2] = [
    ("ibverbs-sim/src/", &["task", "tasks", "rank", "ranks", "superstep", "supersteps"]),
    ("runtime/src/", &["message", "messages", "queue pair", "queue pairs", "rank", "ranks"]),
];

/// Phrases in which such a word has another meaning: the standard library's module of futures, and
/// the text of a panic.
const ALLOWED: [&str; 4] = ["std::task", "core::task", "panic message", "panic's message"];

/// Returns code and comments of a file, line by line.
fn lines(file: &File) -> Vec<(usize, String)> {
    let lexed = file.lexed();
    let code = lexed.code.into_iter().enumerate().map(|(index, text)| (index + 1, text));
    code.chain(lexed.comments.into_iter().map(|comment| (comment.line, comment.text))).collect()
}

/// Splits a line into its words in lower case between single blanks: `TaskId` and `task_id` both
/// become ` task id `.
fn split_words(text: &str) -> String {
    let mut words = String::from(" ");
    let mut was_small = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_small) {
            words.push(' ');
        }
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase() || c.is_numeric();
    }
    words.push(' ');
    words
}

#[test]
fn crates_do_not_speak_of_what_they_must_not_know() {
    let mut findings = Vec::new();
    for file in rust_files() {
        let rules = FORBIDDEN.iter().filter(|(folder, _)| file.path.starts_with(folder));
        for word in rules.flat_map(|(_, words)| *words) {
            for (line, text) in lines(&file) {
                let text = ALLOWED.iter().fold(text, |text, allowed| text.replace(allowed, ""));
                if split_words(&text).contains(&format!(" {word} ")) {
                    findings.push(format!("{}:{line}: {word}", file.path));
                }
            }
        }
    }
    assert_none(&findings, "words that a crate must not know");
}

#[test]
fn unfinished_work_is_not_left_behind() {
    let mut findings = Vec::new();
    for file in rust_files() {
        let lexed = file.lexed();
        for (index, text) in lexed.code.iter().enumerate() {
            for name in ["todo!", "unimplemented!", "dbg!"] {
                if text.contains(name) {
                    findings.push(format!("{}:{}: {name}", file.path, index + 1));
                }
            }
        }
        for comment in &lexed.comments {
            let mut words = comment.text.split(|c: char| !c.is_alphanumeric());
            if words.any(|word| ["TODO", "FIXME", "XXX"].contains(&word)) {
                findings.push(format!("{}:{}: {}", file.path, comment.line, comment.text));
            }
        }
    }
    assert_none(&findings, "unfinished work");
}

#[test]
fn words_are_found_inside_names() {
    assert_eq!(split_words("TaskId::new(task_id2)").trim(), "task id  new task id2");
    assert!(!split_words("multitasking").contains(" task "));
}
