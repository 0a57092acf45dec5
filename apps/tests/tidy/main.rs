//! House rules that neither rustfmt nor clippy can check, for the whole repository.

mod lexer;
mod repository;

mod circles;
mod comments;
mod documents;
mod layers;
mod paths;
mod sizes;
mod time;
mod tracing;
mod unsafe_files;
mod words;

/// Fails with one line for each finding.
#[track_caller]
fn assert_none(findings: &[String], rule: &str) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}
