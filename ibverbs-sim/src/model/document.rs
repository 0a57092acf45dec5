//! Texts of a link model, taken apart into keys and values with their lines.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::LinkModelError;

/// A key with its value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Name of the key, behind the name of its table and a point.
    pub(super) key: String,
    pub(super) value: String,
    pub(super) line: Option<usize>,
}

/// The keys of a link model: those of the link itself, and those of each exceptional route.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) link: Vec<Entry>,
    pub(super) routes: Vec<Vec<Entry>>,
}

/// Name of the table of a profile that describes links, and of the list of routes in it.
const LINK: &str = "link";
const ROUTE: &str = "route";

/// Reads a list of `key=value`, separated by commas. Returns the text before it, if that has no
/// value.
pub(super) fn read_list(text: &str) -> Result<(Option<&str>, Entries), LinkModelError> {
    let (mut name, mut entries) = (None, Entries::default());
    for (index, part) in text.split(',').enumerate() {
        match part.split_once('=') {
            Some((key, value)) => {
                let [key, value] = [key, value].map(|text| text.trim().to_owned());
                entries.link.push(Entry { key, value, line: None });
            }
            None if index == 0 && !part.trim().is_empty() => name = Some(part.trim()),
            None => {
                let reason = format!("{:?}: give key=value, separated by commas", part.trim());
                return Err(LinkModelError::Syntax { line: None, reason });
            }
        }
    }
    Ok((name, entries))
}

/// Reads the table of links of a document in TOML.
pub(super) fn read_document(text: &str) -> Result<Entries, LinkModelError> {
    let line = |at: usize| Some(text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1);
    let document = DeTable::parse(text).map_err(|error| LinkModelError::Syntax {
        line: line(error.span().map_or(0, |span| span.start)),
        reason: error.message().replace('\n', ", "),
    })?;
    let table = |key: &str, value: &Spanned<DeValue<'_>>| LinkModelError::BadValue {
        line: line(value.span().start),
        key: key.to_owned(),
        value: written(value.get_ref()),
        expected: "a table".to_owned(),
    };
    let mut entries = Entries::default();
    let Some((_, link)) = document.get_ref().iter().find(|(key, _)| key.get_ref() == LINK) else {
        return Ok(entries);
    };
    let link = link.get_ref().as_table().ok_or_else(|| table(LINK, link))?;
    for (key, value) in link {
        let name = key.get_ref();
        match value.get_ref() {
            DeValue::Array(routes) if name == ROUTE => {
                for route in routes.iter() {
                    let route =
                        route.get_ref().as_table().ok_or_else(|| table("link.route", route))?;
                    let mut read = Vec::new();
                    flatten("", route, &line, &mut read);
                    entries.routes.push(read);
                }
            }
            _ => flatten_one("", key, value, &line, &mut entries.link),
        }
    }
    Ok(entries)
}

fn flatten(
    before: &str,
    table: &DeTable<'_>,
    line: &impl Fn(usize) -> Option<usize>,
    entries: &mut Vec<Entry>,
) {
    for (key, value) in table {
        flatten_one(before, key, value, line, entries);
    }
}

/// Appends one key, or those of the table behind it.
fn flatten_one(
    before: &str,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
    line: &impl Fn(usize) -> Option<usize>,
    entries: &mut Vec<Entry>,
) {
    let name = format!("{before}{}", key.get_ref());
    match value.get_ref() {
        DeValue::Table(table) => flatten(&format!("{name}."), table, line, entries),
        value => {
            let line = line(key.span().start);
            entries.push(Entry { key: name, value: written(value), line });
        }
    }
}

/// Returns a value as it is written, without quotes.
fn written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        other => format!("a value of type {}", other.type_str()),
    }
}
