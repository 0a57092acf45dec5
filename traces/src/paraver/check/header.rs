//! Check of the first line of a trace: duration and objects.

use super::fields::shown;
use super::objects::{Objects, Task};
use super::report::Log;
use super::rule::Rule;
use crate::paraver::{EXACT_LIMIT, OBJECT_LIMIT};

/// Contents of the header.
#[derive(Debug)]
pub(super) struct Header {
    /// Date of the run, as any text.
    pub(super) started: String,
    pub(super) duration: u64,
    /// Nanoseconds of a unit of all times.
    pub(super) unit_ns: u64,
    pub(super) objects: Objects,
    /// Text of the objects and of the number of communicators.
    pub(super) objects_text: String,
    /// Number of communicator lines announced.
    pub(super) communicators: u64,
}

impl Header {
    /// Converts a time of the trace to nanoseconds.
    pub(super) fn to_ns(&self, time: u64) -> u64 {
        time.saturating_mul(self.unit_ns)
    }
}

/// Reason why the rest of the header cannot be read.
type Fault = (Rule, String);

/// Reads the header, and reports its errors. Returns `None` if the records cannot be checked
/// without the damaged part.
pub(super) fn read(line: &[u8], log: &mut Log<'_>) -> Option<Header> {
    match parse(line, log) {
        Ok(header) => Some(header),
        Err((rule, text)) => {
            log.add(rule, 1, text);
            None
        }
    }
}

fn parse(line: &[u8], log: &mut Log<'_>) -> Result<Header, Fault> {
    let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    if word != b"#Paraver" {
        let text = format!("the first word is `{}`, not `#Paraver`", shown(word));
        return Err((Rule::NotParaver, text));
    }
    let mut cursor = Cursor { rest: &line[word.len()..] };
    cursor.expect(b" (", "the date in parentheses")?;
    let date = cursor.rest.windows(2).position(|pair| pair == b"):");
    let date = date.ok_or_else(|| cursor.wrong("the end of the date, `):`"))?;
    let started = String::from_utf8_lossy(&cursor.rest[..date]).into_owned();
    cursor.rest = &cursor.rest[date + 2..];

    let duration = cursor.number("the duration")?;
    let (unit, unit_ns) = unit(cursor.until(b':'), log);
    log.report.counts.unit = unit;
    log.report.counts.duration = duration;
    if duration > EXACT_LIMIT {
        let text = format_args!("the duration {duration} exceeds {EXACT_LIMIT}");
        log.add(Rule::ImpreciseTime, 1, text);
    }
    cursor.expect(b":", "`:` after the duration")?;
    let objects_text = String::from_utf8_lossy(cursor.rest).into_owned();
    let node_cpus = cursor.resources()?;
    cursor.expect(b":", "`:` after the nodes")?;
    let application_count = cursor.number("the number of applications")?;
    cursor.expect(b":", "`:` after the number of applications")?;
    let mut applications = Vec::new();
    for _ in 0..application_count {
        if !applications.is_empty() {
            cursor.skip();
        }
        applications.push(cursor.tasks(node_cpus.len(), log)?);
    }
    let communicators = if cursor.rest.is_empty() {
        0
    } else {
        cursor.expect(b",", "`,` before the number of communicators")?;
        cursor.number("the number of communicators")?
    };
    if !cursor.rest.is_empty() {
        return Err(cursor.wrong("the end of the line"));
    }
    let objects = Objects::new(node_cpus, applications);
    check_limits(&objects)?;
    Ok(Header { started, duration, unit_ns, objects, objects_text, communicators })
}

/// Returns the name of the unit with `suffix`, and its length in nanoseconds.
fn unit(suffix: &[u8], log: &mut Log<'_>) -> (&'static str, u64) {
    match suffix {
        b"_ns" => ("ns", 1),
        b"_us" => ("us", 1_000),
        b"_ms" => ("ms", 1_000_000),
        b"" => {
            log.add(Rule::MissingTimeUnit, 1, "the duration has no unit: it counts as us");
            ("us", 1_000)
        }
        _ => {
            let text = format_args!("the unit `{}` is not _ns, _us or _ms", shown(suffix));
            log.add(Rule::UnknownTimeUnit, 1, text);
            ("us", 1_000)
        }
    }
}

fn check_limits(objects: &Objects) -> Result<(), Fault> {
    let counts =
        [("threads", objects.threads()), ("tasks", objects.tasks()), ("cpus", objects.cpus())];
    match counts.into_iter().find(|(_, count)| *count > OBJECT_LIMIT) {
        Some((what, count)) => {
            Err((Rule::TooManyObjects, format!("{count} {what}; Paraver takes {OBJECT_LIMIT}")))
        }
        None if objects.threads() == 0 => {
            Err((Rule::HeaderForm, "the header declares no threads".to_owned()))
        }
        None => Ok(()),
    }
}

/// Rest of the line.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn wrong(&self, expected: &str) -> Fault {
        (Rule::HeaderForm, format!("expected {expected} at `{}`", shown(self.rest)))
    }

    fn expect(&mut self, text: &[u8], what: &str) -> Result<(), Fault> {
        self.rest = self.rest.strip_prefix(text).ok_or_else(|| self.wrong(what))?;
        Ok(())
    }

    fn accept(&mut self, byte: u8) -> bool {
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip(&mut self) {
        self.rest = self.rest.split_first().map_or(self.rest, |(_, rest)| rest);
    }

    fn until(&mut self, end: u8) -> &'a [u8] {
        let length = self.rest.iter().position(|byte| *byte == end).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        text
    }

    fn number(&mut self, what: &str) -> Result<u64, Fault> {
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(length);
        let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i64>().ok());
        let number = number.ok_or_else(|| self.wrong(what))?;
        self.rest = rest;
        Ok(number.unsigned_abs())
    }

    /// Reads `0`, `n`, or `n(cpus,cpus,...)`: the cpus of each node.
    fn resources(&mut self) -> Result<Vec<u64>, Fault> {
        let count = self.number("the number of nodes")?;
        if !self.accept(b'(') {
            // Without a list every node has one cpu.
            if count > OBJECT_LIMIT {
                let text = format!("{count} cpus; Paraver takes {OBJECT_LIMIT}");
                return Err((Rule::TooManyObjects, text));
            }
            return Ok(vec![1; count as usize]);
        }
        let nodes = self.list(|cursor| cursor.number("the cpus of a node"))?;
        self.check_count("nodes", count, nodes.len())?;
        Ok(nodes)
    }

    /// Reads `n(threads:node,threads:node,...)`: the tasks of an application.
    fn tasks(&mut self, nodes: usize, log: &mut Log<'_>) -> Result<Vec<Task>, Fault> {
        let count = self.number("the number of tasks")?;
        self.expect(b"(", "`(` before the threads of the first task")?;
        let tasks = self.list(|cursor| {
            let threads = cursor.number("the threads of a task")?;
            cursor.expect(b":", "`:` before the node of a task")?;
            let node = cursor.number("the node of a task")?;
            if nodes > 0 && !(1..=nodes as u64).contains(&node) {
                let text = format_args!("a task is on node {node}; nodes are 1 to {nodes}");
                log.add(Rule::NodeOutOfRange, 1, text);
            }
            Ok(Task { threads, node, first_thread: 0 })
        })?;
        self.check_count("tasks", count, tasks.len())?;
        Ok(tasks)
    }

    /// Reads items between commas up to the closing parenthesis.
    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut items = vec![item(self)?];
        while self.accept(b',') {
            items.push(item(self)?);
        }
        self.expect(b")", "`,` or `)`")?;
        Ok(items)
    }

    fn check_count(&self, what: &str, announced: u64, listed: usize) -> Result<(), Fault> {
        if announced == listed as u64 {
            return Ok(());
        }
        Err((Rule::HeaderForm, format!("{announced} {what} are announced, {listed} are listed")))
    }
}
