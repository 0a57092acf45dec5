//! Errors of the text of a link model.

/// Reason for which the text of a link model was refused. Lines count from 1; text that is not a
/// file has none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkModelError {
    /// The text is no TOML, or no list of `key=value`.
    #[error("{}{reason}", at(line))]
    Syntax {
        /// Line of the mistake.
        line: Option<usize>,
        /// Reason for which the text cannot be read.
        reason: String,
    },
    /// No key has that name.
    #[error("{}no such key: {key}; the keys are {known}", at(line))]
    UnknownKey {
        /// Line of the key.
        line: Option<usize>,
        /// The unknown key.
        key: String,
        /// The keys that are allowed there.
        known: String,
    },
    /// The value of a key is outside its range, or has no such form.
    #[error("{}{key} = {value}: give {expected}", at(line))]
    BadValue {
        /// Line of the key.
        line: Option<usize>,
        /// The key.
        key: String,
        /// The refused value.
        value: String,
        /// The allowed range, with examples.
        expected: String,
    },
    /// A key is given that says nothing without another one.
    #[error("{}{key} needs {needed}", at(line))]
    Missing {
        /// Line of the key.
        line: Option<usize>,
        /// The key that was given.
        key: String,
        /// The key that is missing.
        needed: &'static str,
    },
    /// Two keys set the same figure.
    #[error("{}{key} contradicts {other}: give one of them", at(line))]
    Contradiction {
        /// Line of the second key.
        line: Option<usize>,
        /// The second key.
        key: String,
        /// The first key.
        other: String,
    },
    /// No profile has that name.
    #[error("no such profile: {name}; the profiles are {known}")]
    UnknownProfile {
        /// The unknown name.
        name: String,
        /// The names of all profiles.
        known: String,
    },
}

/// Returns the beginning of a message about a line.
fn at(line: &Option<usize>) -> String {
    line.map(|line| format!("line {line}: ")).unwrap_or_default()
}
