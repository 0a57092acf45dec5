//! Text of others on one line of a trace.

/// Formats text for one line of a trace, without a character that Paraver would take for the start
/// of a comment.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '#' { '_' } else { c }).collect()
}
