//! Peers in C: built on this machine when a benchmark starts, and run with a time limit.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::time::Duration;

use tempfile::TempDir;

use crate::error::Error;

/// Compiled program in a folder of its own, which is deleted with it.
#[derive(Debug)]
pub(crate) struct Program {
    folder: TempDir,
}

/// Output of a program: one name and value per line.
#[derive(Debug)]
pub(crate) struct Output {
    command: String,
    lines: Vec<(String, String)>,
}

impl Program {
    /// Compiles `source`.
    ///
    /// **Errors**: compiler not installed; source rejected by the compiler.
    pub(crate) fn compile(compiler: &str, options: &[&str], source: &str) -> Result<Self, Error> {
        let doing = "compiling a peer";
        let refused = |reason| Error::System { doing, reason };
        let folder = tempfile::tempdir().map_err(refused)?;
        let file = folder.path().join("peer.c");
        std::fs::write(&file, source).map_err(refused)?;
        let program = Program { folder };
        let mut command = Command::new(compiler);
        command.args(options).arg(&file).arg("-o").arg(program.path());
        text_of(&mut command, compiler, doing)?;
        Ok(program)
    }

    /// Returns the path of the program.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join("peer")
    }

    /// Returns the folder, for files that the program reads.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Output {
    /// Returns the lines in the order of their output.
    ///
    /// **Errors**: a value that does not parse as `T`.
    pub(crate) fn values<T: FromStr>(&self) -> Result<Vec<(&str, T)>, Error> {
        let value = |(name, value): &'_ (String, String)| value.parse().map_err(|_| name.clone());
        let parsed = self.lines.iter().map(|line| Ok((line.0.as_str(), value(line)?)));
        parsed.collect::<Result<_, String>>().map_err(|name| self.garbled(name))
    }

    /// Returns the value of the line with this name.
    ///
    /// **Errors**: no such line; a value that does not parse as `T`.
    pub(crate) fn value<T: FromStr>(&self, name: &str) -> Result<T, Error> {
        let line = self.lines.iter().find(|line| line.0 == name);
        line.and_then(|line| line.1.parse().ok()).ok_or_else(|| self.garbled(name.to_owned()))
    }

    fn garbled(&self, line: String) -> Error {
        Error::Garbled { command: self.command.clone(), line }
    }
}

/// Returns the first line of the version message of a command.
///
/// **Errors**: command not installed.
pub(crate) fn version(command: &str) -> Result<String, Error> {
    let text = text_of(Command::new(command).arg("--version"), command, "asking for a version")?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Creates a command for `program` that is killed, with its children, after `limit`.
pub(crate) fn limited(program: impl AsRef<OsStr>, limit: Duration) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=5").arg(limit.as_secs().max(1).to_string()).arg(program);
    command
}

/// Runs a command of [`limited`] and reads its output.
///
/// **Errors**: program not installed, failed or timed out; output other than `name value` lines.
pub(crate) fn run(command: &mut Command) -> Result<Output, Error> {
    let name = command.get_args().nth(2).unwrap_or_default().to_string_lossy().into_owned();
    let text = text_of(command, &name, "running a peer")?;
    let mut lines = Vec::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else {
            return Err(Error::Garbled { command: name, line: line.to_owned() });
        };
        lines.push((key.to_owned(), value.to_owned()));
    }
    Ok(Output { command: name, lines })
}

fn text_of(command: &mut Command, name: &str, doing: &'static str) -> Result<String, Error> {
    let (status, text, errors) = output_of(command).map_err(|reason| match reason.kind() {
        ErrorKind::NotFound => Error::NotInstalled { command: name.to_owned() },
        _ => Error::System { doing, reason },
    })?;
    if !status.success() {
        let (command, output) = (name.to_owned(), errors.trim().to_owned());
        return Err(Error::Failed { command, status, output });
    }
    Ok(text)
}

/// Waits for a command and reads its output. Files and not pipes: a child process that outlives a
/// killed launcher would keep pipes open.
fn output_of(command: &mut Command) -> io::Result<(ExitStatus, String, String)> {
    let (mut text, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(text.try_clone()?).stderr(errors.try_clone()?);
    let status = command.status()?;
    Ok((status, all_of(&mut text)?, all_of(&mut errors)?))
}

fn all_of(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Command {
        let mut command = limited("sh", limit);
        command.args(["-c", script]);
        command
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_missing_compiler_is_named() {
        let error = Program::compile("no-such-compiler", &[], "").unwrap_err();
        assert_eq!(error.to_string(), "no-such-compiler is not installed");
    }

    #[test]
    fn figures_are_read_by_name() {
        let output = run(&mut shell("echo a 1.5; echo b 2", LONG)).unwrap();
        assert_eq!(output.values::<f64>().unwrap(), [("a", 1.5), ("b", 2.0)]);
        assert_eq!(output.value::<u64>("b").unwrap(), 2);
        assert!(
            matches!(output.value::<u64>("c"), Err(Error::Garbled { line, .. }) if line == "c")
        );
    }

    #[test]
    fn a_failing_program_is_an_error_with_what_it_said() {
        let error = run(&mut shell("echo because >&2; exit 3", LONG)).unwrap_err();
        assert!(matches!(error, Error::Failed { output, .. } if output == "because"));
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let error = run(&mut shell("sleep 600", Duration::from_secs(1))).unwrap_err();
        assert!(matches!(error, Error::Failed { status, .. } if status.code() == Some(124)));
    }

    #[test]
    fn what_a_program_leaves_behind_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let waits = r#"setsid sh -c 'while [ -e "$0" ]; do sleep 0.1; done' "$0" &"#;
        run(shell(waits, LONG).arg(folder.path())).unwrap();
        assert!(folder.path().exists(), "what is left behind ends with the folder");
    }

    #[test]
    fn other_output_is_an_error() {
        let error = run(&mut shell("echo oops", LONG)).unwrap_err();
        assert!(matches!(error, Error::Garbled { line, .. } if line == "oops"));
    }
}
