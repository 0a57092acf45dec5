//! Dependencies without data.

use std::sync::Arc;

use super::{Array, Region};
use crate::error::Error;
use crate::group::Group;

/// An object without data that orders tasks which share no array: declare it as `input`, `output`
/// or `inout`.
#[derive(Clone, Debug)]
pub struct Token(Array<()>);

impl Token {
    /// Makes a token of `group`.
    ///
    /// **Errors**: none at present; a constructor like those of the arrays.
    pub fn new(group: &Group) -> Result<Self, Error> {
        Ok(Token(Array::new(group, vec![()], 1)?))
    }

    /// Gives the token a name, which reports show beside its number. The first name stays.
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        Token(self.0.named(name))
    }

    /// Returns the region that tasks declare.
    pub fn region(&self) -> Region<'_, ()> {
        self.0.tile(0)
    }
}
