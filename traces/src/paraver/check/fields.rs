//! The numbers between the colons of a record.

use super::report::Log;
use super::rule::Rule;

/// Reads the fields of `line` into `fields`. Reports a field that is not an integer, and returns
/// `false` then. Numbers too large for any field saturate.
pub(super) fn read(line: &[u8], number: u64, fields: &mut Vec<i128>, log: &mut Log<'_>) -> bool {
    fields.clear();
    let line = match line.strip_suffix(b":") {
        Some(rest) => {
            log.add(Rule::TrailingColon, number, "the record ends in a colon");
            rest
        }
        None => line,
    };
    for (index, field) in line.split(|byte| *byte == b':').enumerate() {
        match integer(field) {
            Some(value) => fields.push(value),
            None => {
                let text = format_args!("field {} is `{}`", index + 1, shown(field));
                log.add(fault(field), number, text);
                return false;
            }
        }
    }
    true
}

/// Parses `field` as an integer.
pub(super) fn integer(field: &[u8]) -> Option<i128> {
    let (negative, digits) = match field.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, field),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = if digits.len() <= 19 {
        // 19 digits fit into 64 bits, and most numbers are short.
        i128::from(digits.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0')))
    } else {
        digits.iter().fold(0_i128, |sum, digit| {
            sum.saturating_mul(10).saturating_add(i128::from(digit - b'0'))
        })
    };
    Some(if negative { -magnitude } else { magnitude })
}

/// Escapes text of a trace for a finding, which may be printed on a terminal.
pub(super) fn shown(text: &[u8]) -> String {
    const LIMIT: usize = 60;
    let text = String::from_utf8_lossy(&text[..text.len().min(LIMIT)]);
    text.escape_debug().to_string()
}

/// Returns `true` if `number` lies within the limits, and reports it otherwise.
pub(super) fn in_range(
    what: &str,
    number: i128,
    least: i128,
    most: i128,
    line: u64,
    log: &mut Log<'_>,
) -> bool {
    let fits = (least..=most).contains(&number);
    if !fits {
        let text = format_args!("{what} {number} is not within {least} to {most}");
        log.add(Rule::NumberRange, line, text);
    }
    fits
}

/// Returns the rule that a `field` that is not an integer breaks.
fn fault(field: &[u8]) -> Rule {
    if field.iter().any(|byte| matches!(byte, b' ' | b'\t')) {
        Rule::BlankInRecord
    } else if field.is_empty() {
        Rule::FieldCount
    } else if field.contains(&b'.') {
        Rule::FloatNumber
    } else {
        Rule::NotInteger
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_over_their_whole_range() {
        assert_eq!(integer(b"00042"), Some(42));
        assert_eq!(integer(b"-7"), Some(-7));
        assert_eq!(integer(b"9999999999999999999"), Some(9_999_999_999_999_999_999));
        assert_eq!(integer(b"18446744073709551616"), Some(1 << 64));
        assert_eq!(integer(&[b'9'; 60]), Some(i128::MAX));
        for text in ["", "-", "+1", "1.5", " 1", "1e3", "0x1", "--1"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }
}
