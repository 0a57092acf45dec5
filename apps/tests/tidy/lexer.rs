//! Lexer that separates the code and the comments of Rust sources, as far as a style check needs
//! it.

/// Parts of a source file.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    /// Source, line by line, with blanks for comments and for the content of literals.
    pub(crate) code: Vec<String>,
    /// All lines of all comments.
    pub(crate) comments: Vec<Comment>,
}

/// Line of a comment.
#[derive(Debug, PartialEq)]
pub(crate) struct Comment {
    /// Line in the file, counted from one.
    pub(crate) line: usize,
    /// Text without the comment marks.
    pub(crate) text: String,
    /// `true` for documentation (`///`, `//!`, `/**`, `/*!`).
    pub(crate) is_doc: bool,
}

impl Lexed {
    /// Returns the words of the code with their lines; `_` and digits belong to a word.
    pub(crate) fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().flat_map(|(index, line)| {
            let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            words.filter(|word| !word.is_empty()).map(move |word| (index + 1, word))
        })
    }
}

/// Separates `source`. Knows comments (nested ones too), strings, raw strings and characters.
pub(crate) fn lex(source: &str) -> Lexed {
    let mut code = String::new();
    let mut comments = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let before = code.chars().next_back();
        let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let (length, is_comment) = match first {
            _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), true),
            _ if rest.starts_with("/*") => (block_comment(rest), true),
            '"' => (string(rest), false),
            '\'' => (character(rest), false),
            'r' | 'b' | 'c' if !in_word => (prefixed_literal(rest), false),
            _ => (0, false),
        };
        if is_comment {
            comments.extend(comment_lines(&rest[..length], line));
        }
        let taken = if length == 0 { first.len_utf8() } else { length };
        for c in rest[..taken].chars() {
            code.push(if length == 0 || c == '\n' { c } else { ' ' });
            line += usize::from(c == '\n');
        }
        rest = &rest[taken..];
    }
    Lexed { code: code.lines().map(str::to_owned).collect(), comments }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of a character literal, 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[3..].find('\'').map_or(rest.len(), |at| at + 4),
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

/// Returns the length of `b"..."`, `b'.'`, `r"..."`, `br#"..."#` and similar literals, 0 for a
/// word.
fn prefixed_literal(rest: &str) -> usize {
    let prefix = rest.len() - rest.trim_start_matches(['b', 'c', 'r']).len();
    let after = &rest[prefix..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    if !after[hashes..].starts_with('"') {
        return if hashes == 0 && after.starts_with('\'') { prefix + character(after) } else { 0 };
    }
    if !rest[..prefix].contains('r') {
        return if hashes == 0 { prefix + string(after) } else { 0 };
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = prefix + hashes + 1;
    rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
}

fn comment_lines(comment: &str, first_line: usize) -> Vec<Comment> {
    let is_doc = ["///", "//!", "/**", "/*!"].iter().any(|mark| comment.starts_with(mark));
    let line = |(index, text): (usize, &str)| Comment {
        line: first_line + index,
        text: text.trim().trim_start_matches(['/', '*', '!']).trim_end_matches("*/").to_owned(),
        is_doc,
    };
    comment.lines().enumerate().map(line).collect()
}

#[test]
fn literals_and_comments_are_no_code() {
    let source = r##"
let a = "x // \" y"; // first 'quote
let b = br#"raw " text"#; /* second /* nested */ still
third */ let c = ['"', '\'', b'\\', 'd'];
fn d<'a>(r: &'a str, r#type: u8) {}
/// doc
"##;
    let lexed = lex(source);
    let words: Vec<_> = lexed.words().map(|(_, word)| word).collect();
    let expected =
        ["let", "a", "let", "b", "let", "c", "fn", "d", "a", "r", "a", "str", "r", "type", "u8"];
    assert_eq!(words, expected);
    let comments: Vec<_> =
        lexed.comments.iter().map(|c| (c.line, c.text.trim(), c.is_doc)).collect();
    let expected = [
        (2, "first 'quote", false),
        (3, "second /* nested */ still", false),
        (4, "third", false),
        (6, "doc", true),
    ];
    assert_eq!(comments, expected);
}
