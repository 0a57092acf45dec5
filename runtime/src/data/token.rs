//! Dependencies without data.

use super::{Array, Region};
use crate::error::Error;
use crate::group::Group;

/// Orders tasks that share no array: declare it as `input`, `output` or `inout`.
#[derive(Clone, Debug)]
pub struct Token(Array<()>);

impl Token {
    /// Makes a token of `group`.
    ///
    /// **Errors**: none today; a constructor like those of the arrays.
    pub fn new(group: &Group) -> Result<Self, Error> {
        Ok(Token(Array::new(group, vec![()], 1)?))
    }

    /// What tasks declare.
    pub fn region(&self) -> Region<'_, ()> {
        self.0.tile(0)
    }
}
