//! Begin of a trace on the clock of its run, in a comment.

/// Text before the begin of a trace on the clock of its run.
const BEGINS: &str = "begins at ";

/// Returns the begin that a comment states, in nanoseconds.
pub(super) fn begin_of(comment: &[u8]) -> Option<u64> {
    let text = str::from_utf8(comment).ok()?.strip_prefix(BEGINS)?;
    text.strip_suffix(" ns of the run")?.parse().ok()
}

/// Returns the comment that states the begin of a trace.
pub(super) fn begin_comment(begin_ns: u64) -> String {
    format!("{BEGINS}{begin_ns} ns of the run")
}
