//! Texts of a link model, taken apart into keys and values with their lines.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::LinkModelError;

/// A key with its value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the key, behind the name of its table and a point.
    pub key: String,
    /// The value, without quotes.
    pub value: String,
    /// Line of the key, in a file.
    pub line: Option<usize>,
}

impl Entry {
    /// Returns the error of a value that is not among the `expected` ones.
    pub fn refuse(&self, expected: &str) -> LinkModelError {
        let Entry { key, value, line } = self.clone();
        LinkModelError::BadValue { line, key, value, expected: expected.to_owned() }
    }

    /// Returns the error of a key that is not among the `known` ones.
    pub fn refuse_key(&self, known: &str) -> LinkModelError {
        let Entry { key, line, .. } = self.clone();
        LinkModelError::UnknownKey { line, key, known: known.to_owned() }
    }
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
    let mut entries = Entries::default();
    let document = parse(text)?;
    let Some(link) = table(text, &document, LINK)? else { return Ok(entries) };
    let line = |at| line(text, at);
    for (key, value) in link {
        let name = key.get_ref();
        match value.get_ref() {
            DeValue::Array(routes) if name == ROUTE => {
                for route in routes.iter() {
                    let other = || no_table(text, "link.route", route);
                    let route = route.get_ref().as_table().ok_or_else(other)?;
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

/// Reads any table of a document in TOML; a document without it has none of its keys.
pub(super) fn read_table(text: &str, name: &str) -> Result<Vec<Entry>, LinkModelError> {
    let mut entries = Vec::new();
    let document = parse(text)?;
    if let Some(table) = table(text, &document, name)? {
        flatten("", table, &|at| line(text, at), &mut entries);
    }
    Ok(entries)
}

/// Returns the line of a byte.
fn line(text: &str, at: usize) -> Option<usize> {
    Some(text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1)
}

fn parse(text: &str) -> Result<DeTable<'_>, LinkModelError> {
    let document = DeTable::parse(text).map_err(|error| LinkModelError::Syntax {
        line: line(text, error.span().map_or(0, |span| span.start)),
        reason: error.message().replace('\n', ", "),
    })?;
    Ok(document.into_inner())
}

fn table<'a, 't>(
    text: &str,
    document: &'a DeTable<'t>,
    name: &str,
) -> Result<Option<&'a DeTable<'t>>, LinkModelError> {
    let Some((_, found)) = document.iter().find(|(key, _)| key.get_ref() == name) else {
        return Ok(None);
    };
    found.get_ref().as_table().map(Some).ok_or_else(|| no_table(text, name, found))
}

fn no_table(text: &str, key: &str, value: &Spanned<DeValue<'_>>) -> LinkModelError {
    let line = line(text, value.span().start);
    Entry { key: key.to_owned(), value: written(value.get_ref()), line }.refuse("a table")
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
