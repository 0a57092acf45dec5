//! Hosts files: the machines of a run, and how many of its processes each has.

use std::path::Path;

use super::Machine;
use crate::Error;
use crate::text_file;

/// Longest hosts file, in bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// Machine of a hosts file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name of the machine.
    pub name: String,
    /// Number of its processes.
    pub processes: usize,
    /// Line of the file, counted from one.
    pub line: usize,
}

/// Reads a hosts file: a machine in each line, and after a blank the number of its processes, unless
/// that is one. `#` starts a comment.
///
/// **Errors**: the file cannot be read; it names no machine, or one twice; a number of processes is
/// invalid. Errors name file and line.
pub fn read(path: &Path) -> Result<Vec<Host>, Error> {
    parse(&path.display().to_string(), &text_file::read(path, LONGEST_FILE)?)
}

fn parse(file: &str, text: &str) -> Result<Vec<Host>, Error> {
    let wrong = |line, field, value: &str, limit: String| {
        Err(Error::Field { file: file.to_owned(), line, field, value: value.to_owned(), limit })
    };
    let mut hosts: Vec<Host> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let mut fields = text.split('#').next().unwrap_or_default().split_whitespace();
        let Some(name) = fields.next() else { continue };
        let (least, most) = (*Machine::PROCESSES.start(), *Machine::PROCESSES.end());
        let number = fields.next().unwrap_or("1");
        let processes = number.parse().ok().filter(|number| Machine::PROCESSES.contains(number));
        let Some(processes) = processes else {
            return wrong(line, "processes", number, format!("{least} to {most}"));
        };
        if let Some(more) = fields.next() {
            return wrong(line, "end of the line", more, "a host and a number".into());
        }
        if let Some(before) = hosts.iter().find(|host| host.name == name) {
            let limit = format!("another host than in line {}", before.line);
            return wrong(line, "host", name, limit);
        }
        hosts.push(Host { name: name.to_owned(), processes, line });
    }
    if hosts.is_empty() {
        return Err(Error::MissingField {
            file: file.to_owned(),
            line: text.lines().count() + 1,
            field: "host",
            limit: "the name of a machine".into(),
        });
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_process_or_the_given_number() {
        let hosts = parse("hosts", "# nodes\n\nnode1 4 # the large one\n  node2\n").unwrap();
        let host = |name: &str, processes, line| Host { name: name.into(), processes, line };
        assert_eq!(hosts, [host("node1", 4, 3), host("node2", 1, 4)]);
    }

    #[test]
    fn what_is_no_hosts_file_is_named_with_its_line() {
        for (text, expected) in [
            ("", "hosts:1: host is missing at the end of the file, expected the name of a machine"),
            ("# none\n", "hosts:2: host is missing"),
            ("a\nb 0\n", "hosts:2: processes is \"0\", expected 1 to 1024"),
            ("a 1025", "hosts:1: processes is \"1025\""),
            ("a two", "hosts:1: processes is \"two\""),
            ("a 1 b", "hosts:1: end of the line is \"b\", expected a host and a number"),
            ("a\n\na 2", "hosts:3: host is \"a\", expected another host than in line 1"),
        ] {
            let error = parse("hosts", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }
}
