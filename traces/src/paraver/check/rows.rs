//! Check of the `.row` file: the number of names of each level, as announced and as in the header. The names of
//! threads are kept.

use super::fields::shown;
use super::lines::Lines;
use super::objects::Objects;
use super::report::Log;
use super::rule::Rule;
use crate::error::Result;

/// Level whose names are being read.
struct Level {
    line: u64,
    announced: u64,
    listed: u64,
    is_of_threads: bool,
}

/// Reads a whole `.row` file; `objects` are those of the header, if usable. Returns the names of its threads, as
/// many as the header has.
pub(super) fn read(
    lines: &mut Lines,
    objects: Option<&Objects>,
    log: &mut Log<'_>,
) -> Result<Vec<String>> {
    let mut level: Option<Level> = None;
    let mut threads = Vec::new();
    let most = objects.map_or(0, Objects::threads);
    while let Some((number, line)) = lines.next(log)? {
        if line.starts_with(b"LEVEL ") {
            level.take().inspect(|level| level.finish(log));
            level = open(line, number, objects, log);
        } else if let Some(level) = &mut level {
            level.name(line, number, log);
            if level.is_of_threads && level.listed <= most {
                threads.push(shown(line.trim_ascii()));
            }
        } else if !line.trim_ascii().is_empty() && log.report.breaches(Rule::RowLevel) == 0 {
            log.add(Rule::RowLevel, number, format_args!("`{}` belongs to no level", shown(line)));
        }
    }
    level.inspect(|level| level.finish(log));
    Ok(threads)
}

/// Reads `LEVEL name SIZE count`.
fn open(line: &[u8], number: u64, objects: Option<&Objects>, log: &mut Log<'_>) -> Option<Level> {
    let text = String::from_utf8_lossy(line);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let (name, announced) = match words[..] {
        ["LEVEL", name, "SIZE", count] => (name, count.parse().ok()),
        _ => ("", None),
    };
    let known = ["WORKLOAD", "APPL", "TASK", "THREAD", "SYSTEM", "NODE", "CPU"].contains(&name);
    let Some(announced) = announced.filter(|_| known) else {
        log.add(Rule::RowLevel, number, format_args!("`{}` is not a level", shown(line)));
        return None;
    };
    if let Some(declared) = objects.and_then(|objects| declared(name, objects))
        && declared != announced
    {
        let text = format_args!("level {name} has {announced} names, the header {declared}");
        log.add(Rule::RowSize, number, text);
    }
    Some(Level { line: number, announced, listed: 0, is_of_threads: name == "THREAD" })
}

/// Returns the number of objects of a level, if the header has it.
fn declared(level: &str, objects: &Objects) -> Option<u64> {
    match level {
        "APPL" => Some(objects.applications()),
        "TASK" => Some(objects.tasks()),
        "THREAD" => Some(objects.threads()),
        "NODE" => Some(objects.nodes()).filter(|nodes| *nodes > 0),
        "CPU" => Some(objects.cpus()).filter(|cpus| *cpus > 0),
        _ => None,
    }
}

impl Level {
    fn name(&mut self, line: &[u8], number: u64, log: &mut Log<'_>) {
        let blank = line.trim_ascii().is_empty();
        if self.listed < self.announced {
            self.listed += 1;
            if blank {
                log.add(Rule::BlankRowName, number, "a blank line counts as a name");
            }
        } else if !blank {
            self.listed += 1;
            if self.listed == self.announced + 1 {
                let text = format_args!("more names than the {} announced", self.announced);
                log.add(Rule::RowCount, number, text);
            }
        }
    }

    fn finish(&self, log: &mut Log<'_>) {
        let &Self { line, announced, listed, .. } = self;
        if listed < announced {
            let text = format_args!("{announced} names are announced, {listed} are listed");
            log.add(Rule::RowCount, line, text);
        }
    }
}
