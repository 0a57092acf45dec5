use std::fs;

use crate::assert_none;
use crate::repository::{File, root, rust_files};

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
                let text = without(text, &ALLOWED);
                if split_words(&text).contains(&format!(" {word} ")) {
                    findings.push(format!("{}:{line}: {word}", file.path));
                }
            }
        }
    }
    assert_none(&findings, "words that a crate must not know");
}

/// Keywords before the name of a type.
const DECLARATIONS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Returns `text` without the `names`.
fn without(text: String, names: &[&str]) -> String {
    names.iter().fold(text, |text, name| text.replace(name, ""))
}

/// Words that the glossary refuses.
#[derive(Debug, Default, PartialEq)]
struct Refused {
    /// Lower case: part of no identifier, comment or file name.
    words: Vec<String>,
    /// Capitalised: names that no type has.
    types: Vec<String>,
}

impl Refused {
    /// Reads the last column of the tables of a glossary.
    fn of(glossary: &str) -> Self {
        let mut refused = Refused::default();
        for row in glossary.lines().filter(|line| line.starts_with("| ")) {
            let column = row.trim_end_matches('|').rsplit('|').next().unwrap_or("");
            for word in column.split('`').skip(1).step_by(2).map(str::to_owned) {
                let is_type = word.starts_with(char::is_uppercase);
                if is_type { &mut refused.types } else { &mut refused.words }.push(word);
            }
        }
        refused
    }

    /// Finds the first refused word of a line of code or of a comment.
    fn find(&self, text: &str) -> Option<&str> {
        let words = split_words(text);
        let has_word = |word: &&String| words.contains(&format!(" {word} "));
        let mut names = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let keyword = names.find(|name| DECLARATIONS.contains(name));
        let declared = keyword.and_then(|_| names.find(|name| !name.is_empty()));
        let is_declared = |name: &&String| declared == Some(name.as_str());
        let found = self.words.iter().find(has_word);
        found.or_else(|| self.types.iter().find(is_declared)).map(String::as_str)
    }
}

/// Lines in which a refused word is a name of somebody else: a keyword of Paraver.
const FOREIGN: [&str; 1] = ["LOOK_BACK"];

#[test]
fn the_glossary_is_kept_to() {
    let glossary = fs::read_to_string(root().join("GLOSSARY.md")).expect("a glossary");
    let refused = Refused::of(&glossary);
    assert!(refused.words.len() > 40 && !refused.types.is_empty(), "{refused:?}");
    let mut findings = Vec::new();
    for file in rust_files() {
        let path = file.path.clone();
        for (line, text) in [(0, path)].into_iter().chain(lines(&file)) {
            let text = without(text, &FOREIGN);
            if let Some(word) = refused.find(&text) {
                findings.push(format!("{}:{line}: {word}", file.path));
            }
        }
    }
    assert_none(&findings, "words that GLOSSARY.md refuses");
}

#[test]
fn refused_words_are_found_in_names_and_declarations() {
    let refused = Refused::of("| term | meaning | source | not |\n| a | b | c | `kick` `Node` |");
    assert_eq!(refused, Refused { words: vec!["kick".into()], types: vec!["Node".into()] });
    for bad in ["fn kick_port()", "KickPort", "a kick", "pub struct Node {", "enum Node"] {
        assert!(refused.find(bad).is_some(), "{bad}");
    }
    for good in ["kicker", "graph::Node", "struct NodeCount", "a node"] {
        assert!(refused.find(good).is_none(), "{good}");
    }
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
