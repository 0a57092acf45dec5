//! Heat source file: a count, then one source per line.
//!
//! ```text
//! 2                     # number of heat sources
//! 0.0  0.0  1.0  2.5    # (row, column), size, temperature
//! 1.0  0.5  1.0  2.5
//! ```
//!
//! Fields are separated by blanks; a `#` starts a comment; empty lines are ignored. Anything else
//! is an error that names the line, the field, its text and the valid values.

use std::path::Path;

use super::Source;
use crate::Error;
use crate::text_file::{self, Line};

const MOST_SOURCES: usize = 1024;
const LONGEST_FILE: u64 = 1 << 20;
const LARGEST_SIZE: f64 = 10.0;
const HIGHEST_TEMPERATURE: f64 = 1e6;

/// Returns the two sources that are used if no file is given.
pub fn default_sources() -> Vec<Source> {
    parse("default.conf", include_str!("default.conf")).expect("tested below")
}

/// Reads the sources of a file.
///
/// **Errors**: [`Error::Read`] if the file cannot be read or is longer than 1 MiB; [`Error::Field`]
/// if a field is invalid; [`Error::MissingField`] if the file ends early.
pub fn load(path: &Path) -> Result<Vec<Source>, Error> {
    let text = text_file::read(path, LONGEST_FILE)?;
    parse(&path.display().to_string(), &text)
}

/// Parses the sources in `text`; errors name `file`.
///
/// **Errors**: [`Error::Field`], [`Error::MissingField`].
pub fn parse(file: &str, text: &str) -> Result<Vec<Source>, Error> {
    let mut lines = text_file::lines(file, text);
    let end = text_file::end(file, text);

    let count_line = lines.next().unwrap_or(end);
    let count = count_of(count_line)?;
    let sources = (1..=count)
        .map(|number| source_of(lines.next().unwrap_or(end), number, count))
        .collect::<Result<Vec<_>, _>>()?;
    match lines.next() {
        None => Ok(sources),
        Some(line) => Err(line.error("line", line.text, format!("the end after source {count}"))),
    }
}

fn count_of(line: Line<'_>) -> Result<usize, Error> {
    match line.text.parse() {
        Ok(count) if (1..=MOST_SOURCES).contains(&count) => Ok(count),
        _ => {
            let limit = format!("a whole number from 1 to {MOST_SOURCES}");
            Err(line.error("number of heat sources", line.text, limit))
        }
    }
}

fn source_of(line: Line<'_>, number: usize, count: usize) -> Result<Source, Error> {
    let Some([row, col, size, temperature]) = line.fields() else {
        let limit = format!("row, column, size and temperature of source {number} of {count}");
        return Err(line.error("heat source", line.text, limit));
    };
    let from_0_to_1 = |field, text| {
        line.number(field, text, |x| (0.0..=1.0).contains(&x), "a number from 0 to 1".into())
    };
    let most = LARGEST_SIZE;
    let size_limit = format!("a number above 0, at most {most}");
    let hottest = HIGHEST_TEMPERATURE;
    let temperature_limit = format!("a number from -{hottest} to {hottest}");
    Ok(Source {
        row: from_0_to_1("row", row)?,
        col: from_0_to_1("column", col)?,
        size: line.number("size", size, |x| x > 0.0 && x <= most, size_limit)?,
        temperature: line.number(
            "temperature",
            temperature,
            |x| x.abs() <= hottest,
            temperature_limit,
        )?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        parse("heat.conf", text).expect_err(text).to_string()
    }

    #[test]
    fn default_is_the_two_sources_of_its_file() {
        let corner = Source { row: 0.0, col: 0.0, size: 1.0, temperature: 2.5 };
        assert_eq!(default_sources(), [corner, Source { row: 1.0, col: 0.5, ..corner }]);
    }

    #[test]
    fn comments_blanks_and_empty_lines_do_not_count() {
        let text = "\n# sources\n  1 # one\r\n\n\t0.25 .5\t1e-1   -3#cold\n#\n";
        let source = Source { row: 0.25, col: 0.5, size: 0.1, temperature: -3.0 };
        assert_eq!(parse("heat.conf", text).unwrap(), [source]);
    }

    #[test]
    fn every_limit_is_inside() {
        assert!(parse("heat.conf", "2\n0 0 10 1e6\n1 1 1e-300 -1e6").is_ok());
        let most = format!("{MOST_SOURCES}\n{}", "0 0 1 1\n".repeat(MOST_SOURCES));
        assert_eq!(parse("heat.conf", &most).unwrap().len(), MOST_SOURCES);
    }

    #[test]
    fn count_is_a_whole_number_within_limits() {
        for bad in ["0", "-1", "1025", "two", "1.0", "1 1", "99999999999999999999"] {
            let error = error_of(&format!("# head\n{bad}\n0 0 1 1\n"));
            let expected = "expected a whole number from 1 to 1024";
            assert_eq!(
                error,
                format!("heat.conf:2: number of heat sources is {bad:?}, {expected}")
            );
        }
    }

    #[test]
    fn every_field_says_what_it_is_and_what_it_may_be() {
        let unit = "expected a number from 0 to 1";
        let size = "expected a number above 0, at most 10";
        let temperature = "expected a number from -1000000 to 1000000";
        for (index, field, limit, bad) in [
            (0, "row", unit, ["-0.1", "1.1", "NaN", "x"]),
            (1, "column", unit, ["-0.1", "1.1", "inf", "0,5"]),
            (2, "size", size, ["0", "-1", "10.1", "nan"]),
            (3, "temperature", temperature, ["1e7", "-1e7", "-inf", "hot"]),
        ] {
            for value in bad {
                let mut fields = ["0", "0", "1", "1"];
                fields[index] = value;
                let error = error_of(&format!("2\n0 0 1 1\n{}", fields.join(" ")));
                assert_eq!(error, format!("heat.conf:3: {field} is {value:?}, {limit}"));
            }
        }
    }

    #[test]
    fn lines_too_few_too_many_or_of_wrong_length_are_errors() {
        let limit = "expected row, column, size and temperature of source 1 of 1";
        for bad in ["0 0 1", "0 0 1 1 1"] {
            let error = error_of(&format!("1\n{bad}\n"));
            assert_eq!(error, format!("heat.conf:2: heat source is {bad:?}, {limit}"));
        }
        let missing = "is missing at the end of the file";
        assert_eq!(error_of("1"), format!("heat.conf:2: heat source {missing}, {limit}"));
        let limit = "expected a whole number from 1 to 1024";
        assert_eq!(error_of(""), format!("heat.conf:1: number of heat sources {missing}, {limit}"));
        assert_eq!(
            error_of("1\n0 0 1 1\n0 0 1 2\n"),
            "heat.conf:3: line is \"0 0 1 2\", expected the end after source 1"
        );
    }

    #[test]
    fn long_garbage_is_quoted_short_and_on_one_line() {
        let error = error_of(&"\u{1b}[31m\u{0}".repeat(1000));
        assert!(error.len() < 600 && !error.contains('\u{1b}'), "{error}");
    }
}
