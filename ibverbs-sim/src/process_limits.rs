//! Limits of this process that may be behind an error of the operating system.

use std::fmt::Display;

use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};

/// Returns the text of an error with the limits of this process that may be behind its number: of open files, of
/// address space, of locked memory.
pub fn with_process_limits(error: impl Display, number: Option<i32>) -> String {
    let all = match number.map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => limit(Resource::Nofile, 1, "open files", "-n"),
        Some(Errno::NOMEM) => [
            limit(Resource::As, 1024, "kB of address space", "-v"),
            limit(Resource::Memlock, 1024, "kB of locked memory", "-l"),
        ]
        .concat(),
        _ => Vec::new(),
    };
    if all.is_empty() {
        return error.to_string();
    }
    format!("{error}; limits of this process: {}", all.join(", "))
}

/// Returns the text of a limit, if there is one.
fn limit(resource: Resource, unit: u64, what: &str, option: &str) -> Vec<String> {
    let limit = getrlimit(resource).current;
    limit.into_iter().map(|limit| format!("{} {what} (ulimit {option})", limit / unit)).collect()
}

#[cfg(all(test, not(talpf_loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_errors_about_limits_name_them() {
        let text = |errno: Errno| with_process_limits("refused", Some(errno.raw_os_error()));
        let files = getrlimit(Resource::Nofile).current.expect("files are limited");
        let limits = format!("refused; limits of this process: {files} open files (ulimit -n)");
        assert_eq!(text(Errno::MFILE), limits);
        assert_eq!(text(Errno::CONNREFUSED), "refused");
        assert_eq!(with_process_limits("refused", None), "refused");
    }
}
