//! Quantities with units, read exactly: no figure passes through a floating-point number.

/// A decimal number: `digits` / 10^`decimals`.
#[derive(Clone, Copy, Debug)]
struct Decimal {
    digits: u128,
    decimals: u32,
}

/// Digits that a number may have before and after its point.
const MOST_DIGITS: usize = 15;

/// Splits a text into the number that it begins with and its unit.
fn split(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_number = !whole.is_empty() && (part.is_empty() != number.contains('.'));
    if !is_number || whole.len() > MOST_DIGITS || part.len() > MOST_DIGITS {
        return None;
    }
    let digits = format!("{whole}{part}").parse().ok()?;
    Some((Decimal { digits, decimals: part.len() as u32 }, unit.trim()))
}

impl Decimal {
    fn scale(self) -> u128 {
        10u128.pow(self.decimals)
    }

    /// Returns the number times `factor`, rounded up.
    fn times(self, factor: u128) -> Option<u128> {
        Some(self.digits.checked_mul(factor)?.div_ceil(self.scale()))
    }
}

/// Frequency of a clock, the unit of times in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frequency {
    hz: u64,
}

impl Frequency {
    pub(super) const EXPECTED: &str = "a frequency from 1kHz to 100GHz, such as 400MHz";

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, unit) = split(text)?;
        let factor = match unit {
            "Hz" => 1,
            "kHz" => 1_000,
            "MHz" => 1_000_000,
            "GHz" => 1_000_000_000,
            _ => return None,
        };
        let hz = u64::try_from(number.times(factor)?).ok()?;
        (1_000..=100_000_000_000).contains(&hz).then_some(Frequency { hz })
    }
}

/// A factor of times, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Factor {
    millionths: u64,
}

const MILLION: u64 = 1_000_000;

impl Factor {
    /// Returns the nearest factor of at least a millionth.
    pub(super) fn new(factor: f64) -> Self {
        Self { millionths: ((factor * MILLION as f64).round() as u64).max(1) }
    }
}

/// A span of time in picoseconds, so that a cycle is not rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    ps: u64,
}

/// Picoseconds of the longest span, an hour.
const LONGEST_PS: u128 = 3_600 * 1_000_000_000_000;

impl Span {
    pub(super) const ZERO: Self = Span { ps: 0 };
    pub(super) const EXPECTED: &str =
        "a time from 0ns to 3600s in ns, us, ms or s, such as 1.5us, or in cycles with a clock";

    /// Reads a time, rounded up to picoseconds.
    pub(super) fn parse(text: &str, clock: Option<Frequency>) -> Option<Self> {
        let (number, unit) = split(text)?;
        let ps = match unit {
            "ns" => number.times(1_000)?,
            "us" => number.times(1_000_000)?,
            "ms" => number.times(1_000_000_000)?,
            "s" => number.times(1_000_000_000_000)?,
            "cycles" | "cycle" => {
                let cycles = number.digits.checked_mul(1_000_000_000_000)?;
                cycles.div_ceil(number.scale() * u128::from(clock?.hz))
            }
            "" if number.digits == 0 => 0,
            _ => return None,
        };
        (ps <= LONGEST_PS).then_some(Span { ps: ps as u64 })
    }

    /// Returns the span `count` times, plus `self`.
    pub(super) fn plus(self, other: Span, count: u64) -> Span {
        Span { ps: self.ps.saturating_add(other.ps.saturating_mul(count)) }
    }

    /// Returns a span that is `factor` times as long, rounded up.
    pub(super) fn times(self, factor: Factor) -> Self {
        let ps = (u128::from(self.ps) * u128::from(factor.millionths)).div_ceil(MILLION.into());
        Span { ps: u64::try_from(ps).unwrap_or(u64::MAX) }
    }

    pub(super) fn ps(self) -> u64 {
        self.ps
    }

    /// Returns nanoseconds, rounded up.
    pub(super) fn ns(self) -> u64 {
        self.ps.div_ceil(1_000)
    }
}

/// Bytes a second, as a fraction of bytes and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    bytes: u64,
    ns: u64,
}

impl Rate {
    pub(super) const EXPECTED: &str = "a rate from 1kB/s to 1000TB/s in B/s, kB/s, MB/s, GB/s, \
        TB/s, MiB/s, GiB/s, Mbit/s or Gbit/s, such as 10GB/s, or in cycles/B with a clock";

    pub(super) fn parse(text: &str, clock: Option<Frequency>) -> Option<Self> {
        let (number, unit) = split(text)?;
        // Bytes, eighths of them, and seconds.
        let bytes = match unit {
            "B/s" => 8,
            "kB/s" => 8_000,
            "MB/s" => 8_000_000,
            "GB/s" => 8_000_000_000,
            "TB/s" => 8_000_000_000_000,
            "MiB/s" => 8 << 20,
            "GiB/s" => 8 << 30,
            "Mbit/s" => 1_000_000,
            "Gbit/s" => 1_000_000_000,
            "cycles/B" => {
                let ns = number.digits.checked_mul(1_000_000_000)?;
                return Self::of(number.scale() * u128::from(clock?.hz), ns);
            }
            _ => return None,
        };
        let bytes = number.digits.checked_mul(bytes)?;
        Self::of(bytes, 8 * number.scale() * 1_000_000_000)
    }

    /// Reduces a fraction, if it is within the limits.
    fn of(bytes: u128, ns: u128) -> Option<Self> {
        let within = ns > 0 && ns / 1_000_000 <= bytes && bytes / 1_000_000 <= ns && bytes > 0;
        let divisor = greatest_common_divisor(bytes, ns.max(1));
        let [bytes, ns] = [bytes / divisor, ns / divisor].map(u64::try_from);
        within.then_some(Rate { bytes: bytes.ok()?, ns: ns.ok()? })
    }

    /// Returns a rate at which bytes take `factor` times as long.
    pub(super) fn slowed(self, factor: Factor) -> Self {
        let mut bytes = u128::from(self.bytes) * u128::from(MILLION);
        let mut ns = u128::from(self.ns) * u128::from(factor.millionths);
        let divisor = greatest_common_divisor(bytes, ns);
        (bytes, ns) = (bytes / divisor, ns / divisor);
        // Of 64 bits each, the fraction is wrong by less than a nanosecond in any time that fits them.
        while bytes.max(ns) > u64::MAX.into() {
            (bytes, ns) = ((bytes / 2).max(1), ns.div_ceil(2));
        }
        Rate { bytes: bytes as u64, ns: ns as u64 }
    }

    /// Returns the nanoseconds that `bytes` take, rounded up.
    pub(super) fn ns(self, bytes: u64) -> u64 {
        let ns = (u128::from(bytes) * u128::from(self.ns)).div_ceil(u128::from(self.bytes));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Text of what is expected of a size in bytes.
pub(super) const BYTES: &str = "a size from 1B to 1TiB in B, kB, MB, KiB, MiB or GiB, such as 4KiB";

/// Reads a size in bytes.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    let exact = number.digits.checked_mul(factor)?;
    let is_whole = exact.is_multiple_of(number.scale());
    let bytes = u64::try_from(exact / number.scale()).ok()?;
    (is_whole && (1..=1 << 40).contains(&bytes)).then_some(bytes)
}

/// Text of what is expected of a count.
pub(super) const COUNT: &str = "a whole number from 1 to 1048576";

/// Reads a count.
pub(super) fn count(text: &str) -> Option<u32> {
    let digits = text.trim();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|count| is_number && (1..=1 << 20).contains(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Option<Frequency> = Some(Frequency { hz: 400_000_000 });

    #[test]
    fn times_are_exact() {
        let ns = |text| Span::parse(text, CLOCK).map(|span| span.ns());
        assert_eq!(ns("0ns"), Some(0));
        assert_eq!(ns("0"), Some(0));
        assert_eq!(ns("1.5us"), Some(1_500));
        assert_eq!(ns("3600 s"), Some(3_600_000_000_000));
        assert_eq!(ns("31430cycles"), Some(78_575));
        assert_eq!(ns("1cycle"), Some(3));
        for bad in ["3600.001s", "-1ns", "1", "1m", "ns", "1.ns", ".5ns", "1e3ns", "1 2ns"] {
            assert_eq!(ns(bad), None, "{bad}");
        }
        assert_eq!(Span::parse("1cycle", None), None);
        let cycle = Span::parse("1cycle", CLOCK).unwrap();
        assert_eq!(Span::default().plus(cycle, 4).ns(), 10);
    }

    #[test]
    fn rates_are_fractions() {
        let ns = |text, bytes| Rate::parse(text, CLOCK).map(|rate| rate.ns(bytes));
        assert_eq!(ns("10GB/s", 15), Some(2));
        assert_eq!(ns("100Gbit/s", 25), Some(2));
        assert_eq!(ns("0.98cycles/B", 1_000_000), Some(2_450_000));
        assert_eq!(ns("1GiB/s", 1 << 30), Some(1_000_000_000));
        assert_eq!(ns("1kB/s", u64::MAX), Some(u64::MAX));
        assert!(ns("1000TB/s", 1).is_some() && ns("1kB/s", 1).is_some());
        for bad in ["0GB/s", "0.9kB/s", "1001TB/s", "10GB", "0cycles/B", "-1GB/s"] {
            assert_eq!(ns(bad, 1), None, "{bad}");
        }
    }

    #[test]
    fn times_and_rates_are_multiplied_exactly() {
        let span = |text, factor| Span::parse(text, None).unwrap().times(Factor::new(factor)).ns();
        assert_eq!(span("2us", 1.0), 2_000);
        assert_eq!(span("2us", 32.5), 65_000);
        assert_eq!(span("3600s", 1e3), 3_600_000_000_000_000);
        assert_eq!(span("3600s", 1e6), u64::MAX.div_ceil(1_000));
        let rate = |text, factor: f64, bytes| {
            Rate::parse(text, CLOCK).unwrap().slowed(Factor::new(factor)).ns(bytes)
        };
        assert_eq!(rate("10GB/s", 1.0, 15), 2);
        assert_eq!(rate("10GB/s", 500.0, 1_000), 50_000);
        assert_eq!(rate("0.98cycles/B", 1e6, 1_000_000), 2_450_000_000_000);
        assert_eq!(rate("1kB/s", 1e6, 1), 1_000_000_000_000);
    }

    #[test]
    fn sizes_and_counts_have_limits() {
        assert_eq!(bytes("4KiB"), Some(4_096));
        assert_eq!(bytes("1.5kB"), Some(1_500));
        assert_eq!(bytes("1TiB"), Some(1 << 40));
        for bad in ["0B", "0.5B", "1025GiB", "12", "x"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
        assert_eq!([count("1"), count("1048576")], [Some(1), Some(1 << 20)]);
        for bad in ["0", "1048577", "+1", "1.0", ""] {
            assert_eq!(count(bad), None, "{bad}");
        }
    }
}
