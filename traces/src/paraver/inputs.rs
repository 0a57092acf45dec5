//! Protection of what is read from what is written.

use std::fs;
use std::path::Path;

use super::check::beside;
use super::partial::temporary;
use crate::error::{Error, Result};

/// Checks that the output `path` is no file of a trace in `inputs`, under its own name or the one that it has
/// while it is written.
///
/// **Errors**: [`SameFile`](Error::SameFile).
pub(crate) fn refuse_inputs(path: &Path, inputs: &[&Path]) -> Result<()> {
    for written in [path.to_owned(), temporary(path)] {
        let Ok(place) = fs::canonicalize(written) else { continue };
        let is_input = |input: &&Path| {
            let files = [input.to_path_buf(), beside(input, "pcf"), beside(input, "row")];
            files.iter().any(|file| fs::canonicalize(file).is_ok_and(|file| file == place))
        };
        if inputs.iter().any(is_input) {
            return Err(Error::SameFile { path: path.to_owned() });
        }
    }
    Ok(())
}
