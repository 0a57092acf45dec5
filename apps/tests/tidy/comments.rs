use crate::assert_none;
use crate::lexer::Comment;
use crate::repository::rust_files;

/// Returns `true` if a line of a comment reads like disabled code. Prose may end with a semicolon,
/// so the end of a statement counts only after a call, a path or an assignment.
fn is_code(text: &str) -> bool {
    let text = text.trim();
    let bytes = text.as_bytes();
    let is_call = bytes.windows(2).any(|pair| {
        pair[1] == b'(' && (pair[0].is_ascii_alphanumeric() || b"_!>".contains(&pair[0]))
    });
    let is_statement = is_call || text.contains(" = ") || text.contains("::");
    let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
    (text.ends_with([';', '{']) && is_statement)
        || ["}", "{", "};", "})", "});"].contains(&text)
        || (begins(&["let ", "const ", "static "]) && text.contains(" = "))
        || (begins(&["fn ", "pub fn ", "pub(crate) fn ", "async fn "]) && is_call)
        || (begins(&["#[", "#!["]) && text.ends_with(']'))
        || (begins(&["use "]) && text.ends_with(';'))
}

/// Returns the lines of comments that are not inside a fenced example.
fn outside_examples(comments: &[Comment]) -> impl Iterator<Item = &Comment> {
    let mut in_example = false;
    comments.iter().filter(move |comment| {
        let is_fence = comment.is_doc && comment.text.trim_start().starts_with("```");
        in_example ^= is_fence;
        !in_example && !is_fence
    })
}

/// Words with which no documentation opens: its subject is named first.
const OPENINGS: [&str; 22] = [
    "how", "if", "it", "one", "that", "these", "they", "this", "those", "what", "when", "where",
    "whether", "which", "who", "whom", "whose", "why", "he", "its", "their", "there",
];

/// Returns `true` if a line of documentation opens with one of the words.
fn opens_badly(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '*']);
    let word = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    OPENINGS.contains(&word.to_lowercase().as_str())
}

#[test]
fn documentation_opens_with_its_subject() {
    let mut findings = Vec::new();
    for file in rust_files() {
        let comments = file.lexed().comments;
        let mut next_line = None;
        for comment in comments.iter().filter(|comment| comment.is_doc) {
            let is_first = next_line != Some(comment.line);
            next_line = Some(comment.line + 1);
            if is_first && opens_badly(&comment.text) {
                findings.push(format!("{}:{}: {}", file.path, comment.line, comment.text.trim()));
            }
        }
    }
    assert_none(&findings, "documentation that does not name its subject first");
}

#[test]
fn openings_are_words() {
    assert!(opens_badly(" Whether it runs.") && opens_badly(" **What** it is."));
    assert!(!opens_badly(" Whatever.") && !opens_badly(" Items.") && !opens_badly(""));
}

#[test]
fn no_code_is_kept_in_comments() {
    let mut findings = Vec::new();
    for file in rust_files() {
        let lexed = file.lexed();
        for comment in outside_examples(&lexed.comments).filter(|comment| is_code(&comment.text)) {
            findings.push(format!("{}:{}: {}", file.path, comment.line, comment.text.trim()));
        }
    }
    assert_none(&findings, "code in comments");
}

#[test]
fn code_is_distinguished_from_prose() {
    for code in ["let a = b;", "run(a, b);", "if ready() {", "}", "fn f(a: u8)", "#[inline]"] {
        assert!(is_code(code), "{code}");
    }
    for prose in
        ["let go of it;", "as said (see above);", "a = b", "fn items", "the `put(x)` is done.", ""]
    {
        assert!(!is_code(prose), "{prose}");
    }
}
